//! The command line's side of jobs: fabrics, workloads of all formats and scenario files are run, and what is written
//! about jobs is so.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use wormhole_tests::{Said, case_file, case_text, empty_folder, wormhole_in};

/// Two ranks that all-reduce 64 KiB after some computing.
const PAIR: &str = "\
HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 ga: 1 all_gpus: 2
1
layer -1 1000 ALLREDUCE 65536 1000 ALLREDUCE 65536 500 NONE 0 100
";

/// The rate of 100 Gb/s in GB/s.
const GB_PER_S: f64 = 12.5;

/// A folder for one test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("workload").join(name)))
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    fn summary(&self) -> Value {
        serde_json::from_str(&self.read("out/summary.json")).expect("JSON")
    }

    fn wormhole(&self, arguments: &str) -> Said {
        wormhole_in(&self.0, arguments).output().expect("wormhole runs").into()
    }

    /// Makes `topology.txt`.
    fn topo(&self, options: &str) {
        self.wormhole(&format!("topo {options} --out topology.txt")).succeeds();
    }

    /// Runs a workload that is here on `topology.txt`; options come last, so that they are the ones that count.
    fn run(&self, workload: &str, options: &str) -> Said {
        self.wormhole(&format!("run --topology topology.txt --workload {workload} --out out {options}"))
    }

    /// Runs a scenario file.
    fn scenario(&self, text: &str, options: &str) -> Said {
        self.write("scenario.toml", text);
        self.wormhole(&format!("run scenario.toml --out out {options}"))
    }

    /// A table that a run has written.
    fn table(&self, name: &str) -> Table {
        let text = self.read(&format!("out/{name}"));
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect());
        Table { columns: lines.next().expect("a heading"), rows: lines.collect() }
    }
}

/// A CSV file.
struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn texts(&self, column: &str) -> Vec<&str> {
        let at = self.columns.iter().position(|name| name == column).unwrap_or_else(|| panic!("no {column}"));
        self.rows.iter().map(|row| row[at].as_str()).collect()
    }

    fn numbers(&self, column: &str) -> Vec<f64> {
        let number = |text: &str| text.parse().unwrap_or_else(|e| panic!("{column}: {text}: {e}"));
        self.texts(column).into_iter().map(number).collect()
    }
}

/// Bytes on the links from hosts to NVSwitches, and to other switches; nodes have SimAI's order.
fn bytes_of_hosts(links: &Table, hosts: f64, nvswitches: f64) -> (f64, f64) {
    let ends = links.numbers("from").into_iter().zip(links.numbers("to"));
    let (mut nvlink, mut nic) = (0.0, 0.0);
    for ((from, to), bytes) in ends.zip(links.numbers("bytes")).filter(|((from, _), _)| *from < hosts) {
        assert!(from >= 0.0 && to >= hosts, "hosts have no links to each other");
        *if to < hosts + nvswitches { &mut nvlink } else { &mut nic } += bytes;
    }
    (nvlink, nic)
}

// Workloads of SimAI.

/// Runs a file of the case about SimAI's quirks on four hosts.
fn quirk(name: &str) -> (Place, Said) {
    let place = Place::new(&format!("quirk-{name}"));
    place.topo("star --hosts 4");
    place.write(name, case_text("c33_workload_quirks", name));
    let said = place.run(name, "");
    (place, said)
}

#[test]
fn a_workload_of_two_layers_runs() {
    let (place, said) = quirk("ok.txt");
    let said = said.succeeds();
    assert!(said.errors.contains("2 layers, 4 ranks"), "{said:#?}");
    assert_eq!(place.summary()["jobs"][0]["ranks"], 4);
    let sizes: BTreeSet<String> = place.table("collectives.csv").texts("size").into_iter().map(str::to_owned).collect();
    assert_eq!(sizes, ["131072", "65536"].map(str::to_owned).into());
}

#[test]
fn missing_layers_are_counted() {
    let (place, said) = quirk("short_count.txt");
    said.tells(3, "short_count.txt:2: error: 839 layers declared, 2 found");
    assert!(!place.0.join("out/fct.csv").exists(), "nothing is run");
}

#[test]
fn a_size_of_nothing_is_no_traffic_and_warned_of() {
    let (place, said) = quirk("none_with_size.txt");
    let said = said.succeeds();
    let warning = "none_with_size.txt:3: warning: NONE has a size: it is taken for 0 bytes (found `33554432`)";
    assert!(said.errors.contains(warning), "{said:#?}");
    assert_eq!((place.table("fct.csv").rows.len(), place.table("collectives.csv").rows.len()), (0, 0));
}

#[test]
fn unknown_collectives_are_told_with_token_and_line() {
    for (name, token) in [("unknown_type.txt", "ALLTOALLV_EP"), ("allreducealltoall.txt", "ALLREDUCEALLTOALL")] {
        let (_, said) = quirk(name);
        said.tells(3, &format!("{name}:3: error: unknown collective"));
        said.tells(3, &format!("(found `{token}`)"));
    }
}

#[test]
fn messages_of_a_pipeline_may_have_more_bytes_than_32_bits_count() {
    let (place, said) = quirk("pp_comm_big.txt");
    said.succeeds();
    let sent = place.table("fct.csv");
    let big = sent.texts("bytes").iter().filter(|bytes| **bytes == "3000000000").count();
    assert_eq!(big, 4, "two ranks of a stage, there and back");
    let first = place.read("out/fct.csv");
    let text = place.read("pp_comm_big.txt");
    assert!(text.contains(" pp_comm 3000000000"), "{text}");
    place.write("colon.txt", text.replace("pp_comm 3", "pp_comm: 3"));
    place.run("colon.txt", "").succeeds();
    assert_eq!(place.read("out/fct.csv"), first, "with a colon, it is the same");
}

#[test]
fn an_all_reduce_of_four_bytes_runs() {
    let (place, said) = quirk("tiny_optimizer.txt");
    said.succeeds();
    assert!(place.table("collectives.csv").texts("size").contains(&"4"));
}

#[test]
fn tensor_parallelism_wider_than_a_server_crosses_servers() {
    let place = Place::new("wide");
    let workload = case_file("c34_tp_wider_than_node", "workload.txt").display().to_string();
    place.topo("rail --servers 8");
    place.run(&workload, "").succeeds();
    let summary = place.summary();
    assert_eq!((&summary["ending"], &summary["jobs"][0]["ranks"]), (&"done".into(), &64.into()));
    let (nvlink, nic) = bytes_of_hosts(&place.table("links.csv"), 64.0, 8.0);
    assert!(nvlink > 0.0 && nic > 0.0, "nvlink {nvlink}, nic {nic}");
}

#[test]
fn a_workload_of_more_gpus_than_there_are_is_not_run() {
    let place = Place::new("narrow");
    let workload = case_file("c34_tp_wider_than_node", "workload.txt").display().to_string();
    place.topo("rail --servers 4");
    place.run(&workload, "").tells(3, "error: the job has 64 ranks, the fabric 32 hosts");
    assert!(!place.0.join("out").exists(), "nothing is run");
}

#[test]
fn traffic_within_servers_takes_nvlink_only() {
    let place = Place::new("nvlink");
    place.topo("rail --servers 2");
    let header = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 ga: 1 all_gpus: 16";
    let row = "layer -1 1000 ALLREDUCE 65536 1000 ALLGATHER 65536 500 NONE 0 100";
    place.write("job.txt", format!("{header}\n1\n{row}\n"));
    place.run("job.txt", "").succeeds();
    let (nvlink, nic) = bytes_of_hosts(&place.table("links.csv"), 16.0, 2.0);
    assert!(nvlink > 0.0 && nic == 0.0, "nvlink {nvlink}, nic {nic}");
}

// Ranks that wait.

#[test]
fn a_receive_without_a_send_ends_the_run() {
    let place = Place::new("receive");
    place.topo("star --hosts 3");
    place.write("job.goal", "num_ranks 3\nrank 2 {\nrecv 8b from 1 tag 4\n}\nrank 0 {\nsend 8b to 1\n}\n");
    let said = place.run("job.goal", "");
    said.tells(10, "rank 2 waits for a message from rank 1 with tag 4");
    assert_eq!(place.summary()["ending"], "waiting");
    assert_eq!(place.table("fct.csv").rows.len(), 1, "what was sent is told");
    assert_eq!(place.table("ranks.csv").rows.len(), 3);
}

/// Protobuf, as far as Chakra's nodes need it.
mod protobuf {
    /// A number in bytes of seven bits.
    pub(super) fn varint(mut number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while number > 0x7f {
            bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        bytes.push(number as u8);
        bytes
    }

    /// Bytes behind their length.
    pub(super) fn delimited(bytes: &[u8]) -> Vec<u8> {
        [varint(bytes.len() as u64), bytes.to_vec()].concat()
    }

    pub(super) fn number(field: u64, number: u64) -> Vec<u8> {
        [varint(field << 3), varint(number)].concat()
    }

    pub(super) fn bytes(field: u64, bytes: &[u8]) -> Vec<u8> {
        [varint(field << 3 | 2), delimited(bytes)].concat()
    }
}

/// A collective in a Chakra trace: kind as `comm_type` has it, communicator, bytes. It waits for the node before it.
fn collective(id: u64, kind: u64, communicator: &str, bytes: u64) -> Vec<u8> {
    let attribute = |name: &str, value: Vec<u8>| {
        let name = protobuf::bytes(1, name.as_bytes());
        protobuf::bytes(10, &[name, value].concat())
    };
    let before = id.checked_sub(1).map_or(Vec::new(), |before| protobuf::number(4, before));
    let node = [
        protobuf::number(1, id),
        protobuf::bytes(2, b"collective"),
        protobuf::number(3, 7),
        before,
        attribute("comm_type", protobuf::number(9, kind)),
        attribute("comm_size", protobuf::number(13, bytes)),
        attribute("pg_name", protobuf::bytes(29, communicator.as_bytes())),
    ];
    node.concat()
}

/// A Chakra trace with these nodes.
fn trace(nodes: &[Vec<u8>]) -> Vec<u8> {
    let metadata = protobuf::bytes(1, b"0.0.4");
    let messages = [&[metadata], nodes].concat();
    messages.iter().flat_map(|message| protobuf::delimited(message)).collect()
}

/// The calls of a line such as `2: allreduce comm=B 1024 ; allgather comm=A 1024`, as a trace.
fn calls(line: &str) -> (u32, Vec<u8>) {
    let (rank, calls) = line.split_once(": ").expect("a rank");
    let nodes = (0..).zip(calls.split(" ; ")).map(|(id, call)| {
        let [verb, communicator, bytes] = call.split(' ').collect::<Vec<_>>()[..] else { panic!("{call}") };
        let kind = ["allreduce", "", "allgather"].iter().position(|known| *known == verb).expect(verb);
        let communicator = communicator.strip_prefix("comm=").expect("a communicator");
        collective(id, kind as u64, communicator, bytes.parse().expect("bytes"))
    });
    (rank.parse().expect("a rank"), trace(&nodes.collect::<Vec<_>>()))
}

#[test]
fn a_collective_that_a_rank_never_joins_ends_the_run() {
    let place = Place::new("collective");
    place.topo("star --hosts 4");
    place.write("groups.json", r#"{"A": [0, 1, 2, 3], "B": [2, 3]}"#);
    let text = case_text("c35_mismatched_collective", "ranks.txt");
    for (rank, trace) in text.lines().filter(|line| !line.starts_with('#')).map(calls) {
        place.write(&format!("trace.{rank}.et"), trace);
    }
    let said = place.run("trace", "--groups groups.json");
    said.tells(10, "rank 2 waits for rank 3 in group pg B\n");
    said.tells(10, "rank 0 waits for rank 2 in group pg A\n");
    assert!(!said.errors.contains("waits for rank 0"), "nobody waits for those who are there: {said:#?}");
    assert_eq!(place.summary()["ending"], "waiting");
    assert!(!place.table("fct.csv").rows.is_empty(), "what was sent before is told");
    assert_eq!(place.table("ranks.csv").rows.len(), 4);
}

#[test]
fn the_same_collectives_in_another_order_are_done() {
    let place = Place::new("chakra");
    place.topo("star --hosts 2");
    place.write("groups.json", r#"{"A": [0, 1]}"#);
    for rank in 0..2 {
        place.write(&format!("trace.{rank}.et"), trace(&[collective(0, 0, "A", 4096), collective(1, 2, "A", 1024)]));
    }
    place.run("trace", "--groups groups.json").succeeds();
    let done = place.table("collectives.csv");
    assert_eq!((done.texts("group"), done.texts("size")), (vec!["pg A"; 2], vec!["4096", "2048"]));
}

// Scenario files.

/// Four jobs of two ranks on eight hosts.
const FOUR_JOBS: &str = "\
[fabric]
kind = 'star'
hosts = 8

[[job]]
kind = 'file'
file = 'pair.txt'
name = 'listed'
hosts = [7, 3]

[[job]]
kind = 'file'
file = 'pair.txt'
name = 'spread'
placement = 'spread'

[[job]]
kind = 'file'
file = 'pair.txt'
name = 'packed'
placement = 'packed'
start = '1ms'

[[job]]
kind = 'file'
file = 'pair.txt'
name = 'random'
placement = 'random'

[models]
seed = 5
cca = 'hpcc'
";

#[test]
fn jobs_share_a_fabric() {
    let place = Place::new("jobs");
    place.write("pair.txt", PAIR);
    place.scenario(FOUR_JOBS, "").succeeds();
    let ranks = place.table("ranks.csv");
    assert_eq!(ranks.texts("rank"), ["0", "1"].repeat(4));
    let hosts: Vec<(&str, &str)> = ranks.texts("job").into_iter().zip(ranks.texts("host")).collect();
    let want = [("listed", "7"), ("listed", "3"), ("spread", "0"), ("spread", "4"), ("packed", "1"), ("packed", "2")];
    assert_eq!(hosts[..6], want);
    let random: BTreeSet<(&str, &str)> = hosts[6..].iter().copied().collect();
    assert_eq!(random, [("random", "5"), ("random", "6")].into(), "those that are left");

    let summary = place.summary();
    let jobs = summary["jobs"].as_array().expect("a list");
    let names: Vec<&Value> = jobs.iter().map(|job| &job["name"]).collect();
    assert_eq!(
        (&summary["ending"], names),
        (&"done".into(), ["listed", "spread", "packed", "random"].map(Value::from).iter().collect())
    );
    for job in jobs {
        assert_eq!((&job["ranks"], &job["collectives"]), (&2.into(), &2.into()), "{job:#}");
        assert_eq!(job["iteration_ns"], jobs[0]["iteration_ns"], "no two jobs share a link");
    }
    let starts: Vec<f64> = place.table("fct.csv").numbers("start_ns");
    assert!(starts.iter().any(|start| *start < 1e5) && starts.iter().any(|start| *start > 1e6), "{starts:?}");
}

#[test]
fn what_is_typed_replaces_what_the_file_says() {
    let place = Place::new("typed");
    place.write("pair.txt", PAIR);
    place.scenario(FOUR_JOBS, "").succeeds();
    let told = |summary: Value| ["seed", "cca", "accel"].map(|key| summary[key].to_string()).join(" ");
    assert_eq!(told(place.summary()), "5 \"hpcc\" \"bounded\"");
    place.scenario(FOUR_JOBS, "--seed 6 --accel off").succeeds();
    assert_eq!(told(place.summary()), "6 \"hpcc\" \"off\"");
}

#[test]
fn faults_of_a_scenario_are_told_with_their_lines() {
    let place = Place::new("faults");
    let said = place.scenario("[fabric]\nkind = 'star'\nhost = 2\n\n[modls]\nseed = 1\n", "");
    said.tells(3, "scenario.toml:3: error: no such key; did you mean `hosts`? (found `host`)\n");
    said.tells(3, "scenario.toml:5: error: no such table; did you mean `models`? (found `modls`)\n");
    let said = place.scenario("[fabric]\nkind = 'star'\n[[job]]\nkind = 'gpt'\ntp = 2\ngpus = 3\n", "");
    said.tells(3, "scenario.toml:4: error: gpus 3, but tp times pp times dp are 2\n");
    place.scenario("[[job]]\nkind = 'gpt'\n", "").tells(3, "[fabric]: error: ");
}

// Outputs.

#[test]
fn what_is_written_about_jobs_adds_up() {
    let (place, said) = quirk("ok.txt");
    said.succeeds();
    let collectives = place.table("collectives.csv");
    let heading = "job,group,ranks,number,start_ns,operation,size,count,type,redop,root,time_us,algbw,busbw,wrong";
    assert_eq!(collectives.columns.join(","), heading);
    for (bus, time) in collectives.numbers("busbw").into_iter().zip(collectives.numbers("time_us")) {
        assert!(0.0 < bus && bus <= GB_PER_S && time > 0.0, "busbw {bus} GB/s in {time} us");
    }
    let summary = place.summary();
    let iteration = summary["jobs"][0]["iteration_ns"].as_f64().expect("a number");
    let ranks = place.table("ranks.csv");
    assert_eq!(ranks.columns.join(","), "job,rank,host,computing_ns,overlapped_ns,exposed_ns,idle_ns");
    let times = ["computing_ns", "overlapped_ns", "exposed_ns", "idle_ns"].map(|column| ranks.numbers(column));
    for rank in 0..4 {
        let sum: f64 = times.iter().map(|column| column[rank]).sum();
        assert!((sum - iteration).abs() < 0.01, "rank {rank}: {sum} of {iteration} ns");
    }
}

#[test]
fn messages_have_the_same_numbers_in_plain_and_exact_runs() {
    let place = Place::new("numbers");
    place.topo("star --hosts 4");
    place.write("ok.txt", case_text("c33_workload_quirks", "ok.txt"));
    place.run("ok.txt", "--accel off").succeeds();
    let plain = place.read("out/fct.csv");
    let mut numbers = place.table("fct.csv").numbers("flow");
    numbers.sort_by(f64::total_cmp);
    let want: Vec<f64> = (0..numbers.len()).map(|number| number as f64).collect();
    assert!(numbers == want && !want.is_empty(), "{numbers:?}");
    place.run("ok.txt", "--accel exact").succeeds();
    assert_eq!(place.read("out/fct.csv"), plain);
}

#[test]
fn verify_compares_iterations_and_collectives() {
    let place = Place::new("verify");
    place.write("pair.txt", PAIR);
    place.write("scenario.toml", FOUR_JOBS);
    place.wormhole("verify scenario.toml --accel bounded --out out").succeeds();
    let report: Value = serde_json::from_str(&place.read("out/verify.json")).expect("JSON");
    for key in ["iteration_error", "collective_error_mean", "collective_error_max"] {
        assert!(report[key].is_number(), "{key}: {report:#}");
        let exact = &report["tiers"][0];
        assert_eq!((&exact["tier"], &exact[key]), (&"exact".into(), &0.0.into()), "{key}");
    }
}

// Fabrics.

#[test]
fn fabrics_of_every_kind_are_read_by_run() {
    let fabrics = [
        ("fat-tree --k 4", 16),
        ("clos --leaves 2 --hosts-per-leaf 2 --spines 2", 4),
        ("clos --pods 2 --leaves 2 --hosts-per-leaf 2 --spines 2 --cores 2", 8),
        ("rail --servers 2", 16),
        ("rail --servers 2 --no-nvlink --attachment dual-plane", 16),
        ("dumbbell --left 2 --right 1", 3),
        ("star --hosts 5 --host-rate 100Gbps,25Gbps", 5),
    ];
    let place = Place::new("fabrics");
    for (options, hosts) in fabrics {
        place.topo(options);
        let last = hosts - 1;
        let job =
            format!("num_ranks {hosts}\nrank 0 {{\nsend 100b to {last}\n}}\nrank {last} {{\nrecv 100b from 0\n}}\n");
        place.write("job.goal", job);
        let said = place.run("job.goal", "").succeeds();
        assert!(!said.errors.contains("warning"), "{options}: {said:#?}");
        let sent = place.table("fct.csv");
        assert_eq!((sent.texts("dst"), sent.texts("end")), (vec![&*last.to_string()], vec!["done"]), "{options}");
    }
}

#[test]
fn a_fabric_goes_to_standard_output_if_no_file_is_named() {
    let place = Place::new("stdout");
    let said = place.wormhole("topo star --hosts 2").succeeds();
    place.topo("star --hosts 2");
    assert_eq!(said.out, place.read("topology.txt"));
    assert!(said.errors.starts_with("HPCC topology: 2 hosts, 1 switch, 2 links, bisection"), "{said:#?}");
}

#[test]
fn impossible_fabrics_are_told_with_the_option() {
    let place = Place::new("impossible");
    for (options, named) in [
        ("fat-tree --k 3", "--k"),
        ("clos --leaves 0", "--leaves"),
        ("clos --spines 4 --cores 6", "--cores"),
        ("rail --servers 0", "--servers"),
        ("rail --attachment dual-plane --spines 3", "--spines"),
        ("dumbbell --bottleneck-links 0", "--bottleneck-links"),
        ("star --hosts 0", "--hosts"),
    ] {
        let said = place.wormhole(&format!("topo {options} --out topology.txt"));
        said.tells(3, &format!("wormhole topo: error: {named}: "));
        assert!(!place.0.join("topology.txt").exists(), "{options}");
    }
}

// Training jobs.

/// Describes a training job, takes what is written of it for a scenario, and runs that.
fn described_and_run(name: &str, options: &str, fabric: &str) -> (Place, Said) {
    let place = Place::new(name);
    let said = place.wormhole(&format!("workload {options} --out job.toml")).succeeds();
    let text = format!("{}\n[fabric]\n{fabric}\n", place.read("job.toml"));
    place.scenario(&text, "").succeeds();
    (place, said)
}

#[test]
fn a_dense_model_is_described_and_run() {
    let options = "gpt --model 7b --tp 2 --tp-traffic --sequence 64";
    let (place, said) = described_and_run("gpt", options, "kind = 'star'\nhosts = 2");
    for words in ["GPT 7b", "tp 2, pp 1, dp 1", "parameters", "AllReduce"] {
        assert!(said.out.contains(words), "{words}: {said:#?}");
    }
    assert_eq!(place.summary()["jobs"][0]["ranks"], 2);
    let done = place.table("collectives.csv");
    let all_reduces = done.texts("operation").len();
    let told: Vec<&str> = said.out.split_whitespace().collect();
    let at = told.iter().position(|word| *word == "AllReduce").expect("an all-reduce");
    assert_eq!(told[at + 1], all_reduces.to_string(), "as many as were told: {said:#?}");
}

#[test]
fn a_model_with_experts_is_described_and_run() {
    let options = "moe --model 8x7b --pp 2 --dp 2 --ep 2 --sequence 64";
    let (place, said) = described_and_run("moe", options, "kind = 'star'\nhosts = 4");
    for words in ["MoE 8x7b", "tp 1, pp 2, dp 2, ep 2", "AllToAll", "pipeline"] {
        assert!(said.out.contains(words), "{words}: {said:#?}");
    }
    assert_eq!(place.summary()["jobs"][0]["ranks"], 4);
    assert!(place.table("collectives.csv").texts("operation").contains(&"alltoall"));
}

#[test]
fn an_impossible_model_is_told() {
    let place = Place::new("model");
    place.wormhole("workload gpt --model 8x7b").tells(3, "no model `8x7b` of this kind");
    place.wormhole("workload gpt --gpus 9 --tp 2 --dp 4").tells(3, "gpus 9, but tp times pp times dp are 8");
}

// Embedded scenarios.

#[test]
fn embedded_scenarios_are_listed_and_printed() {
    let place = Place::new("scenarios");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios");
    let list = place.wormhole("scenarios").succeeds().out;
    for file in fs::read_dir(folder).expect("a folder") {
        let path = file.expect("a file").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        assert!(list.lines().any(|line| line.split_whitespace().next() == Some(&*name)), "{name}: {list}");
        let printed = place.wormhole(&format!("scenarios {name}")).succeeds().out;
        assert_eq!(printed, fs::read_to_string(path).expect("a text"), "{name}");
    }
    assert!(list.contains("variants: "), "{list}");
}

/// To run the largest one takes minutes; to read it and to make its fabric and its ranks does not.
#[test]
fn the_largest_embedded_scenario_is_sound() {
    let place = Place::new("largest");
    let told = place.wormhole("check gpt-1t-65536").succeeds().out;
    assert!(told.contains("65536 ranks") && told.contains("it can be run"), "{told}");
}

#[test]
fn an_unknown_scenario_is_told_with_one_that_is_meant() {
    let place = Place::new("unknown");
    place.wormhole("scenarios gpt-7b-46").tells(3, "no such embedded scenario; did you mean `gpt-7b-64`?");
    place.wormhole("run gpt-7b-46").tells(3, "did you mean `gpt-7b-64`?");
    place.wormhole("run gpt-7b-64 --variant fat").tells(3, "no such variant; did you mean `fat-tree`?");
}
