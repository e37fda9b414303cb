//! `wormhole sweep`: its table is that of single runs, and the same whatever the number of threads, however often it
//! was killed, and in however many shards it was run.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wormhole_tests::{Rng, Said, empty_folder, wormhole_in};

/// Four hosts, of which two send to a third, again and again.
const SCENARIO: &str = "[fabric]\nkind = 'star'\nhosts = 4\nhost-rate = '100Gbps'\n\n[[job]]\nname = 'incast'\n\
                        kind = 'file'\nfile = 'incast.goal'\n\n[models]\ncca = 'hpcc'\n\n\
                        [variant.slow.fabric]\nhost-rate = '25Gbps'\n";

/// So long a test waits for something to appear before it calls it missing.
const PATIENCE: Duration = Duration::from_secs(120);

/// Ranks 0 and 1 send to rank 2 in so many rounds, which answers at the end of each; rank 3 is idle.
fn incast(rounds: u32, bytes: u64) -> String {
    let mut text = "num_ranks 4\n".to_owned();
    for rank in 0..2 {
        let round = |n| {
            let after = if n == 0 { String::new() } else { format!("s{n} requires r{}\n", n - 1) };
            format!("s{n}: send {bytes}b to 2 tag {n}\nr{n}: recv 64b from 2 tag {n}\n{after}")
        };
        text += &format!("rank {rank} {{\n{}}}\n", (0..rounds).map(round).collect::<String>());
    }
    let round = |n| {
        let receive = |rank| format!("r{rank}x{n}: recv {bytes}b from {rank} tag {n}\n");
        let answer = |rank| {
            let answer = format!("s{rank}x{n}");
            format!("{answer}: send 64b to {rank} tag {n}\n{answer} requires r0x{n}\n{answer} requires r1x{n}\n")
        };
        (0..2).map(receive).chain((0..2).map(answer)).collect::<String>()
    };
    text + &format!("rank 2 {{\n{}}}\nrank 3 {{\nc: calc 1\n}}\n", (0..rounds).map(round).collect::<String>())
}

/// A folder for one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str, sweep: &str) -> Place {
        let place = Place(empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("sweep").join(name)));
        place.write("scenario.toml", SCENARIO);
        place.write("incast.goal", &incast(6, 400_000));
        place.write("sweep.toml", &format!("scenario = 'scenario.toml'\n{sweep}"));
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn has(&self, name: &str) -> bool {
        self.0.join(name).exists()
    }

    fn command(&self, arguments: &str) -> Command {
        wormhole_in(&self.0, arguments)
    }

    fn wormhole(&self, arguments: &str) -> Said {
        self.command(arguments).output().expect("wormhole runs").into()
    }

    fn start(&self, arguments: &str) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wormhole starts")
    }

    /// The rows of a table, by the names of its columns. No cell has a comma in it.
    fn table(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let text = self.read(name);
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let heading = lines.next().expect("a heading");
        let row = |cells: Vec<String>| {
            assert_eq!(cells.len(), heading.len(), "{name}: {cells:?}");
            heading.iter().cloned().zip(cells).collect()
        };
        lines.map(row).collect()
    }

    fn await_file(&self, name: &str) {
        let begun = Instant::now();
        while !self.has(name) {
            assert!(begun.elapsed() < PATIENCE, "{name} does not appear");
            sleep(Duration::from_millis(10));
        }
    }
}

#[track_caller]
fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|e| panic!("{column}: {e} in {row:?}"))
}

/// Twenty points in two batches: what begins a little later meets again what was met before.
const TWENTY: &str = "[grid]\n'models.cca' = ['dcqcn', 'hpcc']\n'job.start' = ['0us', '1us', '2us', '3us', '4us', \
                      '5us', '6us', '7us', '8us', '9us']\n";

// The table.

#[test]
fn the_table_is_that_of_single_runs() {
    let sweep = "[grid]\n'acceleration.accel' = ['exact', 'bounded']\n'models.cca' = ['hpcc', 'dctcp']\n\
                 [[point]]\nvariant = 'slow'\n'models.seed' = 3\n";
    let place = Place::new("single", sweep);
    let said = place.wormhole("sweep sweep.toml --out out").succeeds();
    assert!(said.out.contains("5 of 5 points: 5 done") && said.out.contains("the tables are in out"), "{said:#?}");
    let rows = place.table("out/sweep.csv");
    let costs = place.table("out/costs.csv");
    let options = [
        "--accel exact --cca hpcc",
        "--accel exact --cca dctcp",
        "--accel bounded --cca hpcc",
        "--accel bounded --cca dctcp",
        "--variant slow --seed 3",
    ];
    assert_eq!((rows.len(), costs.len()), (options.len(), options.len()));
    let keys = ["acceleration.accel", "models.cca", "variant", "models.seed"];
    let stated: Vec<[&str; 4]> = rows.iter().map(|row| keys.map(|key| row[key].as_str())).collect();
    assert_eq!((stated[1], stated[4]), (["exact", "dctcp", "", ""], ["", "", "slow", "3"]));
    for (point, (options, row)) in options.iter().zip(&rows).enumerate() {
        place.wormhole(&format!("run scenario.toml {options} --out run")).succeeds();
        let summary: Value = serde_json::from_str(&place.read("run/summary.json")).expect("JSON");
        assert_eq!((row["point"].parse(), row["ending"].as_str()), (Ok(point), "done"));
        for column in ["flows", "flows_finished", "sim_time_ns", "drops", "ecn_marks", "pauses"] {
            assert_eq!(Some(number(row, column)), summary[column].as_f64(), "{options}: {column}");
        }
        let near = |column: &str, want: Option<f64>| {
            let want = want.expect("a number");
            assert!((number(row, column) - want).abs() < 0.01, "{options}: {column}, not {want}: {row:?}");
        };
        near("mean_fct_ns", summary["mean_fct_ns"].as_f64());
        near("max_fct_ns", summary["max_fct_ns"].as_f64());
        near("iteration_ns", summary["jobs"][0]["iteration_ns"].as_f64());
        let mut fcts: Vec<f64> = place.table("run/fct.csv").iter().map(|flow| number(flow, "fct_ns")).collect();
        fcts.sort_by(f64::total_cmp);
        // By nearest rank.
        near("p50_fct_ns", Some(fcts[fcts.len().div_ceil(2) - 1]));
        near("p99_fct_ns", Some(fcts[(fcts.len() * 99).div_ceil(100) - 1]));
        for column in ["events_executed", "events_skipped", "memo_hits"] {
            assert_eq!(Some(number(&costs[point], column)), summary[column].as_f64(), "{options}: {column}");
        }
    }
    assert!(fs::read(place.0.join("out/sweep.parquet")).expect("a file").starts_with(b"PAR1"));
}

#[test]
fn points_that_do_not_end_well_have_rows_too() {
    let star = "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";
    let sweep = "[grid]\n'fabric.file' = ['whole.txt', 'cut.txt']\n[[point]]\n'models.max-packets' = 4\n";
    let place = Place::new("endings", sweep);
    place.write("whole.txt", star);
    place.write("cut.txt", &star.replace("5 1 4\n4\n", "6 2 4\n4 5\n").replace("2 4 100", "2 5 100"));
    let said = place.wormhole("sweep sweep.toml --out out").succeeds();
    assert!(said.out.contains("3 of 3 points: 1 done, 1 out_of_packets, 1 refused"), "{said:#?}");
    let rows = place.table("out/sweep.csv");
    let endings: Vec<&str> = rows.iter().map(|row| row["ending"].as_str()).collect();
    assert_eq!(endings, ["done", "refused", "out_of_packets"]);
    assert_eq!((rows[1]["flows"].as_str(), place.table("out/costs.csv")[1]["cpu_s"].as_str()), ("", ""));
    let point: Value = serde_json::from_str(&place.read("out/points/1.json")).expect("JSON");
    assert!(point["message"].as_str().is_some_and(|message| !message.is_empty()), "{point}");
}

// The shared memo store.

#[test]
fn points_share_their_records_and_the_number_of_threads_changes_nothing() {
    let place = Place::new("threads", TWENTY);
    let tables = [1, 2, 8].map(|jobs| {
        place.wormhole(&format!("sweep sweep.toml --out out{jobs} --jobs {jobs}")).succeeds();
        ["csv", "parquet"].map(|kind| fs::read(place.0.join(format!("out{jobs}/sweep.{kind}"))).expect("a file"))
    });
    assert!(tables[0] == tables[1] && tables[0] == tables[2], "tables differ with the number of threads");
    let costs = place.table("out1/costs.csv");
    let executed = |point: usize| number(&costs[point], "events_executed");
    // Points 10 to 15 begin with an empty store, 16 to 19 with what those have learnt.
    assert!(executed(16) < executed(15), "{costs:#?}");
    assert!(number(&costs[16], "memo_hits") > number(&costs[15], "memo_hits"), "{costs:#?}");
    let stores = fs::read_dir(place.0.join("out1/memo")).expect("a folder").count();
    assert_eq!(stores, 2, "a store for each set of models, and nothing else");
}

// Killed, interrupted, resumed.

#[test]
fn a_killed_sweep_goes_on_and_gives_the_same_table() {
    let place = Place::new("killed", TWENTY);
    place.write("incast.goal", &incast(60, 400_000));
    let begun = Instant::now();
    place.wormhole("sweep sweep.toml --out whole --jobs 2").succeeds();
    let whole = begun.elapsed();
    let (seed, mut kills) = (11, 0);
    let mut chance = Rng(seed);
    loop {
        let mut child = place.start("sweep sweep.toml --out out --jobs 2 --resume");
        // Whatever the machine: for the first time when there is something to go on with, and much to do.
        if kills == 0 {
            place.await_file("out/points/0.json");
        }
        sleep(whole.mul_f64(chance.between(0, 300) as f64 / 1_000.0));
        if kills == 8 || child.try_wait().expect("a state").is_some() {
            Said::from(child.wait_with_output().expect("it ends")).succeeds();
            break;
        }
        child.kill().expect("it is killed");
        child.wait().expect("it has ended");
        kills += 1;
        assert_whole(&place);
    }
    println!("{kills} times killed at random moments (seed {seed})");
    assert!(kills > 0, "it was too fast to be killed");
    assert_eq!(place.read("out/sweep.csv"), place.read("whole/sweep.csv"));
}

/// All that a killed sweep has left can be read.
fn assert_whole(place: &Place) {
    let files = |folder: &str| {
        let entries = fs::read_dir(place.0.join(folder)).into_iter().flatten();
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect::<Vec<_>>()
    };
    for point in files("out/points").iter().filter(|name| !name.starts_with('.')) {
        let point: Value = serde_json::from_str(&place.read(&format!("out/points/{point}"))).expect("a point is whole");
        assert_eq!(point["ending"], "done");
    }
    for store in files("out/memo").iter().filter(|name| name.split('.').count() == 2) {
        place.wormhole(&format!("memo verify out/memo/{store}")).succeeds();
    }
    if place.has("out/sweep.csv") {
        place.table("out/sweep.csv");
    }
}

#[test]
fn an_interrupted_sweep_keeps_what_is_done() {
    let sweep = "[grid]\n'job.file' = ['incast.goal', 'long.goal']\n'acceleration.accel' = ['off']\n";
    let place = Place::new("interrupted", sweep);
    place.write("long.goal", &incast(1, 1_000_000_000_000));
    let child = place.start("sweep sweep.toml --out out --jobs 1");
    place.await_file("out/points/0.json");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.code, Some(130), "{said:#?}");
    assert!(said.out.contains("1 of 2 points: 1 done"), "{said:#?}");
    assert_eq!(place.table("out/sweep.csv").len(), 1);
    // What is there is not lost by mistake.
    place
        .wormhole("sweep sweep.toml --out out")
        .ends(3, "out: error: it holds a sweep already; --resume goes on with it");
    place
        .wormhole("sweep sweep.toml --out out --resume --memo-limit 8")
        .tells(3, "it holds another sweep: other options");
    place.wormhole("sweep sweep.toml --out out --resume --shard 1/2").tells(3, "it holds shard 1/1, not 1/2");
    place.write("sweep.toml", "scenario = 'scenario.toml'\n[[point]]\n");
    let other = "it holds another sweep: another text of the sweep's file";
    place.wormhole("sweep sweep.toml --out out --resume").tells(3, other);
    assert_eq!(place.table("out/sweep.csv").len(), 1);
}

// Shards.

#[test]
fn shards_join_to_the_table_of_the_whole() {
    let sweep = "[grid]\n'acceleration.accel' = ['exact']\n'models.cca' = ['hpcc', 'dctcp']\n\
                 'config.BUFFER_SIZE' = [8, 16]\n'job.start' = ['0us', '3us']\n";
    let place = Place::new("shards", sweep);
    place.wormhole("sweep sweep.toml --out whole").succeeds();
    for shard in 1..=3 {
        place.wormhole(&format!("sweep sweep.toml --out shard{shard} --shard {shard}/3")).succeeds();
    }
    assert_eq!(place.table("shard3/sweep.csv").len(), 2, "points 2 and 5 of 0 to 7");
    let said = place.wormhole("sweep join joined shard3 shard1 shard2").succeeds();
    assert_eq!(said.out, "8 points from 3 folders: the tables are in joined\n");
    assert_eq!(place.read("joined/sweep.csv"), place.read("whole/sweep.csv"));
    assert_eq!(place.table("joined/costs.csv").len(), 8);
    place.wormhole("sweep join fewer shard1 shard3").ends(3, "error: 3 points not there: 1, 4, 7");
    place.wormhole("sweep join more shard1 shard2 shard3 shard2").ends(3, "shard2: error: point 1 is in shard2, too");
    assert!(!place.has("fewer") && !place.has("more"), "nothing is written");
    place.write("sweep.toml", &format!("scenario = 'scenario.toml'\n{sweep}# Another one.\n"));
    place.wormhole("sweep sweep.toml --out other --shard 2/3").succeeds();
    let fault = "other: error: not of the same sweep as shard1: another text of the sweep's file";
    place.wormhole("sweep join mixed shard1 other shard3").ends(3, fault);
    place.wormhole("sweep join none nowhere").tells(1, "nowhere/sweep.json");
    // The stores are memo files like others.
    let stores = fs::read_dir(place.0.join("shard1/memo")).expect("a folder");
    let names: Vec<String> =
        stores.map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8")).collect();
    let (name, shards) = (&names[0], (1..=3).map(|shard| format!("shard{shard}/memo/{}", names[0])));
    let shards: Vec<String> = shards.filter(|path| place.has(path)).collect();
    place.wormhole(&format!("memo merge {name} {}", shards.join(" "))).succeeds();
}

// What is wrong.

#[test]
fn all_faults_of_all_points_are_told_before_anything_runs() {
    let sweep = "[grid]\n'models.routing' = ['ecmp', 'ecpm']\n'config.BUFFER_SIZE' = [16, 'x']\n\
                 [[point]]\n'fabric.host' = 8\n[[point]]\nvariant = 'slow'\n'job.start' = 'soon'\n";
    let place = Place::new("faults", sweep);
    let said = place.wormhole("sweep sweep.toml --out out");
    assert_eq!(said.code, Some(3), "{said:#?}");
    for (line, part) in [
        ("sweep.toml:3: error: invalid value 'ecpm' for '--routing <ROUTING>'", "[points: 2-3]"),
        ("sweep.toml:4: error: ", "(found `x`) [point: 1]"),
        ("sweep.toml:6: error: no such key; did you mean `hosts`? (found `host`)", "[point: 4]"),
        ("sweep.toml:9: error: invalid value 'soon'", "[point: 5]"),
    ] {
        let told = said.errors.lines().any(|told| told.starts_with(line) && told.ends_with(part));
        assert!(told, "not `{line} ... {part}`:\n{}", said.errors);
    }
    assert!(!place.has("out"), "nothing is written");
    place.write("sweep.toml", "scenario = 'scenario.toml'\n[[point]]\n'acceleration.memo' = 'records.whm'\n");
    place.wormhole("sweep sweep.toml --out out").tells(3, "these runs share a store of their own");
    place.wormhole("sweep nowhere.toml --out out").tells(3, "nowhere.toml: error: cannot be read");
    assert_eq!(place.wormhole("sweep sweep.toml --shard 3/2").code, Some(2));
    assert_eq!(place.wormhole("sweep").code, Some(2));
    assert_eq!(place.wormhole("sweep join out").code, Some(2));
}
