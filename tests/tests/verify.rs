//! `wormhole verify`: what it writes is what the manual lists, and its exit code tells whether acceleration keeps its
//! word.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;
use wormhole_tests::{case_file, data, manual_names, wormhole_binary};

/// The first and the last of the keys that the manual lists of a tier.
const OF_A_TIER: [&str; 2] = ["tier", "rtt_nrmse"];

/// Keys of the ensemble, besides `runs`.
const OF_THE_ENSEMBLE: [&str; 10] = [
    "fct_error_mean",
    "fct_error_p50",
    "fct_error_p99",
    "fct_error_max",
    "sorted_fct_error_mean",
    "last_completion_error",
    "iteration_error",
    "collective_error_mean",
    "collective_error_max",
    "rtt_nrmse",
];

static WORMHOLE: LazyLock<PathBuf> = LazyLock::new(wormhole_binary);

/// What `verify` says of inputs, and the `verify.json` it writes.
fn verify(name: &str, inputs: &[(&str, &Path)], options: &str) -> (Output, Value) {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&out);
    let mut command = Command::new(&*WORMHOLE);
    command.arg("verify").arg("--out").arg(&out).args(options.split_whitespace());
    for (option, path) in inputs {
        command.arg(option).arg(path);
    }
    let output = command.output().expect("wormhole runs");
    let text = fs::read_to_string(out.join("verify.json"));
    let text = text.unwrap_or_else(|e| panic!("verify.json: {e}\n{}", String::from_utf8_lossy(&output.stderr)));
    let value = serde_json::from_str(&text).expect("JSON");
    (output, value)
}

/// Of a case.
fn verify_case(name: &str, case: &str, options: &str) -> (Output, Value) {
    let (topology, flows) = (case_file(case, "topology.txt"), case_file(case, "flow.txt"));
    verify(name, &[("--topology", &topology), ("--flows", &flows)], options)
}

/// Of a reference run.
fn verify_reference(name: &str, run: &str, options: &str) -> (Output, Value) {
    let file = |name: &str| data("reference").join(run).join(name);
    let (topology, flows, config) = (file("topology.txt"), file("flow.txt"), file("config.txt"));
    verify(name, &[("--topology", &topology), ("--flows", &flows), ("--config", &config)], options)
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[test]
fn verify_json_has_the_keys_that_the_manual_lists() {
    let (output, report) = verify_case("verify-keys", "c01_one_flow", "--ensemble 2 --max-error 0.01");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    for word in ["1 of 1 flows", "plain", "exact", "bounded", "2 runs", "event ratio", "verify.json"] {
        assert!(text.contains(word), "the table does not say `{word}`:\n{text}");
    }
    let names = manual_names("| keys of `verify.json` | meaning |");
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(keys(&report), listed.iter().copied().collect());

    let place = |name: &str| listed.iter().position(|key| *key == name).unwrap_or_else(|| panic!("no key {name}"));
    let [first, last] = OF_A_TIER.map(place);
    let of_a_tier = &listed[first..=last];
    let tiers = report["tiers"].as_array().expect("a list");
    let names: Vec<&Value> = tiers.iter().map(|tier| &tier["tier"]).collect();
    assert_eq!(names, ["exact", "bounded"]);
    for tier in tiers {
        assert_eq!(keys(tier), of_a_tier.iter().copied().collect());
    }
    for key in of_a_tier {
        assert_eq!(report[key], tiers[1][key], "{key} is that of the chosen tier");
    }
    let of_the_ensemble: BTreeSet<&str> = OF_THE_ENSEMBLE.into_iter().chain(["runs"]).collect();
    assert_eq!(keys(&report["ensemble"]), of_the_ensemble);
    assert_eq!(report["ensemble"]["runs"], 2);
}

/// What is skipped is counted by the rate at which a stretch had events, and parking has events of its own.
#[test]
fn events_of_the_plain_run_are_executed_or_skipped() {
    let (_, report) = verify_reference("verify-events", "a1_dumbbell_sim_dcqcn", "--profile ns3 --accel exact");
    let events = |key: &str| report[key].as_f64().expect(key);
    let (plain, executed, skipped) = (events("events_plain"), events("events_executed"), events("events_skipped"));
    assert!(((executed + skipped) / plain - 1.0).abs() < 0.05, "{report:#}");
    assert!((events("event_ratio") - (executed + skipped) / executed).abs() < 1e-9, "{report:#}");
}

#[test]
fn the_exact_tier_is_exact() {
    for run in ["a1_dumbbell_sim_dctcp", "a2_dumbbell_stag_timely", "b_incast16_hpcc"] {
        let (output, report) = verify_reference(&format!("verify-{run}"), run, "--profile ns3 --accel exact");
        assert_eq!(output.status.code(), Some(0), "{run}: {}", String::from_utf8_lossy(&output.stderr));
        assert_eq!((&report["fct_identical"], &report["fct_error_max"]), (&true.into(), &0.0.into()), "{run}");
        assert_eq!(report["rtt_nrmse"], 0.0, "{run}: round trips count every packet, also skipped ones");
        assert!(report["ensemble"].is_null());
    }
}

/// Twice the same, without acceleration: any difference is one of the simulator.
#[test]
fn a_plain_run_equals_itself() {
    let (output, report) = verify_reference("verify-off", "a1_dumbbell_sim_hpcc", "--accel off");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!((&report["tier"], &report["event_ratio"]), (&"off".into(), &1.0.into()));
    assert_eq!(report["events_plain"], report["events_executed"]);
}

/// A run that deadlocks does so under every tier, and `verify` says so as `run` does.
#[test]
fn the_plain_runs_ending_is_told() {
    let file = |name| case_file("c21_pfc_deadlock_ring", name);
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-deadlock.txt");
    fs::write(&config, "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1\n").expect("a configuration");
    let inputs = [("--topology", &*file("topology.txt")), ("--flows", &file("flow.txt")), ("--config", &config)];
    let (output, report) = verify("verify-deadlock", &inputs, "--accel exact");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &report["ending"]), (Some(5), &"deadlock".into()), "{errors}");
    assert_eq!(report["differences"], Value::Array(Vec::new()), "{errors}");
}
