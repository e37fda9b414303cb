//! What a person meets who runs `wormhole`: files that are checked first, results on disk while a run goes on, and runs
//! that end before their time.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wormhole_kernel::model::ConfigHash;
use wormhole_tests::{Said, empty_folder, wormhole_in};

/// Two pairs of hosts, two switches.
const DUMBBELL: &str = "6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n\
                        4 5 100Gbps 1us 0\n";

/// Longer than any test waits, with a short flow that ends at once.
const LONG: &str = "3\n0 2 3 100 1000000000000 0\n1 3 3 101 1000000000000 0\n1 2 3 102 1000 0\n";

/// So long a test waits for something to appear before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, flows: &str) -> Place {
        let place = Place(empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("running").join(name)));
        place.write("topology.txt", DUMBBELL);
        place.write("flows.txt", flows);
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn command(&self, arguments: &str) -> Command {
        wormhole_in(&self.0, arguments)
    }

    fn wormhole(&self, arguments: &str) -> Said {
        self.command(arguments).output().expect("wormhole runs").into()
    }

    /// Starts a run of the inputs, every event executed.
    fn start(&self, options: &str) -> Child {
        let arguments = format!("run --topology topology.txt --flows flows.txt --out out {options}");
        let mut command = self.command(&arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wormhole starts")
    }

    fn ending(&self) -> Option<String> {
        let text = fs::read(self.0.join("out/summary.json")).ok()?;
        let summary: Value = serde_json::from_slice(&text).expect("a summary is whole");
        summary["ending"].as_str().map(str::to_owned)
    }

    /// Waits for results on disk.
    fn await_results(&self) {
        let begun = Instant::now();
        while self.ending().is_none() {
            assert!(begun.elapsed() < PATIENCE, "no results appear");
            sleep(Duration::from_millis(20));
        }
    }

    /// All results there are can be read.
    fn assert_results_are_whole(&self) {
        let _ = self.ending();
        let Ok(table) = fs::read_to_string(self.0.join("out/fct.csv")) else { return };
        let columns = table.lines().next().expect("a heading").split(',').count();
        assert!(table.ends_with('\n') && table.lines().all(|row| row.split(',').count() == columns), "{table}");
    }
}

/// Sends a signal, named as `kill` has it.
fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &child.id().to_string()]).status().expect("kill");
    assert!(status.success(), "kill -{name}: {status}");
}

#[test]
fn a_signal_ends_a_run_with_a_report_of_what_is_done() {
    for name in ["INT", "TERM"] {
        let place = Place::new(&format!("signal-{name}"), LONG);
        let child = place.start("--accel off");
        place.await_results();
        assert_eq!(place.ending().as_deref(), Some("running"));
        signal(&child, name);
        let said: Said = child.wait_with_output().expect("it ends").into();
        assert_eq!(said.code, Some(130), "{said:#?}");
        assert!(
            said.errors.contains("interrupted at ") && said.errors.contains(": 1 of 3 flows have ended"),
            "{said:#?}"
        );
        assert!(said.out.contains("1 of 3"), "{said:#?}");
        assert_eq!(place.ending().as_deref(), Some("interrupted"));
        assert_eq!(place.read("out/fct.csv").lines().count(), 2, "a heading and the flow that has ended");
        place.assert_results_are_whole();
    }
}

#[test]
fn a_killed_run_leaves_files_that_can_be_read() {
    let flows: String =
        (0..20_000).map(|i| format!("{} {} 3 {} 9000 {}e-6\n", i % 2, 2 + i % 2, 100 + i % 50_000, i)).collect();
    let place =
        Place::new("killed", &format!("20002\n{flows}{}", LONG.lines().skip(1).take(2).collect::<Vec<_>>().join("\n")));
    let seed = 5;
    for run in 0..6 {
        let mut child = place.start("--accel exact --memo records.whm");
        sleep(Duration::from_millis(ConfigHash::new().with(seed).with(run).finish() % 2_500));
        child.kill().expect("it is killed");
        child.wait().expect("it has ended");
        place.assert_results_are_whole();
        if place.0.join("records.whm").exists() {
            place.wormhole("memo verify records.whm").succeeds();
        }
    }
    println!("6 runs killed at random moments (seed {seed}): files are whole");
}

#[test]
fn results_of_an_earlier_run_do_not_pass_for_those_of_a_killed_one() {
    let place = Place::new("stale", "1\n0 2 3 100 1000 0\n");
    place.start("").wait().expect("it ends");
    assert_eq!(place.ending().as_deref(), Some("done"));
    place.write("flows.txt", LONG);
    let mut child = place.start("--accel off");
    let begun = Instant::now();
    while place.ending().as_deref() == Some("done") {
        assert!(begun.elapsed() < PATIENCE, "the old summary stays");
        sleep(Duration::from_millis(5));
    }
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
}

#[test]
fn flows_that_wait_for_ever_are_listed() {
    // Without time-outs, as in ns-3, the only packet of a flow is never sent again.
    let place = Place::new("stalled", "1\n0 2 3 100 1000 0\n");
    place.write("events.txt", "2 down 4 5\n4 up 4 5\n");
    let run = "run --topology topology.txt --flows flows.txt --link-events events.txt --profile ns3 --out out";
    let said = place.wormhole(run);
    assert_eq!(said.code, Some(4), "{said:#?}");
    assert!(said.errors.contains("host 0 waits for host 2: "), "{said:#?}");
    assert!(said.errors.contains(" of 1000 bytes acknowledged"), "{said:#?}");
}

// check.

#[test]
fn check_says_that_a_scenario_can_be_run_and_what_it_was_taken_for() {
    let place = Place::new("check-good", "1\n0 2 3 100 1000 0\n");
    let said = place.wormhole("check --topology topology.txt --flows flows.txt").succeeds();
    assert!(said.out.contains("1 flow of 1000 bytes in all") && said.out.contains("it can be run"), "{said:#?}");
    assert!(said.errors.contains("4 hosts"), "{said:#?}");
    let said = place.wormhole("check gpt-7b-64").succeeds();
    assert!(said.out.contains("64 ranks") && !said.errors.contains("warning"), "{said:#?}");
    assert!(!place.0.join("wormhole-out").exists(), "nothing is written");
}

#[test]
fn check_tells_every_fault_of_every_file() {
    let place = Place::new("check-bad", "2\n0 9 3 100 1000 0\n0 2 9 100 x 0\n");
    place.write("topology.txt", &DUMBBELL.replace("1 4 100Gbps", "1 4 100Gbqs"));
    place.write("config.txt", "CC_MODE 99\nBUFFER_SIZE x\n");
    place.write("events.txt", "20 sideways 4 5\n");
    let check = "check --topology topology.txt --flows flows.txt --config config.txt --link-events events.txt";
    let said = place.wormhole(check);
    assert_eq!(said.code, Some(3), "{said:#?}");
    for place in ["topology.txt:4:", "flows.txt:2:", "flows.txt:3:", "config.txt:1:", "config.txt:2:", "events.txt:1:"]
    {
        assert!(said.errors.contains(place), "no fault at {place}\n{}", said.errors);
    }
    for token in ["100Gbqs", "`9`", "`x`", "99", "sideways"] {
        assert!(said.errors.contains(token), "no word of {token}\n{}", said.errors);
    }
}

#[test]
fn check_tells_what_a_run_would_refuse_and_what_is_odd() {
    let place = Place::new("check-odd", "1\n0 2 3 100 1000 0\n");
    place.write("topology.txt", &DUMBBELL.replace("4 5 100Gbps 1us 0\n", "").replace("6 2 5", "6 2 4"));
    let said = place.wormhole("check --topology topology.txt --flows flows.txt");
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(said.errors.contains("flows.txt: error: ") && said.errors.contains("(flow 1)"), "{said:#?}");
    place.write("topology.txt", &DUMBBELL.replace("4 5 100Gbps", "4 5 50Gbps").replace("0 4 100Gbps", "0 4 400Gbps"));
    let said = place.wormhole("check --topology topology.txt --flows flows.txt").succeeds();
    assert!(said.errors.contains("a rate that no flow can reach") && said.errors.contains("`0`"), "{said:#?}");
}
