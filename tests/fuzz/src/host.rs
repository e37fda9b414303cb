//! What must hold of every answer of the host's parsers, and of every run of what they have accepted.

use libfuzzer_sys::arbitrary::Unstructured;
use std::ops::ControlFlow;
use wormhole::input::decode;
use wormhole::input::diagnostics::{Diagnostics, Severity};
use wormhole::load::{Texts, load_texts};
use wormhole::scenario::{Options, Scenario};
use wormhole::simulate::{Ending, Outcome, Progress, Refusal, Watch, simulate};
use wormhole::workload::engine::PlacedJob;
use wormhole::workload::task::{Job, Work};
use wormhole_kernel::accel::{Acceleration, Tier};
use wormhole_kernel::{Completion, NodeId, SimTime};

/// Hosts of the fabric that fuzzed inputs are for.
pub const HOSTS: u32 = 8;

/// Eight hosts in two racks.
pub const TOPOLOGY: &str = "10 2 9\n8 9\n0 8 100Gbps 1us 0\n1 8 100Gbps 1us 0\n2 8 100Gbps 1us 0\n3 8 100Gbps 1us 0\n\
    4 9 100Gbps 1us 0\n5 9 100Gbps 1us 0\n6 9 100Gbps 1us 0\n7 9 100Gbps 1us 0\n8 9 400Gbps 2us 0\n";

/// Tasks of a job that are looked at.
const MOST_TASKS: usize = 20_000;

/// A text as the program decodes it.
pub fn text(data: &[u8]) -> String {
    decode(data.to_vec())
}

/// Checks what was found in a text: it was refused if and only if an error says so, and every finding is about one of
/// its lines and can be shown.
///
/// # Panics
/// If it does not hold.
pub fn check_findings(text: &str, found: &Diagnostics, is_accepted: bool) {
    assert_ne!(is_accepted, found.has_errors(), "{:?}", found.all());
    // Either is the end of a line, and both together are one.
    let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
    for finding in found.all() {
        assert!(finding.line <= lines, "line {} of {lines}: {finding}", finding.line);
        assert!(!finding.message.is_empty() && !finding.to_string().contains(char::is_control), "{finding:?}");
    }
    assert_eq!(found.has_errors(), found.all().iter().any(|finding| finding.severity == Severity::Error));
}

/// Checks a workload in a format that `parse` reads: what is found in it, and the job if it is accepted.
///
/// # Panics
/// If something does not hold.
pub fn check_workload(data: &[u8], parse: impl FnOnce(&str, &mut Diagnostics) -> Option<Job>) {
    let mut bytes = Unstructured::new(data);
    let options = options(&mut bytes);
    let text = text(bytes.take_rest());
    let mut found = Diagnostics::of("workload");
    let job = parse(&text, &mut found);
    check_findings(&text, &found, job.is_some());
    if let Some(job) = job {
        check_job(&job, &options);
    }
}

/// Checks that a job names only what there is, and that it can be run.
///
/// # Panics
/// If it does not hold.
pub fn check_job(job: &Job, options: &Options) {
    for group in &job.groups {
        let mut ranks = group.ranks.clone();
        ranks.sort_unstable();
        assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]), "{group:?}");
        assert!(ranks.last().is_none_or(|last| *last < job.ranks()), "{group:?}");
    }
    let mut seen = 0;
    for (rank, mut program) in (0..).zip(job.programs.iter().cloned()) {
        for id in 0.. {
            let Some(task) = program.next().filter(|_| seen < MOST_TASKS) else { break };
            seen += 1;
            assert!(task.after.iter().chain(&task.with).all(|other| *other < id), "{task:?}");
            match task.work {
                Work::Collective(call) => assert!(job.groups[call.group as usize].ranks.contains(&rank), "{task:?}"),
                Work::Send { to, .. } | Work::Put { to, .. } => assert!(to < job.ranks(), "{task:?}"),
                Work::Recv { from, .. } => assert!(from.is_none_or(|from| from < job.ranks()), "{task:?}"),
                Work::Nothing | Work::Delay(_) | Work::Compute { .. } => {}
            }
        }
    }
    if job.ranks() <= HOSTS && seen < MOST_TASKS {
        let hosts = (0..job.ranks()).map(NodeId).collect();
        let placed = PlacedJob {
            name: "job".into(),
            job: job.clone(),
            hosts,
            start: SimTime::ZERO,
            collectives: Default::default(),
        };
        check_simulation(&Scenario { jobs: vec![placed], ..scenario(options, "") });
    }
}

/// The fabric with a configuration that is none or known to be good, and nothing to do.
///
/// # Panics
/// If it is not good.
pub fn scenario(options: &Options, config: &str) -> Scenario {
    let texts = Texts { topology: ("t", TOPOLOGY), flows: None, config: Some(("c", config)), link_events: None };
    load_texts(&texts, options).scenario.expect("a scenario")
}

/// Options as bytes choose them.
pub fn options(bytes: &mut Unstructured<'_>) -> Options {
    use wormhole::scenario::{Profile, Routing};
    let choice: u8 = bytes.arbitrary().unwrap_or_default();
    let profile = if choice & 1 == 0 { Profile::Ps } else { Profile::Ns3 };
    let routing = if choice & 2 == 0 || profile == Profile::Ns3 { Routing::Ecmp } else { Routing::Spray };
    Options { profile, routing, max_packets: 4_096, max_flows: 1_024, ..Options::PLAIN }
}

/// Ends a run that executes many events.
struct Brief;

impl Watch for Brief {
    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

fn run(scenario: &Scenario, tier: Tier) -> Result<Outcome, Vec<Refusal>> {
    let acceleration = Acceleration { tier, ..scenario.acceleration };
    simulate(&Scenario { acceleration, ..scenario.clone() }, &mut Brief)
}

fn completions(outcome: &Outcome) -> Vec<Completion> {
    outcome.flows.in_memory().iter().map(|flow| flow.completion).collect()
}

/// Runs a scenario for a while, with and without exact acceleration: if both end, they end alike.
///
/// # Panics
/// If they do not.
pub fn check_simulation(scenario: &Scenario) {
    let (plain, exact) = match (run(scenario, Tier::Off), run(scenario, Tier::Exact)) {
        (Ok(plain), Ok(exact)) => (plain, exact),
        (Err(plain), Err(exact)) => return assert_eq!(plain, exact),
        (plain, exact) => panic!("only one of them is refused: {:?}, {:?}", plain.err(), exact.err()),
    };
    assert!(plain.flows.len() <= plain.flows_begun, "{} of {} flows", plain.flows.len(), plain.flows_begun);
    if plain.ending == Ending::Done && exact.ending == Ending::Done && exact.skipped.contested == 0 {
        assert_eq!(completions(&plain), completions(&exact));
        assert_eq!(plain.totals.packet_hops, exact.totals.packet_hops);
    }
}
