//! Reading input files.

use crate::input::config::{self, Config};
use crate::input::diagnostics::Diagnostics;
use crate::input::flows::FlowRow;
use crate::input::topology::Topology;
use crate::input::{self, counted, decode, flows, link_events};
use crate::jobs::{JobSource, place};
use crate::scenario::{Options, Profile, Scenario};
use crate::workload::engine::PlacedJob;
use std::path::PathBuf;

/// Where a text is.
#[derive(Clone, Debug)]
pub enum Source {
    /// In a file.
    File(PathBuf),
    /// Here, under the name its findings go by.
    Text {
        /// The name.
        name: String,
        /// The text.
        text: String,
    },
}

/// The files of a scenario.
#[derive(Clone, Debug)]
pub struct Files {
    /// The topology.
    pub topology: Source,
    /// The flows, if any are listed.
    pub flows: Option<PathBuf>,
    /// The configuration.
    pub config: Option<Source>,
    /// Link changes.
    pub link_events: Option<PathBuf>,
    /// The jobs.
    pub jobs: Vec<JobSource>,
    /// Frames come from outside, too: neither flows nor jobs are needed.
    pub is_open: bool,
}

/// The texts of a scenario, each with the name its findings go by.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'t> {
    /// The topology.
    pub topology: (&'t str, &'t str),
    /// The flows, if any are listed.
    pub flows: Option<(&'t str, &'t str)>,
    /// The configuration.
    pub config: Option<(&'t str, &'t str)>,
    /// Link changes.
    pub link_events: Option<(&'t str, &'t str)>,
}

/// What was read: the scenario unless there are errors, what the files were taken for, and all findings.
pub struct Loaded {
    /// `None` if anything found is an error.
    pub scenario: Option<Scenario>,
    /// One line for people.
    pub description: String,
    /// All findings, file by file.
    pub found: Diagnostics,
}

/// Reads a scenario from files.
pub fn load_files(files: &Files, options: &Options) -> Loaded {
    let mut unreadable = Diagnostics::default();
    let mut read = |source: &Source| match source {
        Source::Text { name, text } => (name.clone(), text.clone()),
        Source::File(path) => {
            let text = input::read(path, &mut unreadable).map_or(String::new(), decode);
            (path.display().to_string(), text)
        }
    };
    let topology = read(&files.topology);
    let config = files.config.as_ref().map(&mut read);
    let [flows, link_events] =
        [&files.flows, &files.link_events].map(|path| path.clone().map(|path| read(&Source::File(path))));
    if files.flows.is_none() && files.jobs.is_empty() && !files.is_open {
        unreadable.error(
            0,
            "",
            "nothing is to be sent: there are neither flows, nor a workload, nor jobs in a scenario",
        );
    }
    if unreadable.has_errors() {
        return Loaded { scenario: None, description: String::new(), found: unreadable };
    }
    fn borrowed((name, text): &(String, String)) -> (&str, &str) {
        (name, text)
    }
    let texts = Texts {
        topology: borrowed(&topology),
        flows: flows.as_ref().map(borrowed),
        config: config.as_ref().map(borrowed),
        link_events: link_events.as_ref().map(borrowed),
    };
    load_with_jobs(&texts, &files.jobs, options)
}

/// Reads a scenario from texts.
pub fn load_texts(texts: &Texts<'_>, options: &Options) -> Loaded {
    load_with_jobs(texts, &[], options)
}

/// As [`load_texts`], with jobs.
pub fn load_with_jobs(texts: &Texts<'_>, jobs: &[JobSource], options: &Options) -> Loaded {
    let mut all = Diagnostics::default();
    let mut found = Diagnostics::of(texts.topology.0);
    let topology = Topology::parse(texts.topology.1, &mut found);
    all.extend(found);

    let name = texts.config.map_or("configuration", |(name, _)| name);
    let mut config_found = Diagnostics::of(name);
    let config = texts.config.map_or_else(Config::default, |(_, text)| config::parse(text, &mut config_found));

    let Some(topology) = topology else {
        all.extend(config_found);
        return Loaded { scenario: None, description: String::new(), found: all };
    };
    let mut rows = Vec::new();
    if let Some((name, text)) = texts.flows {
        let mut found = Diagnostics::of(name);
        rows = flows::parse(text, &topology, &mut found);
        if options.profile == Profile::Ns3 {
            refuse_what_ns3_cannot_carry(&rows, &mut found);
        }
        all.extend(found);
    }
    let jobs = place(jobs, &topology.hosts(), options.seed, &mut all);

    let mut events = Vec::new();
    if let Some((name, text)) = texts.link_events {
        let mut found = Diagnostics::of(name);
        events = link_events::parse(text, &topology.links, &mut found);
        all.extend(found);
    }
    let description = describe(&topology, texts.flows.is_some().then_some(rows.len()), &jobs);
    // Of a faulty configuration more would be said that is not so.
    let usable = !all.has_errors() && !config_found.has_errors();
    let scenario = usable.then(|| Scenario::new(topology, &rows, &config, events, options, &mut config_found));
    all.extend(config_found);
    all.extend(check_rate_quantum(options, scenario.as_ref()));
    let scenario = scenario.filter(|_| !all.has_errors()).map(|scenario| Scenario { jobs, ..scenario });
    Loaded { scenario, description, found: all }
}

/// What was read, a line for the fabric with its flows, and one for each job.
fn describe(topology: &Topology, flows: Option<usize>, jobs: &[PlacedJob]) -> String {
    let mut description = topology.describe();
    if let Some(flows) = flows {
        description += &format!(", {}", counted(flows, "flow"));
    }
    for PlacedJob { name, job, .. } in jobs {
        description += &format!("\n{name}: {}", job.description);
    }
    description
}

/// The reference simulator has no coarse rate registers, and congestion controls other than HPCC have none here.
fn check_rate_quantum(options: &Options, scenario: Option<&Scenario>) -> Diagnostics {
    let mut found = Diagnostics::of("--rate-quantum");
    if options.rate_quantum == 0 {
        return found;
    }
    let other = scenario.map(Scenario::cca_name).filter(|name| *name != "hpcc");
    if options.profile == Profile::Ns3 {
        found.error(0, "", "profile ns3 has rates as fine as ns-3's; a granularity needs --profile ps");
    } else if let Some(name) = other {
        found.warning(0, name, "only HPCC has a granularity of rates; this changes nothing");
    }
    found
}

/// ns-3 counts a flow's bytes in 32 bits and would silently send the rest only.
fn refuse_what_ns3_cannot_carry(rows: &[FlowRow], found: &mut Diagnostics) {
    for row in rows.iter().filter(|row| row.bytes > u64::from(u32::MAX)) {
        let message = "a flow of 4 GiB or more: profile ns3 carries none, profile ps does";
        found.error(0, &format!("{} {} {}", row.src.0, row.dst.0, row.bytes), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::NS3;
    use wormhole_kernel::cca::CongestionControl;

    fn load(options: &Options, config: &str) -> Loaded {
        let texts = Texts {
            topology: ("topology", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
            flows: Some(("flows", "1\n0 1 3 100 1000 0\n")),
            config: Some(("config", config)),
            link_events: None,
        };
        load_texts(&texts, options)
    }

    #[test]
    fn a_granularity_of_rates_is_for_hpcc_in_profile_ps() {
        let quantum = |profile, rate_quantum| Options { profile, rate_quantum, ..NS3 };
        let found = |loaded: &Loaded| loaded.found.all().iter().map(|d| d.to_string()).collect::<Vec<_>>();

        let loaded = load(&quantum(Profile::Ps, 1_000_000), "CC_MODE 3");
        assert_eq!(found(&loaded), [""; 0]);
        let model = |loaded: Loaded| loaded.scenario.expect("a scenario").cca.id();
        let fine = model(load(&quantum(Profile::Ps, 0), "CC_MODE 3"));
        assert_ne!(model(loaded), fine, "the model is another");

        let loaded = load(&quantum(Profile::Ps, 1_000_000), "CC_MODE 1");
        let warning =
            "--rate-quantum: warning: only HPCC has a granularity of rates; this changes nothing (found `dcqcn`)";
        assert_eq!((found(&loaded), loaded.scenario.is_some()), (vec![warning.to_owned()], true));

        let loaded = load(&quantum(Profile::Ns3, 1), "CC_MODE 3");
        let error = "--rate-quantum: error: profile ns3 has rates as fine as ns-3's; a granularity needs --profile ps";
        assert_eq!((found(&loaded), loaded.scenario.is_some()), (vec![error.to_owned()], false));

        assert_eq!(found(&load(&quantum(Profile::Ns3, 0), "CC_MODE 1")), [""; 0]);
    }
}
