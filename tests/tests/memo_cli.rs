//! The command line's side of memoisation: runs share a memo file, a file that is not theirs does no harm, `memo` looks
//! after files, and `fcg` prints the graph that it is all about.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wormhole_kernel::memo::{KERNEL_VERSION, record_name};
use wormhole_memo_fmt::{FORMAT_VERSION, HEADER_MAX, Header, Reader, record_len, write_header, write_record};
use wormhole_tests::{Said, empty_folder, manual_cells, wormhole_in};

/// Hosts 0 and 1 | switch 4 - switch 5 | hosts 2 and 3.
const DUMBBELL: &str = "6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n3 5 100Gbps 1us 0\n\
                        4 5 100Gbps 1us 0\n";

/// Two flows through the link between the switches, one the other way.
const FLOWS: &str = "3\n0 2 3 100 1000000 0\n1 3 3 101 500000 0\n2 0 3 102 700000 0\n";

/// A file of format version 0, as it was before there were records.
const VERSION_0: [u8; 18] =
    [0x89, 0x57, 0x48, 0x4d, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x02, 0x00, 0x01, 0x05, 0x6c, 0xb3, 0x77, 0x49];

/// A sound record whose key, a word 1, takes two bytes where one would do.
const LONG_WINDED: [u8; 14] = [0x06, 0x00, 0x00, 0x00, 0x01, 0x00, 0x02, 0xf0, 0x01, 0x00, 0x8e, 0x41, 0x1e, 0x23];

/// A folder for one test, with inputs in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = Place(empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("memo").join(name)));
        place.write("topology.txt", DUMBBELL.as_bytes());
        place.write("flows.txt", FLOWS.as_bytes());
        place
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.0.join(name), bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).expect("JSON")
    }

    fn command(&self, arguments: &str) -> Command {
        wormhole_in(&self.0, arguments)
    }

    fn wormhole(&self, arguments: &str) -> Said {
        self.command(arguments).output().expect("wormhole runs").into()
    }

    /// Runs the inputs; options come last, so that they are the ones that count.
    fn run(&self, options: &str) -> Said {
        self.wormhole(&format!("run --topology topology.txt --flows flows.txt --out out {options}"))
    }

    /// The header that a run of this place gives its file.
    fn header(&self) -> Header {
        self.run("--accel exact --memo header.whm --memo-check 0").succeeds();
        header(&self.read("header.whm"))
    }
}

const HEADER: Header = Header { format_version: FORMAT_VERSION, kernel_version: KERNEL_VERSION, models: 0xab };

/// The bytes of a memo file.
fn memo_file(header: &Header, records: &[(&[u64], &[u64])]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_MAX];
    let length = write_header(header, &mut bytes).expect("room");
    bytes.truncate(length);
    for (key, value) in records {
        let mut record = vec![0; record_len(key, value)];
        write_record(key, value, &mut record).expect("room");
        bytes.extend(record);
    }
    bytes
}

fn header(bytes: &[u8]) -> Header {
    *Reader::new(bytes).expect("a memo file").header()
}

/// Keys and values of a sound file.
fn records(bytes: &[u8]) -> Vec<(Vec<u64>, Vec<u64>)> {
    let sound = Reader::new(bytes).expect("a memo file").map(|record| record.expect("a sound record"));
    sound.map(|record| (record.key().collect(), record.value().collect())).collect()
}

// Runs.

#[test]
fn a_run_uses_what_an_earlier_one_has_left() {
    let place = Place::new("reuse");
    place.run("--accel off").succeeds();
    let plain = place.read("out/fct.csv");
    let options = "--accel exact --memo records.whm --memo-check 0";
    place.run(options).succeeds();
    assert!(place.read("out/fct.csv") == plain, "exact keys change nothing");
    let (file, first) = (place.read("records.whm"), place.json("out/summary.json"));
    assert!(!records(&file).is_empty(), "records are kept");
    assert!(first["memo_misses"].as_u64() > Some(0) && first["memo_bytes"].as_u64() > Some(0), "{first:#}");

    place.run(options).succeeds();
    assert!(place.read("out/fct.csv") == plain, "a record changes nothing");
    let second = place.json("out/summary.json");
    assert!(second["memo_hits"].as_u64() > Some(0) && second["time_memo_ns"].as_u64() > Some(0), "{second:#}");
    assert!(second["events_executed"].as_u64() < first["events_executed"].as_u64(), "{second:#}");
    assert!(place.read("records.whm") == file, "what is in the file is not written again");
}

#[test]
fn verify_uses_and_extends_a_file_too() {
    let place = Place::new("verify");
    let arguments = "verify --topology topology.txt --flows flows.txt --accel exact --memo records.whm --out out";
    place.wormhole(arguments).succeeds();
    let size = place.read("records.whm").len();
    place.wormhole(arguments).succeeds();
    let report = place.json("out/verify.json");
    assert_eq!(report["fct_identical"], true, "{report:#}");
    assert_eq!(place.read("records.whm").len(), size);
    assert!(report["memo_hits"].as_u64() > Some(0), "{report:#}");
}

#[test]
fn an_empty_file_and_a_missing_one_are_made() {
    let place = Place::new("empty");
    let want = place.header();
    assert_eq!((want.format_version, want.kernel_version), (FORMAT_VERSION, KERNEL_VERSION));
    for (name, bytes) in [("empty.whm", Some(0)), ("begun.whm", Some(5)), ("missing.whm", None)] {
        if let Some(bytes) = bytes {
            place.write(name, &memo_file(&want, &[])[..bytes]);
        }
        place.run(&format!("--accel exact --memo {name}")).succeeds();
        assert!(place.read(name) == place.read("header.whm"), "{name}");
    }
}

#[test]
fn a_file_of_other_models_is_not_used_and_stays() {
    let place = Place::new("models");
    let here = place.header();
    let others = [
        Header { models: here.models.wrapping_add(1), ..here },
        Header { kernel_version: here.kernel_version + 1, ..here },
    ];
    for other in others {
        let bytes = memo_file(&other, &[(&[1, 2], &[3])]);
        place.write("other.whm", &bytes);
        let said = place.run("--accel exact --memo other.whm");
        said.ends(0, "other.whm: warning: made with other models; it is not used and stays as it is");
        assert!(place.read("other.whm") == bytes);
    }
}

#[test]
fn a_file_of_another_version_is_not_used_and_stays() {
    let place = Place::new("version");
    place.write("old.whm", &VERSION_0);
    let said = place.run("--accel exact --memo old.whm");
    let version = "old.whm: warning: memo file of format version 0; this program knows version 1; it is not used and \
                   stays as it is";
    said.ends(0, version);
    assert!(place.read("old.whm") == VERSION_0);
}

#[test]
fn what_is_no_memo_file_is_an_error_and_stays() {
    let place = Place::new("alien");
    let said = place.run("--accel exact --memo flows.txt");
    said.ends(3, "flows.txt: error: not a memo file");
    assert!(place.read("flows.txt") == FLOWS.as_bytes());
    assert!(!place.0.join("out").exists(), "nothing was run");

    let mut damaged = memo_file(&HEADER, &[(&[1], &[2])]);
    damaged[12] ^= 1;
    place.write("damaged.whm", &damaged);
    let said = place.run("--accel exact --memo damaged.whm");
    said.ends(3, "damaged.whm: error: the memo file is corrupt: a checksum differs");
    assert!(place.read("damaged.whm") == damaged);

    let said = place.run("--accel exact --memo .");
    assert_eq!(said.code, Some(3), "{said:#?}");
    assert!(said.errors.contains(".: error: cannot be read: "), "{said:#?}");
}

/// One good record of no run, then one that is cut or changed.
#[test]
fn a_damaged_end_is_dropped_and_cut() {
    let place = Place::new("damage");
    let here = place.header();
    let kept = memo_file(&here, &[(&[1, 2], &[3])]);
    let whole = memo_file(&here, &[(&[1, 2], &[3]), (&[4, 5], &[6])]);
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("bytes") ^= 1;
    let torn = &whole[..whole.len() - 1];
    for (name, bytes, why) in [
        ("torn.whm", torn, "the memo file ends within its header or a record"),
        ("flipped.whm", &flipped, "the memo file is corrupt: a checksum differs"),
    ] {
        place.write(name, bytes);
        let dropped = bytes.len() - kept.len();
        let said = place.run(&format!("--accel exact --memo {name} --memo-check 0"));
        said.ends(0, &format!("{name}: warning: {dropped} bytes dropped from byte {} on: {why}", kept.len()));
        let after = place.read(name);
        assert!(after.starts_with(&kept) && after.len() > kept.len(), "{name} is extended behind what is sound");
        assert_eq!(records(&after)[1..], records(&place.read("header.whm")), "{name}");
    }
}

#[test]
fn runs_that_end_at_once_spoil_nothing() {
    let place = Place::new("at-once");
    let spawn = |run: usize| {
        // Flows of other sizes, so that every run has records of its own.
        place.write(&format!("flows{run}.txt"), format!("1\n0 2 3 100 {} 0\n", 50_000 + 7_000 * run).as_bytes());
        let arguments = format!(
            "run --topology topology.txt --flows flows{run}.txt --accel exact --memo shared.whm --out out{run}"
        );
        place.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("wormhole runs")
    };
    let runs: Vec<_> = (0..6).map(spawn).collect();
    for mut run in runs {
        assert!(run.wait().expect("an end").success());
    }
    let all = records(&place.read("shared.whm"));
    let keys: BTreeSet<&Vec<u64>> = all.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), all.len(), "no record is there twice");
    assert!(all.len() >= 6, "{} records of 6 runs", all.len());
}

#[test]
fn memoisation_that_is_off_makes_a_file_of_no_use() {
    let place = Place::new("off");
    let said = place.run("--accel off --memo records.whm");
    said.ends(0, "records.whm: warning: of no use with --accel off");
    let said = place.run("--memo-keys off --memo records.whm");
    said.ends(0, "records.whm: warning: of no use with --memo-keys off");
    assert!(!place.0.join("records.whm").exists());
    let said = place.run("--accel exact --memo-keys quantised");
    said.ends(3, "--memo-keys: error: tier exact has no errors: its keys are exact (found `quantised`)");
}

#[test]
fn a_record_that_is_not_what_its_simulation_gives_is_found() {
    let place = Place::new("mismatch");
    place.run("--accel exact --memo records.whm --memo-check 0").succeeds();
    let bytes = place.read("records.whm");
    let mut wrong = records(&bytes);
    wrong.iter_mut().for_each(|(_, value)| *value.last_mut().expect("a value has words") ^= 1);
    let borrowed: Vec<(&[u64], &[u64])> = wrong.iter().map(|(key, value)| (&key[..], &value[..])).collect();
    let wrong_bytes = memo_file(&header(&bytes), &borrowed);
    place.write("records.whm", &wrong_bytes);
    let said = place.run("--accel exact --memo records.whm --memo-check 100");
    assert_eq!(said.code, Some(8), "{said:#?}");
    let names =
        |key: &Vec<u64>| said.errors.contains(&format!("records.whm: error: record {:016x} ", record_name(key)));
    assert!(wrong.iter().any(|(key, _)| names(key)), "{said:#?}");
    assert!(place.read("records.whm") == wrong_bytes, "the file stays as it is");
}

// Commands.

#[test]
fn info_tells_what_files_hold() {
    let place = Place::new("info");
    let bytes = memo_file(&HEADER, &[(&[1], &[2]), (&[3], &[4]), (&[1], &[5])]);
    place.write("a.whm", &bytes);
    place.write("b.whm", &bytes[..bytes.len() - 2]);
    let said = place.wormhole("memo info a.whm").succeeds();
    for line in ["a.whm", "  models          00000000000000ab", "  records         3", "  distinct keys   2"] {
        assert!(said.out.lines().any(|l| l == line), "no `{line}`: {said:#?}");
    }
    let said = place.wormhole("memo info --json a.whm b.whm").succeeds();
    assert!(said.errors.starts_with("b.whm: warning: from byte "), "{said:#?}");
    let infos: Value = serde_json::from_str(&said.out).expect("JSON");
    let of = |file: usize, key: &str| infos[file][key].as_u64().expect(key) as usize;
    let whole = ["records", "distinct_keys", "bytes", "sound_bytes", "dropped_bytes"].map(|key| of(0, key));
    assert_eq!(whole, [3, 2, bytes.len(), bytes.len(), 0]);
    let sound = bytes.len() - record_len(&[1], &[5]);
    let torn = ["records", "distinct_keys", "bytes", "sound_bytes", "dropped_bytes"].map(|key| of(1, key));
    assert_eq!(torn, [2, 2, bytes.len() - 2, sound, bytes.len() - 2 - sound]);
    assert_eq!(
        (&infos[0]["models"], &infos[0]["kernel_version"]),
        (&"00000000000000ab".into(), &KERNEL_VERSION.into())
    );

    place.write("old.whm", &VERSION_0);
    let said = place.wormhole("memo info flows.txt a.whm nowhere.whm old.whm");
    said.ends(3, "flows.txt: error: not a memo file");
    said.ends(3, "old.whm: error: memo file of format version 0; this program knows version 1");
    assert!(
        said.errors.contains("nowhere.whm: error: cannot be read: ") && said.out.starts_with("a.whm\n"),
        "{said:#?}"
    );
}

#[test]
fn merge_puts_files_of_the_same_models_together() {
    let place = Place::new("merge");
    place.write("a.whm", &memo_file(&HEADER, &[(&[1], &[10]), (&[2], &[20])]));
    place.write("b.whm", &memo_file(&HEADER, &[(&[3], &[30]), (&[1], &[11])]));
    place.wormhole("memo merge all.whm a.whm b.whm").succeeds();
    let want = memo_file(&HEADER, &[(&[2], &[20]), (&[3], &[30]), (&[1], &[11])]);
    assert_eq!(records(&place.read("all.whm")), records(&want), "later records win");
    assert!(place.read("all.whm") == want);

    let said = place.wormhole("memo merge all.whm a.whm");
    said.ends(3, "all.whm: error: it is there already and not among the files to merge: it stays as it is");
    assert!(place.read("all.whm") == want);
    place.wormhole("memo merge all.whm a.whm all.whm").succeeds();
    assert_eq!(records(&place.read("all.whm")).len(), 3);

    place.write("c.whm", &memo_file(&Header { models: 1, ..HEADER }, &[(&[4], &[40])]));
    let said = place.wormhole("memo merge new.whm a.whm c.whm");
    said.ends(9, "a.whm and c.whm: error: made with different models or kernels");
    let said = place.wormhole("memo merge new.whm a.whm flows.txt");
    said.ends(3, "flows.txt: error: not a memo file");
    let names: Vec<_> = fs::read_dir(&place.0).expect("a folder").map(|entry| entry.expect("an entry")).collect();
    assert!(names.iter().all(|entry| entry.file_name() != "new.whm"), "nothing is made");
    assert!(names.iter().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')), "nothing is left over");
}

#[test]
fn verify_tells_every_fault_with_its_place() {
    let place = Place::new("faults");
    let good = memo_file(&HEADER, &[(&[1], &[2]), (&[3], &[4])]);
    let mut flipped = good.clone();
    let second = good.len() - record_len(&[3], &[4]);
    flipped[second + 5] ^= 1;
    place.write("good.whm", &good);
    place.write("flipped.whm", &flipped);
    place.write("torn.whm", &good[..good.len() - 1]);
    place.write("long.whm", &[&good, &LONG_WINDED[..], &good[second..good.len() - 1]].concat());
    let said = place.wormhole("memo verify good.whm").succeeds();
    assert_eq!(said.out, "good.whm: 2 records, all sound\n");
    let said = place.wormhole("memo verify flipped.whm good.whm torn.whm flows.txt long.whm");
    said.ends(3, &format!("flipped.whm: error: at byte {second}: the memo file is corrupt: a checksum differs"));
    said.ends(3, &format!("torn.whm: error: at byte {second}: the memo file ends within its header or a record"));
    let (long, end) = (good.len(), good.len() + LONG_WINDED.len());
    said.ends(3, &format!("long.whm: error: at byte {long}: the record is not written as this program writes it"));
    said.ends(3, &format!("long.whm: error: at byte {end}: the memo file ends within its header or a record"));
    said.ends(3, "flows.txt: error: at byte 0: not a memo file");
    assert_eq!(said.out, "good.whm: 2 records, all sound\n");
}

#[test]
fn gc_drops_what_is_replaced_and_what_is_damaged() {
    let place = Place::new("gc");
    let bytes = memo_file(&HEADER, &[(&[1], &[2]), (&[3], &[4]), (&[1], &[5]), (&[6], &[7])]);
    place.write("a.whm", &bytes[..bytes.len() - 1]);
    place.write("b.whm", &bytes);
    let said = place.wormhole("memo gc a.whm");
    let after = memo_file(&HEADER, &[(&[3], &[4]), (&[1], &[5])]);
    assert_eq!(said.out, format!("a.whm: {} bytes before, {} after\n", bytes.len() - 1, after.len()));
    assert!(said.code == Some(0) && place.read("a.whm") == after, "{said:#?}");

    place.wormhole("memo gc --keep 2 b.whm").succeeds();
    assert!(place.read("b.whm") == memo_file(&HEADER, &[(&[1], &[5]), (&[6], &[7])]));

    let said = place.wormhole("memo gc flows.txt b.whm");
    said.ends(3, "flows.txt: error: not a memo file");
    assert!(said.out.starts_with("b.whm: ") && place.read("flows.txt") == FLOWS.as_bytes());
    assert!(
        fs::read_dir(&place.0).expect("a folder").all(|e| !e
            .expect("an entry")
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
}

#[test]
fn help_and_manual_list_the_same_exit_codes() {
    let help = Place::new("help").wormhole("--help").succeeds().out;
    let codes = help.split_once("Exit codes: ").expect("a list").1.split_whitespace();
    let told: BTreeSet<u8> = codes.filter_map(|word| word.parse().ok()).collect();
    let listed: BTreeSet<u8> =
        manual_cells("| exit code | meaning |").iter().filter_map(|cell| cell.parse().ok()).collect();
    assert_eq!(told, listed);
    assert!(listed.contains(&9));
}

// The flow conflict graph.

#[test]
fn fcg_lists_flows_and_which_of_them_share_links() {
    let place = Place::new("fcg");
    let at = |options: &str| {
        let arguments = format!("fcg --topology topology.txt --flows flows.txt --cca fixed --at 10us {options}");
        place.wormhole(&arguments).succeeds().out
    };
    let text = at("");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "flow conflict graph at 10us: 3 flows, 1 edge");
    for (line, start) in lines[1..].iter().zip(["flow 0: 0 -> 2, 100Gbps, ", "flow 1: 1 -> 3, ", "flow 2: 2 -> 0, "]) {
        assert!(line.starts_with(start), "{text}");
    }
    assert_eq!(lines[4..], ["edge 0 -- 1: 1 link shared"]);

    let dot = "graph fcg {\n  label=\"flow conflict graph at 10us: 3 flows, 1 edge\";\n  \
               0 [label=\"0: 0 -> 2\\n100Gbps\"];\n  1 [label=\"1: 1 -> 3\\n100Gbps\"];\n  \
               2 [label=\"2: 2 -> 0\\n100Gbps\"];\n  0 -- 1 [label=\"1\"];\n}\n";
    assert_eq!(at("--format dot"), dot);
}

#[test]
fn fcg_needs_a_time() {
    let place = Place::new("fcg-time");
    let said = place.wormhole("fcg --topology topology.txt --flows flows.txt --at soon");
    assert!(said.code == Some(2) && said.errors.contains("--at"), "{said:#?}");
    let said = place.wormhole("fcg --topology topology.txt --flows nowhere.txt --at 1us");
    assert!(said.code == Some(3) && said.errors.contains("nowhere.txt: error: cannot be read"), "{said:#?}");
}
