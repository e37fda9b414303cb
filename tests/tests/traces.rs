//! What other tools open: the trace of spans for Perfetto, tables as Parquet, frames of a port as pcap. Each is read
//! back and says the same as the results beside it.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use wormhole_tests::{Said, component, data, empty_folder, wormhole_in};

/// An empty folder for one test.
fn folder(name: &str) -> PathBuf {
    empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
}

fn wormhole(folder: &Path, arguments: &str) -> Said {
    wormhole_in(folder, arguments).output().expect("wormhole runs").into()
}

/// A CSV table: its heading, and its rows. No cell here is quoted.
fn csv(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut rows = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    (rows.next().expect("a heading"), rows.collect())
}

/// The cells of a CSV table by the names of its columns.
fn records(path: &Path) -> Vec<BTreeMap<String, String>> {
    let (heading, rows) = csv(path);
    rows.into_iter().map(|row| heading.iter().cloned().zip(row).collect()).collect()
}

fn picoseconds(text: &str, unit: f64) -> u64 {
    (text.parse::<f64>().expect("a number") * unit).round() as u64
}

/// From and to in picoseconds, and the name.
type Span = (u64, u64, String);

/// Spans of a trace by process and thread, in the order of the file.
fn spans(trace: &Value) -> BTreeMap<(u64, u64), Vec<Span>> {
    let mut spans: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let events = trace["traceEvents"].as_array().expect("events");
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let number = |key: &str| event[key].as_u64().expect("a number");
        let ps = |key: &str| picoseconds(&event[key].to_string(), 1e6);
        let name = event["name"].as_str().expect("a name").to_owned();
        let of_thread = spans.entry((number("pid"), number("tid"))).or_default();
        of_thread.push((ps("ts"), ps("ts") + ps("dur"), name));
    }
    spans
}

fn sum(spans: &[Span], name: &str) -> u64 {
    spans.iter().filter(|span| span.2 == name).map(|(from, to, _)| to - from).sum()
}

#[test]
fn spans_of_a_trace_add_up_to_what_the_tables_say() {
    let place = folder("traces-spans");
    wormhole(&place, "run gpt-7b-64 --trace trace.json --out out").succeeds();
    let text = fs::read_to_string(place.join("trace.json")).expect("trace.json");
    let trace: Value = serde_json::from_str(&text).expect("JSON");
    let spans = spans(&trace);
    for (thread, of_thread) in &spans {
        let apart = of_thread.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        assert!(apart && of_thread.iter().all(|span| span.0 < span.1), "spans of {thread:?} overlap or are empty");
    }
    let ranks = records(&place.join("out/ranks.csv"));
    assert_eq!(ranks.len(), 64);
    for rank in &ranks {
        let of_rank = &spans[&(1, rank["rank"].parse().expect("a rank"))];
        for name in ["computing", "overlapped", "exposed"] {
            let told = picoseconds(&rank[&format!("{name}_ns")], 1e3);
            assert_eq!(sum(of_rank, name), told, "{name} of rank {}", rank["rank"]);
        }
    }
    let summary: Value =
        serde_json::from_slice(&fs::read(place.join("out/summary.json")).expect("a summary")).expect("JSON");
    let of_fabric = || spans.iter().filter(|((process, _), _)| *process == 0).map(|(_, of_thread)| of_thread);
    let mut skipped = 0;
    for (name, key) in [
        ("skipped, exact", "time_exact_ns"),
        ("skipped, bounded", "time_bounded_ns"),
        ("skipped, memo", "time_memo_ns"),
    ] {
        let ns = of_fabric().map(|of_thread| sum(of_thread, name)).sum::<u64>() / 1_000;
        assert_eq!(Some(ns), summary[key].as_u64(), "{name}");
        skipped += ns;
    }
    assert!(skipped > 0, "nothing was skipped");
    let named = |process: u64, name: &str| {
        let events = trace["traceEvents"].as_array().expect("events");
        events.iter().any(|event| event["ph"] == "M" && event["pid"] == process && event["args"]["name"] == name)
    };
    assert!(named(0, "fabric partitions") && named(1, "gpt-7b-64") && named(1, "rank 63 on host 63"));
    println!("{} spans in {} threads", spans.values().map(Vec::len).sum::<usize>(), spans.len());
}

/// A cell of CSV, and the same of Parquet.
fn assert_same(csv: &str, parquet: &Field, place: &str) {
    match parquet {
        Field::Str(text) => assert_eq!(csv, text, "{place}"),
        Field::Long(count) => assert_eq!(csv, count.to_string(), "{place}"),
        Field::Double(number) => {
            let decimals = csv.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
            let told: f64 = csv.parse().unwrap_or_else(|e| panic!("{place}: {csv}: {e}"));
            // CSV is rounded to its last decimal, and numbers have no more than 53 bits.
            let rounding = 0.5 * 10f64.powi(-decimals) + number.abs() * f64::EPSILON;
            assert!((told - number).abs() <= rounding, "{place}: {csv}, {number}");
        }
        other => panic!("{place}: {other:?}"),
    }
}

#[test]
fn parquet_says_what_csv_says() {
    let place = folder("traces-parquet");
    wormhole(&place, "run gpt-7b-64 --parquet --out out").succeeds();
    for table in ["fct", "links", "collectives", "ranks"] {
        let (heading, rows) = csv(&place.join(format!("out/{table}.csv")));
        let file = File::open(place.join(format!("out/{table}.parquet"))).expect("a Parquet file");
        let reader = SerializedFileReader::new(file).expect("Parquet");
        let mut count = 0;
        for (number, row) in reader.get_row_iter(None).expect("rows").enumerate() {
            let cells = row.expect("a row").into_columns();
            let names: Vec<&String> = cells.iter().map(|(name, _)| name).collect();
            assert_eq!(names, heading.iter().collect::<Vec<_>>(), "{table}");
            for ((name, cell), told) in cells.iter().zip(&rows[number]) {
                assert_same(told, cell, &format!("{table}, row {number}, {name}"));
            }
            count += 1;
        }
        assert!(count == rows.len() && count > 0, "{table}: {count} of {} rows", rows.len());
    }
    // Without the option there are none, and old ones are gone.
    wormhole(&place, "run gpt-7b-64 --out out").succeeds();
    assert!(!place.join("out/fct.parquet").exists());
}

/// Frames of a pcap file: time, length on the wire, bytes that are kept.
fn frames(path: &Path) -> Vec<(Duration, u32, Vec<u8>)> {
    let mut reader = PcapReader::new(File::open(path).expect("a pcap file")).expect("a header");
    assert_eq!(reader.header().ts_resolution, TsResolution::NanoSecond);
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.expect("a packet");
        frames.push((packet.timestamp, packet.orig_len, packet.data.into_owned()));
    }
    frames
}

/// The row of `links.csv` for a direction.
fn link(place: &Path, from: &str, to: &str) -> BTreeMap<String, String> {
    let links = records(&place.join("out/links.csv"));
    links.into_iter().find(|row| row["from"] == from && row["to"] == to).expect("a link")
}

/// Runs a reference run and captures a port of it.
fn captured(name: &str, run: &str, node: &str, peer: &str) -> PathBuf {
    let place = folder(name);
    let file = |name: &str| data("reference").join(run).join(name).display().to_string();
    let (topology, flows, config) = (file("topology.txt"), file("flow.txt"), file("config.txt"));
    let inputs = format!("--topology {topology} --flows {flows} --config {config}");
    let capture = format!("--pcap {node}-{peer}=port.pcap");
    wormhole(&place, &format!("run {inputs} --profile ns3 --accel off {capture} --out out")).succeeds();
    place
}

fn number(row: &BTreeMap<String, String>, key: &str) -> u64 {
    row[key].parse().expect("a number")
}

const MAC_CONTROL: [u8; 2] = [0x88, 0x08];

/// A host's port and one of a switch that is paused: what is in the file is what the port has counted.
#[test]
fn frames_of_a_port_are_those_it_has_counted() {
    for (run, node, peer) in [("b_incast16_hpcc", "0", "17"), ("e1_pfc_incast16_dcqcn", "0", "17")] {
        let run_name = format!("traces-pcap-{run}");
        let place = captured(&run_name, run, node, peer);
        let (sent, received) = (link(&place, node, peer), link(&place, peer, node));
        let frames = frames(&place.join("port.pcap"));
        assert_eq!(frames.len() as u64, number(&sent, "frames") + number(&received, "frames"), "{run}");
        assert!(frames.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{run}: not in order of time");
        let pauses = frames.iter().filter(|(_, _, bytes)| bytes[12..14] == MAC_CONTROL && bytes[18..34] != [0; 16]);
        let arrived = number(&sent, "pauses") + number(&received, "pauses");
        assert_eq!(pauses.count() as u64, arrived, "{run}: pauses");
        // Only frames shorter than the headers of RoCEv2 are told to be longer than they were.
        let bytes: u64 = frames.iter().map(|(_, length, _)| u64::from(*length)).sum();
        let counted = number(&sent, "bytes") + number(&received, "bytes");
        assert!(bytes >= counted && bytes - counted <= 6 * frames.len() as u64, "{run}: {bytes}, counted {counted}");
        println!("{run}: {} frames, {arrived} pauses", frames.len());
        dissect(&place.join("port.pcap"), frames.len(), arrived);
    }
}

/// What tshark says of the frames that a filter lets pass: a line each.
fn tshark(file: &Path, filter: &str) -> Vec<String> {
    let mut command = Command::new("tshark");
    command.args(["-n", "-r"]).arg(file).args(["-Y", filter, "-T", "fields", "-e", "_ws.col.Info"]);
    let said: Said = command.stdin(Stdio::null()).output().expect("tshark starts").into();
    said.succeeds().out.lines().map(str::to_owned).collect()
}

fn dissect(file: &Path, frames: usize, pauses: u64) {
    if !component::is_there("frames_of_a_port_are_those_it_has_counted", "tshark", component::starts("tshark", &["-v"]))
    {
        return;
    }
    let malformed = tshark(file, "frame").into_iter().find(|info| info.contains("Malformed"));
    assert_eq!((malformed, tshark(file, "_ws.malformed").len()), (None, 0));
    let roce = tshark(file, "infiniband.bth").len();
    let control = tshark(file, "macc").len();
    assert_eq!(roce + control, frames, "{roce} of RoCEv2, {control} of MAC control");
    assert!(control as u64 >= pauses, "{control} of MAC control, {pauses} pauses");
    assert!(!tshark(file, "infiniband.bth.opcode == 17").is_empty(), "no acknowledgement");
}

#[test]
fn a_port_that_is_not_there_is_bad_input() {
    let place = folder("traces-no-port");
    let said = wormhole(&place, "run gpt-7b-64 --pcap 0-1=port.pcap --out out");
    said.tells(3, "--pcap 0-1: no link joins these nodes");
    let said = wormhole(&place, "run gpt-7b-64 --pcap 0=port.pcap --out out");
    said.tells(2, "expected A-B=FILE");
}
