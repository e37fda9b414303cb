//! Test support: the data under `tests/data`, runs of scenarios made from it, and an observer that keeps what the
//! tests ask about.

pub mod component;
pub mod counting;
pub mod drive;
pub mod phases;
pub mod recurring;
pub mod shrink;
pub mod simbricks_peer;
pub mod swarm;
pub mod watch;
pub mod world;
pub mod worlds;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use wormhole::load::{Files, Loaded, Source, Texts, load_files, load_texts};
use wormhole::scenario::{Options, Scenario};
use wormhole::simulate::{Ending, Outcome, PortReport, Refusal, simulate, simulate_observed};
use wormhole::workload::collective::CollectiveOptions;
use wormhole::workload::engine::PlacedJob;
use wormhole::workload::task::{Call, CollectiveKind, Group, Job, Listed, Program, Task, Work};
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::{FlowEnd, NodeId, Observer, PortId, SimTime};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};

/// README.md of the repository.
pub const README: &str = include_str!("../../README.md");

/// The folder of the repository.
///
/// # Panics
/// If it is gone.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository's root")
}

/// The binary `wormhole`.
///
/// # Panics
/// If it cannot be built.
pub fn wormhole_binary() -> PathBuf {
    build("wormhole", &[]).join(format!("wormhole{}", std::env::consts::EXE_SUFFIX))
}

/// The binary `wormhole`, built once for all tests of a program.
pub static WORMHOLE: LazyLock<PathBuf> = LazyLock::new(wormhole_binary);

/// `wormhole` with these arguments, to be run in `folder` without input.
pub fn wormhole_in(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(&*WORMHOLE);
    command.args(arguments.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command
}

/// Makes a folder anew.
///
/// # Panics
/// If it cannot be made.
pub fn empty_folder(folder: PathBuf) -> PathBuf {
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// An example of host-runner, built with the profile of this test.
///
/// # Panics
/// If it cannot be built.
pub fn wormhole_example(name: &str) -> PathBuf {
    let folder = build("wormhole", &["--example", name]);
    folder.join("examples").join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
}

/// The folder with what a package of the workspace builds, with the profile of this test: a test crate does not get the
/// binaries and foreign libraries of others.
///
/// # Panics
/// If it cannot be built.
pub fn built(package: &str) -> PathBuf {
    build(package, &[])
}

/// Builds targets of a package, and gives the folder they are in.
fn build(package: &str, targets: &[&str]) -> PathBuf {
    let test = std::env::current_exe().expect("this test's path");
    let folder = test.parent().and_then(Path::parent).expect("target/PROFILE/deps/TEST");
    let profile = match folder.file_name().and_then(|n| n.to_str()) {
        // What `cargo test` itself builds with: optimised.
        Some("debug") | None => "test",
        Some(name) => name,
    };
    let status = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package", package, "--profile", profile])
        .args(targets)
        .arg("--target-dir")
        .arg(folder.parent().expect("the target directory"))
        .current_dir(root())
        .status()
        .expect("cargo runs");
    assert!(status.success(), "cargo build: {status}");
    folder.to_owned()
}

/// The pages of the manual, each with its name, README.md first.
///
/// # Panics
/// If they cannot be read.
pub fn manual() -> Vec<(String, String)> {
    let folder = root().join("host-runner/book/src");
    let mut pages: Vec<(String, String)> = fs::read_dir(folder)
        .expect("the book")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("UTF-8").to_owned();
            (name, fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        })
        .collect();
    pages.push(("README.md".into(), README.into()));
    pages.sort_by_key(|(name, _)| (name != "README.md", name.clone()));
    pages
}

/// The first cells of a table of the manual, in its order.
///
/// # Panics
/// If there is no table with this heading.
pub fn manual_cells(heading: &str) -> Vec<String> {
    let cells: Vec<String> = manual()
        .iter()
        .flat_map(|(_, page)| page.lines().skip_while(|l| *l != heading).skip(2).take_while(|l| l.starts_with('|')))
        .map(|row| row.split('|').nth(1).unwrap_or("").trim().to_owned())
        .collect();
    assert!(!cells.is_empty(), "the manual has no table `{heading}`");
    cells
}

/// The names in backquotes of the first column of a table of the manual, in its order.
///
/// # Panics
/// If there is no table with this heading.
pub fn manual_names(heading: &str) -> Vec<String> {
    let cells = manual_cells(heading);
    cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// A path below `tests/data`.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("data").join(path)
}

/// A file of a case.
pub fn case_file(case: &str, file: &str) -> PathBuf {
    data("cases").join(case).join(file)
}

/// The files of a case; the optional ones if they are there.
fn case_files(case: &str) -> Files {
    let optional = |name: &str| Some(case_file(case, name)).filter(|path| path.is_file());
    Files {
        topology: Source::File(case_file(case, "topology.txt")),
        flows: Some(case_file(case, "flow.txt")),
        config: optional("config.txt").map(Source::File),
        link_events: optional("events.txt"),
        jobs: Vec::new(),
        is_open: false,
    }
}

/// The text of a case's file.
///
/// # Panics
/// If it cannot be read.
pub fn case_text(case: &str, file: &str) -> String {
    let path = case_file(case, file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Reads a case from its files, with [`Options::PLAIN`].
pub fn load_case(case: &str) -> Loaded {
    load_files(&case_files(case), &Options::PLAIN)
}

/// Reads a case under a configuration the test has made. The case has no other optional files.
pub fn load_configured(case: &str, config: &str) -> Loaded {
    load_text(&case_text(case, "topology.txt"), &case_text(case, "flow.txt"), config)
}

/// Reads a scenario from a topology, flows and a configuration, with [`Options::PLAIN`].
pub fn load_text(topology: &str, flows: &str, config: &str) -> Loaded {
    let texts = Texts {
        topology: ("topology.txt", topology),
        flows: Some(("flow.txt", flows)),
        config: Some(("config.txt", config)),
        link_events: None,
    };
    load_texts(&texts, &Options::PLAIN)
}

/// What was found, a line each, with file names cut to their last part.
pub fn findings(loaded: &Loaded) -> Vec<String> {
    let line = |text: String| text.rsplit_once('/').map_or(text.clone(), |(_, tail)| tail.to_owned());
    loaded.found.all().iter().map(|d| line(d.to_string())).collect()
}

/// The scenario of a usable input.
///
/// # Panics
/// With all findings, if the input is not usable.
pub fn usable(loaded: Loaded) -> Scenario {
    let found = findings(&loaded);
    loaded.scenario.unwrap_or_else(|| panic!("not usable: {found:#?}"))
}

/// The scenario of an input in which there is nothing to find.
///
/// # Panics
/// With all findings, if there are any.
pub fn flawless(loaded: Loaded) -> Scenario {
    let found = findings(&loaded);
    assert!(found.is_empty(), "found: {found:#?}");
    usable(loaded)
}

/// What one port has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PortLog {
    /// Data frames that have arrived.
    pub data_frames: u64,
    /// Their payload bytes.
    pub payload: u64,
    /// Wire bytes of the last of them.
    pub last_data_bytes: u32,
    /// When the last of them had arrived.
    pub last_data: SimTime,
    /// When the last acknowledgement had arrived.
    pub last_ack: SimTime,
    /// When the port last began to send a frame.
    pub last_transmit: SimTime,
}

/// A PAUSE or RESUME that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcLog {
    /// At which port.
    pub port: PortId,
    /// For which priority.
    pub priority: u8,
    /// Pause, or go on.
    pub pause: bool,
}

/// Records a run: little per port, so that long runs fit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recorder {
    ports: Vec<PortLog>,
    /// PFC frames in order of arrival.
    pub pfc: Vec<PfcLog>,
}

impl Recorder {
    /// What a port has seen.
    pub fn port(&self, port: PortId) -> PortLog {
        self.ports.get(port.index()).copied().unwrap_or_default()
    }

    /// The log of a port; there are as many as the highest port number seen asks for.
    fn log(&mut self, port: PortId) -> &mut PortLog {
        if port.index() >= self.ports.len() {
            self.ports.resize(port.index() + 1, PortLog::default());
        }
        &mut self.ports[port.index()]
    }
}

impl Observer for Recorder {
    fn transmit(&mut self, time: SimTime, port: PortId, _: &Packet) {
        self.log(port).last_transmit = time;
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        let log = self.log(port);
        match frame.kind() {
            PacketKind::Data => {
                log.data_frames += 1;
                log.payload += u64::from(frame.payload);
                log.last_data_bytes = frame.bytes;
                log.last_data = time;
            }
            PacketKind::Ack => log.last_ack = time,
            _ => {}
        }
    }

    fn pfc(&mut self, _: SimTime, port: PortId, priority: u8, pause: bool) {
        self.pfc.push(PfcLog { port, priority, pause });
    }
}

/// A run and what was recorded of it.
pub struct Run {
    /// What the runner says.
    pub outcome: Outcome,
    /// What the observer has seen.
    pub log: Recorder,
}

/// Runs a scenario.
///
/// # Panics
/// If the kernel refuses it.
pub fn run(scenario: &Scenario) -> Run {
    let mut log = Recorder::default();
    let outcome =
        simulate_observed(scenario, None, &mut log, &mut ()).unwrap_or_else(|refused| panic!("refused: {refused:?}"));
    Run { outcome, log }
}

/// What the kernel refuses of a scenario.
///
/// # Panics
/// If it refuses nothing.
pub fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    simulate(scenario, &mut ()).err().expect("the kernel refuses nothing")
}

impl Run {
    /// Ports of `from` whose links lead to `to`.
    pub fn ports(&self, from: u32, to: u32) -> Vec<PortId> {
        let leads = |r: &PortReport| (r.info.node, r.neighbour) == (NodeId(from), NodeId(to));
        (0..).map(PortId).zip(&self.outcome.ports).filter(|(_, r)| leads(r)).map(|(port, _)| port).collect()
    }

    /// All ports of a node.
    pub fn ports_of(&self, node: u32) -> Vec<PortId> {
        let ports = (0..).map(PortId).zip(&self.outcome.ports);
        ports.filter(|(_, r)| r.info.node == NodeId(node)).map(|(port, _)| port).collect()
    }

    /// What was seen at the only port of a host.
    ///
    /// # Panics
    /// If it has more ports or none.
    pub fn host(&self, node: u32) -> PortLog {
        let ports = self.ports_of(node);
        assert_eq!(ports.len(), 1, "ports of host {node}");
        self.log.port(ports[0])
    }

    /// Bytes that a port has sent.
    pub fn sent(&self, port: PortId) -> u64 {
        self.outcome.ports[port.index()].stats.bytes
    }

    /// Asserts what holds of every good run: each flow finished once, with all its bytes, in no less than its ideal
    /// time, and the runner says so.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn assert_done(&self, scenario: &Scenario) {
        assert_eq!(self.outcome.ending, Ending::Done);
        assert_eq!(self.outcome.totals.flows_given_up, 0);
        let mut bytes: Vec<Option<u64>> = vec![None; scenario.flows.len()];
        for record in self.outcome.flows.in_memory() {
            let done = &record.completion;
            assert_eq!(done.end(), FlowEnd::Done, "{done:?}");
            assert!(done.fct >= record.ideal, "slowdown below 1: ideal {:?}, {done:?}", record.ideal);
            let seen = bytes[done.token as usize].replace(done.bytes);
            assert_eq!(seen, None, "flow {} finished twice", done.token);
        }
        let want: Vec<Option<u64>> = scenario.flows.iter().map(|flow| Some(flow.bytes)).collect();
        assert_eq!(bytes, want, "payload bytes of each flow");
    }
}

/// One collective of hosts 0 to `hosts` - 1, begun by all at once.
pub fn collective(hosts: u64, kind: CollectiveKind, bytes: u64, collectives: CollectiveOptions) -> PlacedJob {
    let ranks: Vec<u32> = (0..hosts as u32).collect();
    let call = Task::new(Work::Collective(Call { group: 0, kind, bytes }), Vec::new());
    let program = || Box::new(Listed::new(vec![call.clone()])) as Box<dyn Program>;
    let programs = ranks.iter().map(|_| program()).collect();
    let hosts = ranks.iter().map(|&rank| NodeId(rank)).collect();
    let groups = vec![Group { name: "all".into(), ranks }];
    let job = Job { description: kind.name().into(), groups, programs };
    PlacedJob { name: "job".into(), job, hosts, start: SimTime::ZERO, collectives }
}

/// A seeded generator: SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
pub struct Rng(pub u64);

impl Rng {
    /// The next number.
    #[allow(clippy::should_implement_trait)] // It never ends, and is no iterator.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A number from `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    /// One of the list.
    pub fn pick(&mut self, list: &[u64]) -> u64 {
        list[self.below(list.len() as u64) as usize]
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// All six congestion controls, with the parameters of the reference runs.
pub fn ccas() -> [AnyCca; 6] {
    [
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp))),
        AnyCca::Hpcc(Hpcc::new(HpccConfig::default())),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default())),
        AnyCca::Timely(Timely::new(TimelyConfig::default())),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig::default())),
        AnyCca::Swift(Swift::new(SwiftConfig::default())),
    ]
}

/// What a command has said, and its exit code.
#[derive(Debug)]
pub struct Said {
    /// The exit code, unless a signal ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub errors: String,
}

impl From<Output> for Said {
    /// # Panics
    /// If it has not said UTF-8.
    fn from(output: Output) -> Said {
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        Said { code: output.status.code(), out: text(output.stdout), errors: text(output.stderr) }
    }
}

impl Said {
    /// # Panics
    /// If the exit code is not 0.
    #[track_caller]
    pub fn succeeds(self) -> Said {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Exit code, and a line of the errors.
    ///
    /// # Panics
    /// If they are not so.
    #[track_caller]
    pub fn ends(&self, code: i32, line: &str) {
        let told = self.errors.lines().any(|l| l == line);
        assert!(self.code == Some(code) && told, "not {code}, `{line}`: {self:#?}");
    }

    /// Exit code, and something that is in the errors.
    ///
    /// # Panics
    /// If they are not so.
    #[track_caller]
    pub fn tells(&self, code: i32, text: &str) {
        assert!(self.code == Some(code) && self.errors.contains(text), "not {code}, `{text}`: {self:#?}");
    }
}
