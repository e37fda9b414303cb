//! The conformance kit on a plugin, and a small simulation with and without acceleration.

use super::{Loaded, Plugins};
use crate::load::{Texts, load_texts};
use crate::memo::{Memo, MemoOptions};
use crate::scenario::{Options, Scenario};
use crate::simulate::{Ending, Outcome, simulate_memoised};
use std::fmt::Write as _;
use std::io;
use wormhole_kernel::accel::{Acceleration, Tier};
use wormhole_models::kit::{BuffersKit, CcaKit, Check, Difference, MarkerKit, Misstep, Verdict};
use wormhole_models::plugin::{ForeignBuffers, ForeignCca, ForeignMarker, Wrong};

/// Hosts that send to one.
const SENDERS: usize = 8;

/// Tries everything there is to try, and tells of each check once it is done.
pub(super) fn checks(loaded: Loaded, tell: &mut dyn FnMut(Check) -> io::Result<()>) -> io::Result<()> {
    let plugin = loaded.plugin;
    let missteps = || {
        let fault = plugin.fault()?;
        plugin.forget_fault();
        Some(Misstep { is_overrun: fault.wrong == Wrong::Overrun, what: fault.to_string() })
    };
    let mut of_kit = Vec::new();
    if let Some(model) = ForeignCca::new(plugin) {
        of_kit = CcaKit::new(&model).with_missteps(&missteps).checks();
    } else if let Some(model) = ForeignMarker::new(plugin, 1) {
        of_kit = MarkerKit::new(&model).with_missteps(&missteps).checks();
    } else if let Some(model) = ForeignBuffers::new(plugin) {
        of_kit = BuffersKit::new(&model).with_missteps(&missteps).checks();
    }
    of_kit.into_iter().try_for_each(&mut *tell)?;
    plugin.forget_fault();
    tell(Check { name: "an incast, with and without acceleration", verdict: simulation(loaded) })
}

/// The same flows with every event executed, and accelerated with memoisation: no flow may end at another time.
fn simulation(loaded: Loaded) -> Verdict {
    let failed = |input: &str, found: String, expected: String| {
        Verdict::Failed(Difference { step: 0, input: input.to_owned(), found, expected })
    };
    let mut plugins = Plugins::NONE;
    if let Err(found) = plugins.add(loaded) {
        return failed("the plugin", found.all()[0].to_string(), "one of a kind".into());
    }
    let run = |tier| run(&incast(plugins, tier));
    let (plain, accelerated) = match (run(Tier::Off), run(Tier::Exact)) {
        (Ok(plain), Ok(accelerated)) => (plain, accelerated),
        (Err(found), _) => return failed("--accel off", found, "all flows end".into()),
        (_, Err(found)) => return failed("--accel exact", found, "all flows end".into()),
    };
    match plain.iter().zip(&accelerated).find(|(plain, accelerated)| plain != accelerated) {
        None => Verdict::Passed,
        Some((plain, accelerated)) => failed("--accel exact", accelerated.clone(), plain.clone()),
    }
}

/// All senders begin at once, twice.
fn incast(plugins: Plugins, tier: Tier) -> Option<Scenario> {
    let (mut topology, mut flows) =
        (format!("{} 1 {}\n{}\n", SENDERS + 2, SENDERS + 1, SENDERS + 1), format!("{}\n", 2 * SENDERS));
    for host in 0..=SENDERS {
        let _ = writeln!(topology, "{host} {} 100Gbps 1us 0", SENDERS + 1);
    }
    for (start, sender) in [0.0, 0.005].iter().flat_map(|start| (0..SENDERS).map(move |sender| (start, sender))) {
        let _ = writeln!(flows, "{sender} {SENDERS} 3 100 500000 {start}");
    }
    let texts = Texts {
        topology: ("topology", &topology),
        flows: Some(("flows", &flows)),
        // A plugin that sends next to nothing must not take for ever.
        config: Some(("config", "SIMULATOR_STOP_TIME 0.05\n")),
        link_events: None,
    };
    let acceleration = Acceleration { tier, ..Acceleration::default() };
    load_texts(&texts, &Options { plugins, acceleration, ..Options::PLAIN }).scenario
}

/// The ends of the flows, a line each.
fn run(scenario: &Option<Scenario>) -> Result<Vec<String>, String> {
    let scenario = scenario.as_ref().ok_or("the incast is no scenario")?;
    let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 20 };
    let memo = Memo::open(options, None, scenario.acceleration.tier).0;
    let mut memo = memo.ok_or("there is no memo")?;
    let outcome = simulate_memoised(scenario, &mut memo, &mut ()).map_err(|refused| {
        let errors: Vec<String> = refused.iter().map(|refusal| refusal.error.to_string()).collect();
        errors.join("; ")
    })?;
    match &outcome.ending {
        Ending::Done => Ok(ends(&outcome)),
        Ending::Plugin(fault) => Err(fault.clone()),
        other => Err(other.name()),
    }
}

fn ends(outcome: &Outcome) -> Vec<String> {
    let flows = outcome.flows.in_memory().iter();
    let mut ends: Vec<_> = flows.map(|flow| (flow.completion.token, flow.completion.fct)).collect();
    ends.sort_unstable();
    ends.iter().map(|(flow, fct)| format!("flow {flow} ends after {fct:?}")).collect()
}
