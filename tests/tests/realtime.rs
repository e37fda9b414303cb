//! `wormhole cosim tap`: machines that know nothing of it talk through a simulated fabric, in real time.
//!
//! The machines are network namespaces that the tests make, and nothing leaves them. How late frames are is up to the
//! machine that runs the tests: it is printed, and nothing but bounds from below is asserted of it.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use wormhole_tests::component::{is_there, starts};
use wormhole_tests::{Said, wormhole_binary};

static WORMHOLE: LazyLock<PathBuf> = LazyLock::new(wormhole_binary);

/// Hosts 0, 1 and 2 around switch 3, each by a link of this delay.
fn star(delay: &str) -> String {
    let links: String = (0..3).map(|host| format!("{host} 3 1Gbps {delay} 0\n")).collect();
    format!("4 1 3\n3\n{links}")
}

/// Whether namespaces and devices can be made here; if not, says why `test` is skipped.
fn can_run(test: &str) -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    is_there(test, "the right to make network namespaces (root)", is_root)
        && is_there(test, "/dev/net/tun", Path::new("/dev/net/tun").exists())
        && is_there(test, "iproute2", starts("ip", &["-V"]))
        && is_there(test, "ping", starts("ping", &["-V"]))
}

/// Runs a command that must work.
#[track_caller]
fn must(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output().expect("it starts");
    Said::from(output).succeeds().out
}

/// Two machines, one for Wormhole between them, and a folder. They are gone when this is dropped.
struct Place {
    name: String,
    folder: PathBuf,
}

impl Place {
    fn new(delay: &str) -> Place {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let name = format!("wh_test_{}_{}", std::process::id(), PLACES.fetch_add(1, Ordering::Relaxed));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(&name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let place = Place { name, folder };
        std::fs::write(place.folder.join("topology.txt"), star(delay)).expect("a file");
        for machine in ["a", "b", "wormhole"] {
            must(&format!("ip netns add {}", place.namespace(machine)));
            // Nothing is sent but what a test sends.
            let quiet = "for file in /proc/sys/net/ipv6/conf/*/disable_ipv6; do [ ! -e $file ] || echo 1 > $file; done";
            let done = place.command(machine, "sh").args(["-c", quiet]).status();
            assert!(done.is_ok_and(|status| status.success()), "IPv6 is off at {machine}");
        }
        place
    }

    fn namespace(&self, machine: &str) -> String {
        format!("{}_{machine}", self.name)
    }

    /// Runs `ip` in the namespace of a machine.
    #[track_caller]
    fn ip(&self, machine: &str, arguments: &str) {
        must(&format!("ip -n {} {arguments}", self.namespace(machine)));
    }

    /// A command in the namespace of a machine.
    fn command(&self, machine: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(machine), program]).current_dir(&self.folder);
        command
    }

    /// A pair of interfaces: `device` where Wormhole is, and one of the same name at a machine.
    fn cable(&self, machine: &str, device: &str) {
        let far = self.namespace(machine);
        self.ip("wormhole", &format!("link add {device} type veth peer name {device} netns {far}"));
        self.ip("wormhole", &format!("link set {device} up"));
    }

    /// Gives a machine's device its address.
    fn set_up(&self, machine: &str, device: &str, address: &str) {
        self.ip(machine, &format!("address add {address}/24 dev {device}"));
        self.ip(machine, &format!("link set {device} up"));
    }

    /// Gives a TAP device that Wormhole has made to a machine.
    fn hand_over(&self, machine: &str, device: &str, address: &str) {
        self.ip("wormhole", &format!("link set {device} netns {}", self.namespace(machine)));
        self.set_up(machine, device, address);
    }

    /// Starts `wormhole cosim tap`, and returns once it runs.
    fn start(&self, options: &str) -> Running {
        let mut command = self.command("wormhole", WORMHOLE.to_str().expect("UTF-8"));
        command.args(["cosim", "tap", "--topology", "topology.txt", "--out", "out"]).args(options.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("wormhole starts");
        let errors = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut running = Running { child, errors, told: String::new() };
        while !running.told.contains("running in real time") {
            let read = running.errors.read_line(&mut running.told).expect("a line");
            assert!(read > 0, "wormhole has ended:\n{}", running.told);
        }
        running
    }

    /// Host 0 is machine a, by a TAP device, host 1 is machine b.
    fn start_with_taps(&self, options: &str) -> Running {
        let running = self.start(&format!("--tap left --tap right {options}"));
        self.hand_over("a", "left", "10.0.0.1");
        self.hand_over("b", "right", "10.0.0.2");
        running
    }

    /// Machine a pings machine b.
    fn ping(&self, count: u32, options: &str) -> Command {
        let mut command = self.command("a", "ping");
        command.args(["-n", "-c", &count.to_string(), "10.0.0.2"]).args(options.split_whitespace());
        command
    }

    fn summary(&self) -> serde_json::Value {
        let text = std::fs::read_to_string(self.folder.join("out/summary.json")).expect("summary.json");
        serde_json::from_str(&text).expect("JSON")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for machine in ["a", "b", "wormhole"] {
            // One that could not be made is not there.
            let _ = Command::new("ip").args(["netns", "delete", &self.namespace(machine)]).output();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// `wormhole cosim tap` under way. It is ended when this is dropped.
struct Running {
    child: Child,
    errors: BufReader<ChildStderr>,
    told: String,
}

impl Running {
    fn signal(&self, signal: &str) {
        let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", self.child.id())]).status();
        assert!(sent.is_ok_and(|status| status.success()), "SIG{signal}");
    }

    /// Waits for its end.
    fn end(mut self) -> Said {
        let mut out = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut out).expect("UTF-8");
        self.errors.read_to_string(&mut self.told).expect("UTF-8");
        let code = self.child.wait().expect("it ends").code();
        Said { code, out, errors: std::mem::take(&mut self.told) }
    }

    /// Ends it by a signal.
    fn stop(self, signal: &str) -> Said {
        self.signal(signal);
        self.end()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Round trips in milliseconds of a ping without losses.
#[track_caller]
fn round_trips(ping: &mut Command, count: u32) -> Vec<f64> {
    let said = Said::from(ping.output().expect("ping runs")).succeeds();
    assert!(said.out.contains(" 0% packet loss"), "{}", said.out);
    let times = said.out.lines().filter_map(|line| line.split_once("time=")?.1.split_once(" ms"));
    let times: Vec<f64> = times.map(|(time, _)| time.parse().expect("milliseconds")).collect();
    assert_eq!(times.len(), count as usize, "{}", said.out);
    times
}

/// A ping under way. It is ended when this is dropped.
struct Pings {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Pings {
    /// Starts it, and returns when the first answer is there.
    fn start(mut ping: Command) -> Pings {
        let mut child = ping.stdout(Stdio::piped()).spawn().expect("ping runs");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut pings = Pings { child, out };
        let mut line = String::new();
        while !line.contains("time=") {
            line.clear();
            assert!(pings.out.read_line(&mut line).expect("a line") > 0, "ping has no answer");
        }
        pings
    }

    /// Waits for its end, and gives what it has said since.
    fn end(&mut self) -> String {
        let mut out = String::new();
        self.out.read_to_string(&mut out).expect("UTF-8");
        assert!(self.child.wait().expect("ping ends").success(), "{out}");
        out
    }
}

impl Drop for Pings {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Greatest lateness of a run, in microseconds; prints what it says of lateness.
#[track_caller]
fn max_lateness(test: &str, said: &Said) -> f64 {
    let report: Vec<&str> = said.out.lines().skip_while(|line| !line.starts_with("device")).take(11).collect();
    println!("{test}:\n{}", report.join("\n"));
    let lateness = report.iter().find(|line| line.starts_with("lateness of ")).expect("lateness");
    let max = lateness.split_once("max ").and_then(|(_, max)| max.split_once(' ')).expect("the maximum");
    max.0.parse().expect("microseconds")
}

/// Frames in, out and not taken of a device.
#[track_caller]
fn passed(said: &Said, device: &str) -> [u64; 3] {
    let row = said.out.lines().find_map(|line| line.strip_prefix(device)).expect("a row of the device");
    let numbers: Vec<u64> = row.split_whitespace().map(|n| n.parse().expect("a number")).collect();
    [numbers[1], numbers[2], numbers[3]]
}

#[test]
fn machines_ping_each_other_through_a_fabric_with_flows() {
    if !can_run("machines_ping_each_other_through_a_fabric_with_flows") {
        return;
    }
    let place = Place::new("1ms");
    // 20 MB at 1 Gb/s are 160 ms; the pings are in between.
    std::fs::write(place.folder.join("flows.txt"), "1\n2 1 3 100 20000000 0.1\n").expect("a file");
    let running = place.start_with_taps("--flows flows.txt");
    let times = round_trips(&mut place.ping(40, "-i 0.02 -W 5"), 40);
    // Two links there, two back, each of 1 ms.
    assert!(times.iter().all(|&time| time >= 4.0), "faster than light: {times:?}");
    let said = running.stop("INT").succeeds();
    let max = max_lateness("ping through two TAP devices, 1 ms a link", &said);
    println!("round trips: least {:.3} ms, lateness at most {max} us", times.iter().copied().fold(f64::MAX, f64::min));
    for device in ["left", "right"] {
        let [came, went, not_taken] = passed(&said, device);
        // The ARP frames, too.
        assert!(came > 40 && went > 40, "{came} {went}");
        println!("{device}: {came} in, {went} out, {not_taken} not taken");
    }
    let summary = place.summary();
    assert_eq!((&summary["flows_finished"], &summary["drops"]), (&1.into(), &0.into()), "{summary}");
    // Simulated time has not run ahead, and the flow's end was waited for.
    let number = |key: &str| summary[key].as_f64().expect("a number");
    assert!(number("sim_time_ns") <= number("wall_s") * 1e9 && number("sim_time_ns") > 260e6, "{summary}");
}

#[test]
fn an_interface_and_a_tap_device_are_the_hosts_that_are_named() {
    if !can_run("an_interface_and_a_tap_device_are_the_hosts_that_are_named") {
        return;
    }
    let place = Place::new("2ms");
    place.cable("a", "veth");
    place.set_up("a", "veth", "10.0.0.1");
    let running = place.start("--interface veth=2 --tap right=0 --pcap frames.pcap");
    place.hand_over("b", "right", "10.0.0.2");
    assert!(running.told.contains("right is host 0\nveth is host 2\n"), "{}", running.told);
    let times = round_trips(&mut place.ping(10, "-i 0.02 -W 5"), 10);
    assert!(times.iter().all(|&time| time >= 8.0), "faster than light: {times:?}");
    let said = running.stop("TERM").succeeds();
    max_lateness("ping through a packet socket and a TAP device, 2 ms a link", &said);
    assert!(passed(&said, "veth")[0] > 10 && passed(&said, "right")[0] > 10, "{}", said.out);
}

#[test]
fn late_frames_are_delivered_unless_there_is_a_hard_limit() {
    if !can_run("late_frames_are_delivered_unless_there_is_a_hard_limit") {
        return;
    }
    let place = Place::new("50ms");
    // While it stands still frames are due: a ping every 20 ms is under way for 200 ms.
    let stand_still = |running: &Running| {
        let started = Instant::now();
        running.signal("STOP");
        std::thread::sleep(Duration::from_millis(500));
        running.signal("CONT");
        println!("stood still for {:?}", started.elapsed());
    };
    let running = place.start_with_taps("");
    let mut pings = Pings::start(place.ping(50, "-i 0.02 -W 5"));
    stand_still(&running);
    let out = pings.end();
    assert!(out.contains(" 0% packet loss"), "{out}");
    let max = max_lateness("ping through a simulation that stands still for 500 ms", &running.stop("INT").succeeds());
    assert!(max >= 250_000.0, "it stood still, but frames were {max} us late at most");

    let running = place.start_with_taps("--hard-limit 250ms");
    let pings = Pings::start(place.ping(1_000, "-i 0.02"));
    stand_still(&running);
    let said = running.end();
    drop(pings);
    max_lateness("with a hard limit of 250 ms, while it was kept", &said);
    said.tells(13, "the hard limit is 250000 us");

    let running = place.start_with_taps("--hard-limit 1ps");
    let _ = place.ping(1, "-W 1").output();
    running.end().tells(13, "the hard limit is 0.000001 us");
}

#[test]
fn it_ends_at_the_time_that_is_given() {
    if !can_run("it_ends_at_the_time_that_is_given") {
        return;
    }
    let place = Place::new("1ms");
    place.start("--tap left --tap right --until 50ms").end().succeeds();
    let wall = place.summary()["wall_s"].as_f64().expect("a number");
    assert!(wall >= 0.05, "it has run for {wall} s only");
}

#[test]
fn what_cannot_be_attached_is_told() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("realtime_errors");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("topology.txt"), star("1ms")).expect("a file");
    let try_with = |options: &str| {
        let mut command = Command::new(&*WORMHOLE);
        command.args(["cosim", "tap", "--topology", "topology.txt", "--out", "out"]).args(options.split_whitespace());
        Said::from(command.current_dir(&folder).output().expect("wormhole runs"))
    };
    try_with("--interface wh-none").tells(1, "wormhole: interface wh-none: No such device");
    if can_run("what_cannot_be_attached_is_told") {
        try_with("--tap lo").tells(1, "wormhole: TAP device lo: there is an interface of that name, and it is no TAP");
    }
    try_with("--tap a/b").tells(1, "wormhole: TAP device a/b: a name of an interface has 1 to 15 bytes");
    try_with("--tap left=3").tells(3, "external port at node 3: there is no such host");
    try_with("--tap left=0 --tap right=0").tells(3, "host 0 is two external ports");
    try_with("--tap left=one").tells(2, "`one` is not the number of a host");
    try_with("--tap left --hard-limit soon").tells(2, "--hard-limit");
    try_with("").tells(2, "--tap");
}
