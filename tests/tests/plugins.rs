//! Model plugins: the C interface is what Rust takes it for; templates work; a twin of a model gives the same results;
//! a plugin that is not as it must be is refused, or ends its run, with one clear error; the document tells the truth.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wormhole_kernel::event::CCA_TIMERS;
use wormhole_models::kit::{MAX_TIMER, MIN_TIMER};
use wormhole_models::plugin::{self, abi};
use wormhole_tests::{Said, component, data, empty_folder, root, wormhole_in};

/// Four hosts at a switch: 0 to 2 send to 3, twice.
const TOPOLOGY: &str = "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";
const FLOWS: &str = "6\n0 3 3 100 900000 0\n1 3 3 100 700000 0\n2 3 3 100 800000 0\n\
                     0 3 3 100 900000 0.01\n1 3 3 100 700000 0.01\n2 3 3 100 800000 0.01\n";
/// A step at 100 kB for all congestion controls.
const CONFIG: &str = "KMAX_MAP 1 100000000000 100\nKMIN_MAP 1 100000000000 100\nPMAX_MAP 1 100000000000 1.0\n";

/// Warnings that C code here must not have.
const WARNINGS: [&str; 5] = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic"];

/// Whether there is a C compiler; if not, says that `test` is skipped.
fn has_cc(test: &str) -> bool {
    component::is_there(test, "a C compiler (cc)", component::starts("cc", &["--version"]))
}

/// A folder for one test, with a scenario in it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let place = Place(empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins").join(name)));
        for (name, text) in [("topology.txt", TOPOLOGY), ("flows.txt", FLOWS), ("config.txt", CONFIG)] {
            place.write(name, text);
        }
        place
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn compile(&self, source: &Path, flags: &[&str], to: &str) {
        let output = Command::new("cc")
            .args(WARNINGS)
            .args(["-O2", "-ffp-contract=off", "-I"])
            .arg(root().join("models/include"))
            .args(flags)
            .arg("-o")
            .arg(self.0.join(to))
            .arg(source)
            .output()
            .expect("cc runs");
        assert!(output.status.success(), "{}: {}", source.display(), String::from_utf8_lossy(&output.stderr));
    }

    /// Builds a plugin in this folder.
    fn plugin(&self, source: &Path, flags: &[&str], to: &str) {
        self.compile(source, &[&["-shared", "-fPIC"], flags].concat(), to);
    }

    fn wormhole(&self, arguments: &str) -> Said {
        wormhole_in(&self.0, arguments).output().expect("wormhole runs").into()
    }

    /// `wormhole run` of the folder's scenario.
    fn run(&self, options: &str) -> Said {
        let inputs = "--topology topology.txt --flows flows.txt --config config.txt";
        self.wormhole(&format!("run {inputs} --out out {options}"))
    }

    /// The ends of the flows of a run that succeeds, and its summary.
    fn results(&self, options: &str) -> (String, serde_json::Value) {
        self.run(options).succeeds();
        (self.read("out/fct.csv"), serde_json::from_str(&self.read("out/summary.json")).expect("JSON"))
    }
}

fn template(name: &str) -> PathBuf {
    root().join("models/templates/c").join(name)
}

fn source(name: &str) -> PathBuf {
    data("plugins").join(name)
}

/// A field: its structure, its name, where it is, and its size.
type Field = (&'static str, &'static str, usize, usize);

fn size_of_field<S, F>(_: impl Fn(&S) -> &F) -> usize {
    size_of::<F>()
}

/// Fields of C structures as Rust has them.
macro_rules! fields {
    ($($name:literal: $structure:ty { $($field:ident $(. $inner:ident)?),* $(,)? })*) => {
        vec![$((
            $name,
            size_of::<$structure>(),
            vec![$({
                let offset = core::mem::offset_of!($structure, $field $(. $inner)?);
                let size = size_of_field(|s: &$structure| &s.$field $(. $inner)?);
                let name = stringify!($field $(. $inner)?).rsplit('.').next().unwrap_or("").trim();
                ($name, name, offset, size) as Field
            },)*],
        ),)*]
    };
}

fn structures() -> Vec<(&'static str, usize, Vec<Field>)> {
    fields! {
        "wormhole_plugin": abi::Head {
            magic, abi_version, struct_size, kind, model_version, name, config_hash, config_size, config_align,
            state_size, state_align, defaults, configure,
        }
        "wormhole_flow": abi::Flow { line_rate_bps, base_rtt_ps, bdp_bytes, mtu_bytes, reserved }
        "wormhole_hop": abi::Hop { at_ps, tx_bytes, rate_bps, queue_bytes }
        "wormhole_ack": abi::Ack {
            now_ps, acked_bytes, snd_nxt_bytes, rtt_ps, marked, hop_count, hops_passed, reserved, hops,
        }
        "wormhole_out": abi::Out { window_bytes, rate_bps, repace, timers_set, timer_ps }
        "wormhole_origin": abi::Origin { now_ps, acked_bytes, hops, hop_count, reserved }
        "wormhole_port": abi::Port { rate_bps, delay_ps, nic_rate_bps }
        "wormhole_cca": abi::Cca {
            plugin, functions.needs_telemetry, functions.header_bytes, functions.start, functions.on_ack,
            functions.on_timer, functions.on_timeout, functions.relative, functions.absolute,
        }
        "wormhole_marker": abi::Marker { plugin, functions.start, functions.marks }
        "wormhole_buffers": abi::Buffers {
            plugin, functions.port_state_size, functions.port_state_align, functions.queue_state_size,
            functions.queue_state_align, functions.start_port, functions.add_port, functions.admit, functions.pauses,
            functions.release, functions.resumes, functions.is_calm, functions.replace,
        }
    }
}

/// The header's numbers as Rust has them.
fn constants() -> Vec<(&'static str, u64)> {
    vec![
        ("WORMHOLE_PLUGIN_MAGIC", abi::MAGIC),
        ("WORMHOLE_PLUGIN_ABI", abi::ABI_VERSION.into()),
        ("WORMHOLE_CCA", plugin::Kind::Cca as u64),
        ("WORMHOLE_MARKER", plugin::Kind::Marker as u64),
        ("WORMHOLE_BUFFERS", plugin::Kind::Buffers as u64),
        ("WORMHOLE_OK", abi::OK as u64),
        ("WORMHOLE_UNKNOWN_KEY", abi::UNKNOWN_KEY as u64),
        ("WORMHOLE_BAD_VALUE", abi::BAD_VALUE as u64),
        ("WORMHOLE_MAX_NAME_BYTES", plugin::MAX_NAME as u64),
        ("WORMHOLE_MAX_CONFIG_BYTES", plugin::MAX_CONFIG.into()),
        ("WORMHOLE_MAX_CCA_STATE_BYTES", plugin::MAX_CCA_STATE.into()),
        ("WORMHOLE_MAX_MARKER_STATE_BYTES", plugin::MAX_MARKER_STATE.into()),
        ("WORMHOLE_MAX_SWITCH_STATE_BYTES", plugin::MAX_SWITCH_STATE.into()),
        ("WORMHOLE_MAX_PORT_STATE_BYTES", plugin::MAX_PORT_STATE.into()),
        ("WORMHOLE_MAX_QUEUE_STATE_BYTES", plugin::MAX_QUEUE_STATE.into()),
        ("WORMHOLE_MAX_HEADER_BYTES", plugin::MAX_HEADER.into()),
        ("WORMHOLE_TIMERS", CCA_TIMERS as u64),
        ("WORMHOLE_MIN_TIMER_PS", abi::MIN_TIMER_PS),
        ("WORMHOLE_MAX_TIMER_PS", abi::MAX_TIMER_PS),
    ]
}

#[test]
fn the_header_is_what_rust_takes_it_for() {
    if !has_cc("the_header_is_what_rust_takes_it_for") {
        return;
    }
    let place = Place::new("header");
    let (mut program, mut expected) = (String::from("#include \"wormhole_plugin.h\"\n"), String::new());
    program += "#include <stddef.h>\n#include <stdio.h>\n#define SIZE(s, f) sizeof(((struct s *)0)->f)\n";
    program += "int main(void) {\n";
    for (name, size, fields) in structures() {
        let _ = writeln!(program, "printf(\"{name} %zu\\n\", sizeof(struct {name}));");
        let _ = writeln!(expected, "{name} {size}");
        // Nothing is between fields, so a field that only C has would show.
        assert_eq!(fields.iter().map(|(.., size)| size).sum::<usize>(), size, "{name}");
        for (name, field, offset, size) in fields {
            let place = format!("offsetof(struct {name}, {field}), SIZE({name}, {field})");
            let _ = writeln!(program, "printf(\"{name}.{field} %zu %zu\\n\", {place});");
            let _ = writeln!(expected, "{name}.{field} {offset} {size}");
        }
    }
    for (name, value) in constants() {
        let _ = writeln!(program, "printf(\"{name} %llu\\n\", (unsigned long long){name});");
        let _ = writeln!(expected, "{name} {value}");
    }
    program += "return 0;\n}\n";
    place.write("header.c", &program);
    place.compile(&place.0.join("header.c"), &[], "header");
    let output = Command::new(place.0.join("header")).output().expect("the program runs");
    assert_eq!(String::from_utf8(output.stdout).expect("UTF-8"), expected);
    // The kit has the same bounds for models in Rust.
    assert_eq!((MIN_TIMER.0, MAX_TIMER.0), (abi::MIN_TIMER_PS, abi::MAX_TIMER_PS));
}

/// The lines of a check, without its sum.
fn verdicts(said: &Said) -> BTreeMap<String, String> {
    let lines = said.out.lines().filter(|line| !line.starts_with(' ') && !line.contains(" passed, "));
    let pair = |line: &str| line.split_once(": ").map(|(name, verdict)| (name.to_owned(), verdict.to_owned()));
    lines.map(|line| pair(line).unwrap_or_else(|| panic!("`{line}`"))).collect()
}

#[test]
fn templates_pass_their_check_and_run() {
    if !has_cc("templates_pass_their_check_and_run") {
        return;
    }
    let place = Place::new("templates");
    for (name, checks, parameter, cca, usual) in [
        ("my_cca", 10, "gain_shift=3", "my-cca", "dctcp"),
        ("my_marker", 6, "min_bytes=20000,max_bytes=90000", "dctcp", "dctcp"),
        ("my_buffers", 9, "pause_bytes=20000", "fixed", "fixed"),
    ] {
        let file = format!("{name}.so");
        place.plugin(&template(&format!("{name}.c")), &[], &file);
        let said = place.wormhole(&format!("plugin check {file}")).succeeds();
        assert!(said.out.ends_with(&format!("{file}: {checks} passed, 0 failed\n")), "{said:#?}");
        let info = place.wormhole(&format!("plugin info {file}:{parameter}")).succeeds().out;
        assert!(info.contains(&format!("name            {}\n", name.replace('_', "-"))), "{info}");

        // It makes a difference, and so do its parameters; acceleration makes none.
        let usual = place.results(&format!("--cca {usual} --accel off")).0;
        let plugged = place.results(&format!("--cca {cca} --accel off --plugin {file}")).0;
        let options = format!("--cca {cca} --plugin {file}:{parameter}");
        let parametrised = place.results(&format!("--accel off {options}")).0;
        assert_ne!(parametrised, usual, "{name}");
        assert_ne!(parametrised, plugged, "{name}");
        for profile in ["ps", "ns3"] {
            let run = |accel| place.results(&format!("--profile {profile} --accel {accel} {options}")).0;
            assert_eq!(run("exact"), run("off"), "{name}, {profile}");
        }
        let verified = place.wormhole(&format!(
            "verify --topology topology.txt --flows flows.txt --config config.txt --out checked {options}"
        ));
        assert!(verified.succeeds().out.contains("6 of 6 flows"));
        let graph = format!("fcg --topology topology.txt --flows flows.txt --config config.txt --at 20us {options}");
        assert!(place.wormhole(&graph).succeeds().out.contains("3 flows, 3 edges"));
    }
    // All three at once.
    let all = "--plugin my_cca.so --plugin my_marker.so:min_bytes=20000,max_bytes=90000 --plugin my_buffers.so";
    assert_eq!(place.results(&format!("{all} --accel exact")).0, place.results(&format!("{all} --accel off")).0);
    let summary = place.results(&format!("{all} --accel off")).1;
    assert_eq!(summary["cca"], "my-cca");
}

#[test]
fn scenario_files_name_plugins() {
    if !has_cc("scenario_files_name_plugins") {
        return;
    }
    let place = Place::new("scenario");
    place.plugin(&template("my_cca.c"), &[], "my_cca.so");
    place.plugin(&template("my_marker.c"), &[], "my_marker.so");
    fs::create_dir_all(place.0.join("elsewhere")).expect("a folder");
    let scenario = |plugin: &str| {
        let fabric = "[fabric]\nfile = '../topology.txt'\n";
        place.write("elsewhere/s.toml", &format!("{fabric}[models]\nconfig = '../config.txt'\nplugin = {plugin}\n"));
        place.wormhole("run elsewhere/s.toml --flows flows.txt --accel off --out scenario")
    };
    let ends = || place.read("scenario/fct.csv");
    let typed = |plugins: &str| place.results(&format!("--accel off {plugins}")).0;
    scenario("'../my_cca.so:gain_shift=3'").succeeds();
    assert_eq!(ends(), typed("--plugin my_cca.so:gain_shift=3"));
    let marker = "my_marker.so:min_bytes=20000,max_bytes=90000";
    scenario(&format!("['../my_cca.so', '../{marker}']")).succeeds();
    assert_eq!(ends(), typed(&format!("--plugin my_cca.so --plugin {marker}")));
    let said = scenario("['../my_cca.so:gain_shift=x']");
    said.tells(3, "elsewhere/s.toml:5: error: ");
    said.tells(3, "`gain_shift=x`: the value is a whole number of 64 bits");
}

#[test]
fn a_twin_of_dctcp_gives_the_results_of_dctcp() {
    if !has_cc("a_twin_of_dctcp_gives_the_results_of_dctcp") {
        return;
    }
    let place = Place::new("twin");
    place.plugin(&source("dctcp_twin.c"), &[], "twin.so");
    place.plugin(&source("dctcp_twin.c"), &["-DWITHOUT_RELATIVE"], "older.so");
    let check = place.wormhole("plugin check twin.so").succeeds();
    assert!(check.out.ends_with("twin.so: 10 passed, 0 failed\n"), "{check:#?}");
    for profile in ["ps", "ns3"] {
        let run = |options: &str| place.results(&format!("--profile {profile} {options}"));
        let (usual, _) = run("--cca dctcp --accel off");
        assert_eq!(run("--plugin twin.so --accel off").0, usual, "{profile}");
        let (ends, summary) = run("--plugin twin.so --accel exact --memo-check 100");
        assert_eq!(ends, usual, "{profile}, exact");
        // The second time the flows start together is known from the first, and proves right.
        assert!(summary["memo_checked"].as_u64() > Some(0), "{profile}: {summary}");

        // Records of one run serve the next, but not another build of the plugin.
        let memo = format!("--accel exact --memo-check 0 --memo {profile}.whm");
        let (first, alone) = run(&format!("--plugin twin.so {memo}"));
        let (second, summary) = run(&format!("--plugin twin.so {memo}"));
        assert_eq!((&first, &second), (&usual, &usual));
        let hits = [&alone, &summary].map(|summary| summary["memo_hits"].as_u64());
        assert!(hits[0] > Some(0) && hits[1] > hits[0], "{profile}: {alone} {summary}");
        place.plugin(&source("dctcp_twin.c"), &["-DANOTHER_BUILD", "-g"], "another.so");
        let said = place.run(&format!("--profile {profile} --plugin another.so {memo}")).succeeds();
        assert!(said.errors.contains(&format!("{profile}.whm: warning: ")), "{said:#?}");

        // Without relative states nothing is memoised or skipped, and nothing changes.
        let (ends, summary) = run("--plugin older.so --accel exact");
        assert_eq!(ends, usual, "{profile}, without relative states");
        let nothing = ["memo_hits", "events_skipped"].map(|key| summary[key].as_u64());
        assert_eq!(nothing, [Some(0); 2], "{profile}: {summary}");
    }
    let check = place.wormhole("plugin check older.so").succeeds();
    let why = "not applicable: the model has no relative states: it is always simulated";
    let lacking = verdicts(&check).values().filter(|verdict| *verdict == why).count();
    assert_eq!(lacking, 4, "{check:#?}");
    assert!(place.wormhole("plugin info older.so").succeeds().out.contains("accelerated     no\n"));
}

#[test]
fn what_is_no_plugin_is_refused() {
    if !has_cc("what_is_no_plugin_is_refused") {
        return;
    }
    let place = Place::new("refused");
    let refused = |flag: &str, expected: &str| {
        let flags: Vec<&str> = if flag.is_empty() { vec![] } else { vec![flag] };
        place.plugin(&source("hostile_cca.c"), &flags, "bad.so");
        let line = format!("bad.so: error: {expected}");
        place.run("--plugin bad.so").ends(11, &line);
        place.wormhole("plugin check bad.so").ends(11, &line);
        place.wormhole("plugin info bad.so").ends(11, &line);
    };
    refused("-DNULL_DESCRIPTOR", "wormhole_plugin() returned null, expected a descriptor");
    refused("-DMAGIC=1", "magic is 0x1, expected 0x47554c504d524f57");
    refused("-DABI=2", "abi_version is 2, expected 1");
    refused("-DSTRUCT_SIZE=16", "struct_size is 16, expected at least 72");
    refused("-DSTRUCT_SIZE=88", "struct_size is 88, expected at least 96");
    refused("-DKIND=9", "kind is 9, expected 1 (cca), 2 (marker) or 3 (buffers)");
    refused("-DNAME=0", "name is missing, empty or too long, expected 1 to 32 bytes");
    refused("-DNAME=\"\"", "name is missing, empty or too long, expected 1 to 32 bytes");
    refused(&format!("-DNAME=\"{}\"", "x".repeat(33)), "name is missing, empty or too long, expected 1 to 32 bytes");
    refused("-DNAME=\"\\xff\"", "name has the byte 0xff, expected a-z, 0-9, - and _");
    refused("-DNAME=\"hpcc\"", "name is hpcc, expected one that no model of Wormhole has");
    refused("-DSTATE_SIZE=129", "state_size is 129, expected at most 128");
    refused("-DSTATE_ALIGN=3", "state_align is 3, expected 1, 2, 4 or 8");
    refused("-DSTATE_ALIGN=16", "state_align is 16, expected 1, 2, 4 or 8");
    refused("-DCONFIG_SIZE=4097", "config_size is 4097, expected at most 4096");
    refused("-DHEADER_BYTES=257", "header_bytes is 257, expected at most 256");
    refused("-DON_ACK=0", "on_ack is null, expected a function");
    refused("-DSTART=0", "start is null, expected a function");
    refused("-DABSOLUTE=0", "absolute is null and relative is not, expected both or none");
    refused("-DENTRY=another_name", "no plugin: it does not export `wormhole_plugin`");

    let said = place.run("--plugin flows.txt");
    said.tells(11, "flows.txt: error: no shared object: ");
    place.run("--plugin none.so").tells(11, "none.so: error: cannot be read: ");
    place.run("--plugin .").tells(11, ".: error: cannot be read: ");
}

#[test]
fn newer_plugins_and_parameters_are_taken_as_far_as_they_are_known() {
    if !has_cc("newer_plugins_and_parameters_are_taken_as_far_as_they_are_known") {
        return;
    }
    let place = Place::new("parameters");
    place.plugin(&source("hostile_cca.c"), &["-DSTRUCT_SIZE=1000000"], "newer.so");
    place.run("--plugin newer.so").succeeds();
    let error = |settings: &str, expected: &str| {
        place.run(&format!("--plugin newer.so:{settings}")).ends(11, &format!("newer.so: error: {expected}"));
    };
    error("windw=1", "the plugin has no such parameter (found `windw=1`)");
    error("window=9000,window=-1", "the plugin does not take this value (found `window=-1`)");
    error("status=5", "configure returned 5, expected 0, 1 or 2 (found `status=5`)");
    place.run("--plugin newer.so:window").tells(11, "newer.so:window: error: cannot be read: ");
    place.run("--plugin newer.so:window=").tells(2, "the value is a whole number of 64 bits");

    // A parameter has an effect, and is part of what the model is.
    let slow = place.results("--accel off --plugin newer.so:window=2000").0;
    assert_ne!(slow, place.results("--accel off --plugin newer.so").0);
    let info = |settings: &str| place.wormhole(&format!("plugin info newer.so{settings}")).succeeds().out;
    assert_ne!(info(":window=2000"), info(""));

    // Which congestion control is meant must be clear.
    let none = "--cca: error: no such congestion control; there are dcqcn, hpcc, timely, dctcp, swift, fixed";
    place.run("--cca mine").ends(3, &format!("{none} (found `mine`)"));
    place.run("--cca mine --plugin newer.so").ends(3, &format!("{none}, hostile (found `mine`)"));
    let too = "--cca: error: the plugin hostile is a congestion control, too (found `hpcc`)";
    place.run("--cca hpcc --plugin newer.so").ends(3, too);
    place.run("--cca hostile --plugin newer.so").succeeds();
    let second = "newer.so: error: a second plugin of kind cca; newer.so is one already";
    place.run("--plugin newer.so --plugin newer.so").ends(11, second);
    place.run("--cca ö").tells(2, "no name of a congestion control");
}

#[test]
fn what_a_plugin_may_not_give_ends_the_run() {
    if !has_cc("what_a_plugin_may_not_give_ends_the_run") {
        return;
    }
    let place = Place::new("faults");
    let bounds = "windows, rates and timers within bounds";
    for (flag, check, fault) in [
        ("-DON_ACK=rate_zero", bounds, "on_ack gave rate_bps 0, expected at least 1"),
        ("-DON_ACK=window_zero", bounds, "on_ack gave window_bytes 0, expected at least 1"),
        ("-DSTART=window_zero_at_start", bounds, "start gave window_bytes 0, expected at least 1"),
        (
            "-DON_ACK=timer_for_ever",
            bounds,
            "on_ack gave timer_ps 18446744073709551615, expected 1000 to 1000000000000000",
        ),
        ("-DON_ACK=timer_at_once", bounds, "on_ack gave timer_ps 0, expected 1000 to 1000000000000000"),
        ("-DON_ACK=no_such_timer", bounds, "on_ack gave timers_set 0x8, expected bits 0 to 2"),
        ("-DSTART=timer_at_start", bounds, "start gave timers_set 0x1, expected 0: only later calls set timers"),
        ("-DON_ACK=overrun", "keeps to its state", "on_ack wrote byte 24 of a state that is shorter"),
        ("-DRELATIVE=relative_seven", bounds, "relative returned 7, expected 0 or 1"),
    ] {
        place.plugin(&source("hostile_cca.c"), &[flag], "bad.so");
        let line = format!("bad.so: error: plugin hostile: {fault}");
        let inputs = "--topology topology.txt --flows flows.txt --plugin bad.so";
        place.run("--plugin bad.so --accel exact").ends(11, &line);
        place.wormhole(&format!("verify {inputs} --out checked")).ends(11, &line);
        // Only acceleration asks for relative states.
        if !flag.contains("relative") {
            place.wormhole(&format!("fcg {inputs} --at 1ms")).ends(11, &line);
        }
        let said = place.wormhole("plugin check bad.so");
        assert_eq!(said.code, Some(11), "{said:#?}");
        let verdicts = verdicts(&said);
        assert!(verdicts[check].starts_with("FAIL at step "), "{flag}: {said:#?}");
        assert!(said.out.contains(&format!("found:    {fault}\n")), "{flag}: {said:#?}");
    }
    // Beyond the line rate is the line rate.
    place.plugin(&source("hostile_cca.c"), &["-DON_ACK=too_fast"], "fast.so");
    place.plugin(&source("hostile_cca.c"), &[], "calm.so");
    let run = |file: &str| place.results(&format!("--accel off --plugin {file}")).0;
    assert_eq!(run("fast.so"), run("calm.so"));
    place.wormhole("plugin check fast.so").succeeds();
}

#[test]
fn the_check_sees_what_a_run_cannot() {
    if !has_cc("the_check_sees_what_a_run_cannot") {
        return;
    }
    let place = Place::new("check");
    for (file, flags, check) in [
        ("hostile_cca.c", ["-DON_ACK=by_the_clock", "-O2"], "no dependence on absolute time"),
        ("hostile_cca.c", ["-DON_ACK=capricious", "-O2"], "equal inputs, equal outputs"),
        ("hostile_cca.c", ["-DON_ACK=capricious", "-O2"], "all it remembers is in its state"),
        ("hostile_cca.c", ["-DON_ACK=keeps_time", "-O2"], "equal flows, equal relative states"),
        ("hostile_switch.c", ["-DMARKS=secretly", "-O2"], "chance is told"),
        ("hostile_switch.c", ["-DMARKS=perhaps", "-O2"], "verdicts are yes or no"),
        ("hostile_switch.c", ["-DRESUMES=never", "-O2"], "an empty queue lets its sender go on"),
        ("hostile_switch.c", ["-DIS_CALM=is_always_calm", "-O2"], "where it is calm no queue depends on others"),
        ("hostile_switch.c", ["-DIS_CALM=is_perhaps_calm", "-O2"], "verdicts are yes or no"),
    ] {
        place.plugin(&source(file), &flags, "bad.so");
        let said = place.wormhole("plugin check bad.so");
        assert_eq!(said.code, Some(11), "{said:#?}");
        assert!(verdicts(&said)[check].starts_with("FAIL at step "), "{flags:?}: {said:#?}");
        let reports = said.out.matches("  input:    ").count();
        let told = ["  found:    ", "  expected: "].map(|line| said.out.matches(line).count());
        assert!(reports > 0 && told == [reports; 2], "{said:#?}");
    }
    place.plugin(&source("hostile_switch.c"), &["-DMARKS=perhaps"], "perhaps.so");
    let line = "perhaps.so: error: plugin hostile: marks returned 2, expected 0 or 1";
    place.run("--plugin perhaps.so").ends(11, line);
    // Senders that never go on: their flows stall.
    place.plugin(&source("hostile_switch.c"), &["-DRESUMES=never"], "never.so");
    place.run("--plugin never.so --cca fixed").tells(4, "stalled at ");
    // A buffer that is never calm is simulated, with the results of every event executed.
    place.plugin(&source("hostile_switch.c"), &[], "restless.so");
    let (ends, summary) = place.results("--plugin restless.so --accel exact");
    assert_eq!(ends, place.results("--plugin restless.so --accel off").0);
    assert_eq!(summary["events_skipped"].as_u64(), Some(0), "{summary}");
}

#[test]
fn the_document_shows_a_plugin_that_works() {
    if !has_cc("the_document_shows_a_plugin_that_works") {
        return;
    }
    let place = Place::new("document");
    let text = fs::read_to_string(root().join("models/docs/writing-a-model.md")).expect("the document");
    let blocks: Vec<&str> = text.split("```c\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    let [program] = blocks[..] else { panic!("one program in C, not {}", blocks.len()) };
    place.write("packets.c", &format!("{program}\n"));
    place.plugin(&place.0.join("packets.c"), &[], "packets.so");
    let check = place.wormhole("plugin check packets.so").succeeds();
    assert!(check.out.ends_with("packets.so: 10 passed, 0 failed\n"), "{check:#?}");
    let run = |settings: &str| place.results(&format!("--plugin packets.so{settings}")).0;
    assert_eq!(run(""), run(":packets=64"));
    assert_ne!(run(""), run(":packets=4"));
}

/// A workspace of its own: it is built as its users build it. (The programs in Rust of the document are tests of the
/// crate `wormhole-models`.)
#[test]
fn the_rust_template_builds_and_its_tests_pass() {
    let folder = root().join("models/templates/rust");
    // The versions of this workspace, which are there without a network.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("a copy of Cargo.lock");
    let output = Command::new(env!("CARGO"))
        .args(["test", "--offline", "--target-dir"])
        .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("plugins/rust-template"))
        .current_dir(&folder)
        .output()
        .expect("cargo runs");
    let said = Said::from(output).succeeds();
    assert!(said.out.contains("test result: ok. 5 passed"), "{said:#?}");
}
