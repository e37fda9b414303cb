//! Co-simulation: processes that are joined by SimBricks' protocol carry frames with exact delays, and a peer that does
//! not keep to the protocol ends a run with an error and nothing worse.

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use wormhole_tests::simbricks_peer::{
    CONNECTER, LISTENER, MEMORY, PACKET, Peer, SYNC, TERMINATE, dial, intro, memory, say,
};
use wormhole_tests::{Said, WORMHOLE, empty_folder, root};

/// One microsecond, in picoseconds.
const US: u64 = 1_000_000;

/// The latency of links between simulators, which is the default.
const LATENCY: u64 = 500_000;

/// Hosts 0 to 3 at switch 4.
const STAR: &str = "5 1 4\n4\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 4 100Gbps 1us 0\n3 4 100Gbps 1us 0\n";

/// Hosts 0 and 1 with two switches between them, at other rates and delays.
const LINE: &str = "4 2 3\n2 3\n0 2 40Gbps 700ns 0\n2 3 400Gbps 3us 0\n3 1 25Gbps 11ns 0\n";

/// A folder for one test, with inputs in it.
struct Place(PathBuf);

impl Place {
    /// Paths of sockets are at most some hundred bytes: the folder is where they are short.
    fn new(name: &str) -> Place {
        let place = Place(empty_folder(std::env::temp_dir().join(format!("wormhole-{}-{name}", std::process::id()))));
        fs::write(place.path("star.txt"), STAR).expect("a file");
        fs::write(place.path("line.txt"), LINE).expect("a file");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Starts `wormhole` with these arguments.
    fn start(&self, arguments: &str) -> Started {
        let mut command = Command::new(&*WORMHOLE);
        command.args(arguments.split_whitespace()).current_dir(&self.0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Started(Some(command.spawn().expect("wormhole starts")))
    }

    fn cosim(&self, arguments: &str) -> Started {
        self.start(&format!("cosim simbricks {arguments}"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its test, even if that fails.
struct Started(Option<Child>);

impl Started {
    fn ends(mut self) -> Said {
        self.0.take().expect("a process").wait_with_output().expect("it ends").into()
    }

    fn kill(&mut self) {
        self.0.as_mut().expect("a process").kill().expect("it can be ended");
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A frame of this length; its addresses end in these bytes.
fn frame(to: u8, from: u8, length: usize) -> Vec<u8> {
    let mut frame: Vec<u8> = (0..length).map(|i| i as u8).collect();
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

/// Time of a frame on a wire: with its check sequence, and padded.
fn on_wire(frame: &[u8], gbps: u64) -> u64 {
    ((frame.len() as u64 + 4).max(64) * 8_000).div_ceil(gbps)
}

/// What a frame takes through an empty [`STAR`], and through an empty [`LINE`] from host 0 to 1.
fn through_star(frame: &[u8]) -> u64 {
    2 * (on_wire(frame, 100) + US)
}

fn through_line(frame: &[u8]) -> u64 {
    [40, 400, 25].map(|gbps| on_wire(frame, gbps)).iter().sum::<u64>() + 700_000 + 3 * US + 11_000
}

// Sound peers.

/// Test peer - star - line - test peer: each frame takes what its bytes and the links say, to the picosecond.
#[test]
fn two_processes_carry_frames_with_exact_delays() {
    let place = Place::new("chain");
    let there: Vec<(u64, Vec<u8>)> =
        (0..40).map(|i| (1_234_567 + i * 20 * US, frame(2, 1, 14 + 38 * i as usize))).collect();
    let back: Vec<(u64, Vec<u8>)> =
        (0..40).map(|i| (999_999 + i * 20 * US, frame(1, 2, 1_536 - 38 * i as usize))).collect();
    let star = place.cosim("--topology star.txt --listen a --port 0 --listen ab --port 1 --out star --pcap star.pcap");
    let listener = UnixListener::bind(place.path("b")).expect("a socket");
    let line = place.cosim("--topology line.txt --connect ab --port 0 --connect b --port 1 --out line --sync required");
    let far = thread::spawn({
        let back = back.clone();
        move || Peer::accept(&listener, &LISTENER, MEMORY, LATENCY).play(&back, u64::MAX)
    });
    let mut near = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    let arrived_near = near.play(&there, 1_000 * US);
    // SimBricks' own programs put no sensible time on it.
    near.try_send(0, TERMINATE, &[], 0);

    let took = |frame: &[u8]| through_star(frame) + through_line(frame) + 3 * LATENCY;
    let want = |sent: &[(u64, Vec<u8>)]| -> Vec<(u64, Vec<u8>)> {
        sent.iter().map(|(at, frame)| (at + took(frame), frame.clone())).collect()
    };
    assert_eq!(far.join().expect("the far peer"), want(&there));
    assert_eq!(arrived_near, want(&back));
    let (star, line) = (star.ends().succeeds(), line.ends().succeeds());
    for said in [&star, &line] {
        assert!(said.out.contains("frames from outside: 80 came in, 80 went out, 0 lost, 0 refused"), "{said:?}");
        assert!(said.errors.contains("the peer has ended the co-simulation"), "{said:?}");
    }
    check_capture(&place.path("star.pcap"), &there, &back);
    println!("80 frames through two processes, each to the picosecond");
}

/// The capture has each frame as it comes into the star and as it leaves it, in nanoseconds and in order.
fn check_capture(path: &Path, there: &[(u64, Vec<u8>)], back: &[(u64, Vec<u8>)]) {
    let bytes = fs::read(path).expect("a capture");
    let header: [u8; 24] = [
        0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, // nanoseconds, little-endian; version 2.4
        0, 0, 0, 0, 0, 0, 0, 0, // time zone and accuracy
        0, 0, 1, 0, 1, 0, 0, 0, // 65,536 bytes; Ethernet
    ];
    assert_eq!(bytes[..24], header);
    let (mut rest, mut found) = (&bytes[24..], Vec::new());
    while !rest.is_empty() {
        let field = |i: usize| u64::from(u32::from_le_bytes(rest[4 * i..][..4].try_into().expect("4 bytes")));
        let (time, kept, length) = (field(0) * 1_000_000_000 + field(1), field(2), field(3));
        assert_eq!(kept, length);
        found.push((time, rest[16..16 + kept as usize].to_vec()));
        rest = &rest[16 + kept as usize..];
    }
    let mut want: Vec<(u64, Vec<u8>)> = Vec::new();
    for (at, frame) in there {
        want.extend([at + LATENCY, at + LATENCY + through_star(frame)].map(|ps| (ps / 1_000, frame.clone())));
    }
    for (at, frame) in back {
        let enters = at + 2 * LATENCY + through_line(frame);
        want.extend([enters, enters + through_star(frame)].map(|ps| (ps / 1_000, frame.clone())));
    }
    want.sort();
    let is_in_order = found.is_sorted_by_key(|(time, _)| *time);
    found.sort();
    assert!(is_in_order && found == want, "{} of {} records", found.len(), want.len());
}

/// Flows beside the frames are skipped over, and the frames arrive as if they were not.
#[test]
fn acceleration_changes_no_delay() {
    // The frames meet the acknowledgements of both flows: of one at host 0, of the other on the way to host 1.
    let place = Place::new("accel");
    fs::write(place.path("flows.txt"), "2\n1 2 3 100 20000000 0\n3 0 3 101 20000000 0\n").expect("a file");
    let frames: Vec<(u64, Vec<u8>)> =
        (0..8).map(|i| (50 * US + 7 + i * 200 * US, frame(2, 1, 1_000 + i as usize))).collect();
    let run = |tier: &str| {
        let ports = format!("--listen {tier}0 --port 0 --listen {tier}1 --port 1 --link-latency 10us");
        let process =
            place.cosim(&format!("--topology star.txt --flows flows.txt {ports} --accel {tier} --out {tier}"));
        let far = thread::spawn({
            let socket = place.path(&format!("{tier}1"));
            move || Peer::connect(&socket, &CONNECTER, 10 * US).play(&[], u64::MAX)
        });
        let mut near = Peer::connect(&place.path(&format!("{tier}0")), &CONNECTER, 10 * US);
        near.play(&frames, 3_000 * US);
        near.send(3_000 * US, TERMINATE, &[]);
        let arrived = far.join().expect("the far peer");
        process.ends().succeeds();
        let summary = fs::read(place.path(tier).join("summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_slice(&summary).expect("JSON");
        let fct = fs::read_to_string(place.path(tier).join("fct.csv")).expect("results");
        (arrived, fct, summary["events_skipped"].as_u64().expect("a count"))
    };
    let (plain, exact) = (run("off"), run("exact"));
    assert_eq!((plain.0.len(), plain.2), (8, 0));
    assert_eq!((&exact.0, &exact.1), (&plain.0, &plain.1));
    assert_eq!(plain.1.lines().count(), 3, "both flows have ended: {}", plain.1);
    assert!(exact.2 > 0, "something is skipped");
    println!("8 frames beside two flows, {} events skipped", exact.2);
}

#[test]
fn without_synchronisation_frames_count_as_sent_when_they_are_seen() {
    let place = Place::new("free");
    let process = place.cosim("--topology star.txt --listen a --port 0 --listen b --port 1 --sync off");
    let mut near = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    let mut far = Peer::connect(&place.path("b"), &CONNECTER, LATENCY);
    for length in [60, 1_514] {
        near.send(0, PACKET, &frame(2, 1, length));
        assert_eq!(far.receive().payload, frame(2, 1, length));
        far.send(0, PACKET, &frame(1, 2, length));
        assert_eq!(near.receive().payload, frame(1, 2, length));
    }
    far.send(0, TERMINATE, &[]);
    assert_eq!(near.receive().own_type, TERMINATE);
    let said = process.ends().succeeds();
    assert!(said.errors.contains("port 0: connected, no synchronisation"), "{said:?}");
}

#[test]
fn the_time_given_is_when_it_ends() {
    let place = Place::new("until");
    let process = place.cosim("--topology star.txt --listen a --port 0 --until 10us --sync-interval 200ns");
    let mut peer = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    assert!(peer.play(&[], u64::MAX).is_empty());
    let said = process.ends().succeeds();
    assert!(said.errors.contains("port 0: connected, time is kept together"), "{said:?}");

    // To the networks of SimBricks, no farewell; a listener's memory may have a name, which is gone in the end.
    let process = place.cosim("--topology star.txt --listen a --port 0 --shm memory --until 3us --farewell none");
    let mut peer = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    let stamps: Vec<u64> = (0..7)
        .map(|i| {
            peer.send(i * LATENCY, SYNC, &[]);
            let told = peer.receive();
            assert_eq!(told.own_type, SYNC);
            told.stamp
        })
        .collect();
    assert_eq!(stamps, [1, 2, 3, 4, 5, 6, 7].map(|i| i * LATENCY));
    process.ends().succeeds();
    assert_eq!(peer.peek(), None);
    assert!(!place.path("memory").exists() && !place.path("a").exists());
}

#[test]
fn frames_too_long_for_a_peer_are_told() {
    let place = Place::new("long");
    let process = place.cosim("--topology star.txt --listen a --port 0 --connect b --port 1");
    let listener = UnixListener::bind(place.path("b")).expect("a socket");
    let small = [1, 1, 0, 128, 64, 102_400, 128, 64, 1, 80];
    let far = thread::spawn(move || Peer::accept(&listener, &small, MEMORY, LATENCY).play(&[], u64::MAX));
    let mut near = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    near.play(&[(US, frame(2, 1, 65)), (2 * US, frame(2, 1, 64))], 20 * US);
    near.send(20 * US, TERMINATE, &[]);
    let payloads: Vec<usize> = far.join().expect("the far peer").iter().map(|(_, frame)| frame.len()).collect();
    assert_eq!(payloads, [64]);
    let said = process.ends().succeeds();
    assert!(said.errors.contains("port 1: 1 frames were too long for the peer's slots"), "{said:?}");
}

// Others.

/// A listening wormhole, met by a connecter that says these fields.
fn met_by_connecter(name: &str, options: &str, fields: &[u64]) -> Said {
    let place = Place::new(name);
    let process = place.cosim(&format!("--topology star.txt --listen a --port 0 {options}"));
    let socket = dial(&place.path("a"));
    say(&socket, &intro(fields), None);
    process.ends()
}

#[test]
fn connecters_that_make_no_sense_are_refused() {
    let [version, flags, upper, at] = CONNECTER;
    let cases: [(&str, [u64; 4], &str); 5] = [
        ("", [2, flags, upper, at], "a: the peer's introduction: version 2, where 1 is spoken"),
        ("", [version, 12, upper, at], "a: the peer's introduction: flags 0xc"),
        ("", [version, flags, 2, at], "a: the peer's introduction: upper protocol 2, where 1 (Ethernet) is spoken"),
        ("", [version, flags, upper, u64::MAX], "the upper protocol's introduction is said to be at byte 18446744"),
        ("--sync off", [version, 3, upper, at], "a: the peer's introduction: it demands synchronisation, which is off"),
    ];
    for (i, (options, fields, told)) in cases.iter().enumerate() {
        met_by_connecter(&format!("c{i}"), options, fields).tells(12, told);
    }
    let long: Vec<u64> = CONNECTER.into_iter().chain([0]).collect();
    met_by_connecter("c5", "", &long).tells(12, "44 bytes, where 36 were expected");
    let told = "it offers no synchronisation, which is required";
    met_by_connecter("c6", "--sync required", &[version, 0, upper, at]).tells(12, told);
}

/// A connecting wormhole, met by a listener that says these fields and sends a file of this many bytes.
fn met_by_listener(name: &str, fields: &[u64], bytes: Option<u64>) -> Said {
    let place = Place::new(name);
    let listener = UnixListener::bind(place.path("a")).expect("a socket");
    let process = place.cosim("--topology star.txt --connect a --port 0");
    let (socket, _) = listener.accept().expect("a connection");
    say(&socket, &intro(fields), bytes.map(memory).as_ref());
    process.ends()
}

#[test]
fn listeners_whose_memory_makes_no_sense_are_refused() {
    let with = |field: usize, value: u64| {
        let mut fields = LISTENER;
        fields[field] = value;
        fields
    };
    let cases = [
        (with(3, 64), Some(MEMORY), "the ring to the connecter: slots of 64 bytes have no room for a packet"),
        (with(6, u64::MAX), Some(MEMORY), "the ring to the listener"),
        (with(4, 0), Some(MEMORY), "the ring to the connecter: it has no slots"),
        (
            with(4, 1 << 61),
            Some(MEMORY),
            "the ring to the connecter: 2305843009213693952 slots of 1600 bytes: too large",
        ),
        (with(2, 3), Some(MEMORY), "the ring to the connecter: offset 3 and slot size 1600 must be multiples of 8"),
        (with(5, 1_600), Some(MEMORY), "the rings overlap"),
        (with(7, 65), Some(MEMORY), "the shared memory has 204800 bytes, the rings need 206400"),
        (LISTENER, Some(0), "the shared memory has 0 bytes, the rings need 204800"),
        (LISTENER, None, "it comes without shared memory"),
    ];
    for (i, (fields, bytes, told)) in cases.iter().enumerate() {
        met_by_listener(&format!("l{i}"), fields, *bytes).tells(12, told);
    }
}

#[test]
fn nobody_is_waited_for_for_ever() {
    let place = Place::new("late");
    let options = "--topology star.txt --port 0 --timeout 1";
    let cases = [("--listen a", "a: nobody has connected after 1 s"), ("--connect b", "b: nobody listens after 1 s")];
    for (side, told) in cases {
        place.cosim(&format!("{options} {side}")).ends().ends(12, &format!("wormhole: {told}"));
    }
    let process = place.cosim(&format!("{options} --listen c"));
    let silent = dial(&place.path("c"));
    process.ends().ends(12, "wormhole: c: the peer has not introduced itself after 1 s");
    drop(silent);

    let process = place.cosim(&format!("{options} --listen d"));
    drop(dial(&place.path("d")));
    process.ends().ends(12, "wormhole: d: the peer is gone before it has introduced itself");
    assert!(!place.path("a").exists() && !place.path("d").exists(), "sockets are removed");
}

/// A run that is under way at 2 us, then `harm` is done to it.
fn harmed(name: &str, harm: impl FnOnce(&mut Peer)) -> Said {
    let place = Place::new(name);
    let process = place.cosim("--topology star.txt --listen a --port 0");
    let mut peer = Peer::connect(&place.path("a"), &CONNECTER, LATENCY);
    for now in [0, 1, 2, 3, 4] {
        peer.send(now * LATENCY, SYNC, &[]);
        peer.receive();
    }
    harm(&mut peer);
    process.ends()
}

#[test]
fn peers_that_break_the_protocol_end_the_run() {
    let slot = "wormhole: port 0: slot 5 of the ring has";
    let unknown = harmed("unknown", |peer| {
        peer.send(5 * LATENCY, 0xaa, &[]);
    });
    unknown.ends(12, &format!("{slot} a message of unknown type 0x2a"));
    let long = harmed("long-packet", |peer| {
        peer.try_send(5 * LATENCY, PACKET, &[], 1_537);
    });
    long.ends(12, &format!("{slot} a packet of 1537 bytes, where 1536 have room"));
    let back = harmed("backwards", |peer| {
        peer.try_send(5 * LATENCY - 1, SYNC, &[], 0);
    });
    back.ends(12, "wormhole: port 0: a message of 2499999 ps after one of 2500000 ps");
    let talks = harmed("talks", |peer| say(&peer.socket, b"hello", None));
    talks.ends(12, "wormhole: port 0: more on the socket than an introduction");
}

#[test]
fn peers_that_vanish_end_the_run() {
    let gone = harmed("gone", |peer| {
        let (one, _) = UnixStream::pair().expect("sockets");
        peer.socket = one;
    });
    gone.ends(12, "wormhole: port 0: the peer is gone, at 2500000 ps");

    // A process that is killed; its neighbour ends in good order what is between it and another.
    let place = Place::new("killed");
    let star = place.cosim("--topology star.txt --listen a --port 0 --listen b --port 1 --out star");
    let mut line = place.cosim("--topology line.txt --connect a --port 0 --out line");
    let mut peer = Peer::connect(&place.path("b"), &CONNECTER, LATENCY);
    peer.send(0, SYNC, &[]);
    while peer.receive().stamp < 2 * LATENCY {}
    line.kill();
    for now in 1.. {
        peer.send(now * LATENCY, SYNC, &[]);
        if peer.receive().own_type == TERMINATE {
            break;
        }
    }
    star.ends().tells(12, "wormhole: port 0: the peer is gone, at ");
}

#[test]
fn command_lines_that_make_no_sense_are_refused() {
    let place = Place::new("line");
    let cases = [
        ("--listen a", 2, "each --listen or --connect takes one --port, and there must be some (found 1 and 0)"),
        ("--port 0 --port 1 --connect a", 2, "(found 1 and 2)"),
        ("--connect a --port 0 --shm m", 2, "--shm goes with a --listen (found 1 and 0)"),
        ("--connect a --port 4", 3, "external port at node 4: there is no such host"),
        ("--connect a --port 0 --connect b --port 0", 3, "host 0 is two external ports"),
        ("--connect a --port 0 --mac 1=02:00:00:00:00:01", 3, "address 02:00:00:00:00:01: host 1 is no external port"),
        ("--connect a --port 0 --mac 0=03:00:00:00:00:01", 3, "address 03:00:00:00:00:01 of host 0 names several"),
        ("--connect a --port 0 --mac 0=1", 2, "six pairs of hexadecimal digits"),
        ("--connect a --port 0 --link-latency 0ns", 2, "it must be above 0"),
        ("--connect a --port 0 --sync-interval 501ns", 3, "--sync-interval: above the latency"),
        ("--listen star.txt --port 0", 1, "star.txt: "),
        ("--listen a --port 0 --shm star.txt", 1, "star.txt: "),
    ];
    for (options, code, told) in cases {
        place.cosim(&format!("--topology star.txt {options}")).ends().tells(code, told);
    }
}

// Documentation.

/// The commands of the page, as they stand there, at the same time.
#[test]
fn the_documents_commands_do_what_it_says() {
    let page = fs::read_to_string(root().join("host-runner/docs/co-simulation.md")).expect("the page");
    let place = Place::new("docs");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("cargo run --release -- ")).collect();
    let (topologies, runs): (Vec<&str>, Vec<&str>) = commands.iter().partition(|line| line.starts_with("topo "));
    assert_eq!((topologies.len(), runs.len()), (1, 2), "{commands:?}");
    place.start(topologies[0]).ends().succeeds();
    let started: Vec<Started> = runs.iter().map(|run| place.start(run.trim_end_matches(" &"))).collect();
    for (run, process) in runs.iter().zip(started) {
        let said = process.ends().succeeds();
        println!("{run}\n{}", said.out);
        assert!(said.errors.contains("connected, time is kept together"), "{said:?}");
    }
}
