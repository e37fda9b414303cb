//! `wormhole topo`: fabrics as text.

use crate::ending::ExitStatus;
use crate::input::topology::{Dialect, Topology, write_topology};
use crate::input::units;
use clap::{Args, Subcommand, ValueEnum};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use wormhole_kernel::{BitRate, NodeId, NodeKind, Span};
use wormhole_models::topology::{
    Attachment, Clos, Dumbbell, FabricPlan, FatTree, HostLinks, LinkClass, PlanError, Rail, Star, Trunk,
};

/// The nodes and links of a fabric: in SimAI's dialect if it has NVSwitches, else in that of HPCC.
///
/// # Errors
/// [`PlanError`] if there is no such fabric.
pub fn build(plan: &dyn FabricPlan) -> Result<Topology, PlanError> {
    plan.check()?;
    let (size, counts) = (plan.size(), plan.counts());
    let nodes: Vec<NodeKind> = (0..size.nodes as u32).map(|id| plan.node(NodeId(id))).collect();
    let mut links = Vec::with_capacity(size.links);
    plan.each_link(&mut |link| links.push(link));
    let gpus_per_server = counts.hosts.checked_div(counts.nvswitches).map(|gpus| gpus as u32);
    Ok(match gpus_per_server {
        // No GPU of a known type.
        Some(_) => {
            let gpu_type = Some("NONE".to_owned());
            Topology { dialect: Dialect::SimAi, nodes, links, gpus_per_server, gpu_type }
        }
        None => Topology { dialect: Dialect::Hpcc, nodes, links, gpus_per_server, gpu_type: None },
    })
}

/// A fabric, and where its text goes.
#[derive(Args, Debug)]
pub(crate) struct TopoCommand {
    #[command(subcommand)]
    fabric: FabricArgs,
    /// File to write; standard output if it is not given.
    #[arg(long, global = true, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl TopoCommand {
    /// Writes the fabric, and tells on standard error what it has.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        let plan = self.fabric.plan();
        let topology = match build(&*plan) {
            Ok(topology) => topology,
            Err(error) => {
                eprintln!("wormhole topo: error: {}", explain(&error));
                return Ok(ExitStatus::BadInput);
            }
        };
        let out: Box<dyn Write> = match &self.out {
            Some(path) => Box::new(File::create(path)?),
            None => Box::new(io::stdout().lock()),
        };
        let mut out = BufWriter::new(out);
        write_topology(&topology, &mut out)?;
        out.flush()?;
        eprintln!("{}", summary(&*plan, &topology));
        Ok(ExitStatus::Done)
    }
}

/// Parameters are named as their options are.
fn explain(error: &PlanError) -> String {
    match error.parameter() {
        Some(parameter) => format!("--{}: {error}", parameter.replace('_', "-")),
        None => error.to_string(),
    }
}

/// What a fabric has, in a line.
fn summary(plan: &dyn FabricPlan, topology: &Topology) -> String {
    let (bisection, injection) = (plan.bisection() as f64, plan.injection() as f64);
    let mut line = format!("{}, bisection {} Gb/s", topology.describe(), bisection / 1e9);
    // One host alone has nobody to send to.
    if bisection > 0.0 {
        line += &format!(", oversubscription {:.2}:1", injection / bisection);
    }
    line
}

/// The fabrics. Options have the defaults of the plans.
#[derive(Subcommand, Debug)]
pub(crate) enum FabricArgs {
    /// The k-ary fat-tree: k pods, k^3/4 hosts.
    FatTree(FatTreeArgs),
    /// A folded Clos network of two tiers (leaves, spines), or three (pods of these, and cores).
    Clos(ClosArgs),
    /// The rail-optimised fat-tree: GPU i of every server of a group is attached to leaf i of the group.
    Rail(RailArgs),
    /// Two switches with hosts, and a bottleneck between them.
    Dumbbell(DumbbellArgs),
    /// All hosts on one switch.
    Star(StarArgs),
}

impl FabricArgs {
    /// The fabric as text.
    ///
    /// # Errors
    /// What is wrong with the options.
    pub(crate) fn text(&self) -> Result<String, String> {
        let topology = build(&*self.plan()).map_err(|error| explain(&error))?;
        let mut text = Vec::new();
        write_topology(&topology, &mut text).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    fn plan(&self) -> Box<dyn FabricPlan + '_> {
        match self {
            FabricArgs::FatTree(args) => Box::new(args.plan()),
            FabricArgs::Clos(args) => Box::new(args.plan()),
            FabricArgs::Rail(args) => Box::new(args.plan()),
            FabricArgs::Dumbbell(args) => Box::new(args.plan()),
            FabricArgs::Star(args) => Box::new(args.plan()),
        }
    }
}

/// The links of hosts.
#[derive(Args, Debug)]
struct HostArgs {
    /// Rate of a host's link; of several rates, separated by commas, the hosts take one after the other in turn.
    #[arg(long, value_name = "RATE", value_parser = rate, value_delimiter = ',', default_value = "100Gbps")]
    host_rate: Vec<BitRate>,
    /// Its propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    host_delay: Span,
}

impl HostArgs {
    fn links(&self) -> HostLinks<'_> {
        HostLinks { rates: &self.host_rate, delay: self.host_delay }
    }
}

#[derive(Args, Debug)]
pub(crate) struct FatTreeArgs {
    /// Ports of a switch; even.
    #[arg(long, default_value_t = 4)]
    k: u32,
    #[command(flatten)]
    host: HostArgs,
    /// Rate of a link between an edge and an aggregation switch.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "100Gbps")]
    aggregation_rate: BitRate,
    /// Its propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    aggregation_delay: Span,
    /// Rate of a link between an aggregation switch and a core.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "100Gbps")]
    core_rate: BitRate,
    /// Its propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    core_delay: Span,
}

impl FatTreeArgs {
    fn plan(&self) -> FatTree<'_> {
        FatTree {
            k: self.k,
            host: self.host.links(),
            aggregation: LinkClass { rate: self.aggregation_rate, delay: self.aggregation_delay },
            core: LinkClass { rate: self.core_rate, delay: self.core_delay },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct ClosArgs {
    /// Pods; more than one need cores.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pods: u32,
    /// Leaves of a pod.
    #[arg(long, value_name = "N", default_value_t = 4)]
    leaves: u32,
    /// Hosts of a leaf.
    #[arg(long, value_name = "N", default_value_t = 16)]
    hosts_per_leaf: u32,
    /// Spines of a pod.
    #[arg(long, value_name = "N", default_value_t = 4)]
    spines: u32,
    /// Cores of the fabric, a multiple of --spines; 0 for two tiers.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cores: u32,
    #[command(flatten)]
    host: HostArgs,
    /// Links between a leaf and a spine.
    #[arg(long, value_name = "N", default_value_t = 1)]
    spine_links: u32,
    /// Rate of each of them.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "400Gbps")]
    spine_rate: BitRate,
    /// Their propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    spine_delay: Span,
    /// Links between a spine and a core.
    #[arg(long, value_name = "N", default_value_t = 1)]
    core_links: u32,
    /// Rate of each of them.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "400Gbps")]
    core_rate: BitRate,
    /// Their propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    core_delay: Span,
}

impl ClosArgs {
    fn plan(&self) -> Clos<'_> {
        Clos {
            pods: self.pods,
            leaves: self.leaves,
            hosts_per_leaf: self.hosts_per_leaf,
            spines: self.spines,
            cores: self.cores,
            host: self.host.links(),
            spine: trunk(self.spine_links, self.spine_rate, self.spine_delay),
            core: trunk(self.core_links, self.core_rate, self.core_delay),
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct RailArgs {
    /// GPUs of a server: the number of rails.
    #[arg(long, value_name = "N", default_value_t = 8)]
    gpus_per_server: u32,
    /// Servers.
    #[arg(long, value_name = "N", default_value_t = 16)]
    servers: u32,
    /// Servers of a group, or GPUs of a leaf.
    #[arg(long, value_name = "N", default_value_t = 16)]
    servers_per_leaf: u32,
    /// Spines of the fabric; even with two planes.
    #[arg(long, value_name = "N", default_value_t = 16)]
    spines: u32,
    /// How a GPU's NIC is attached.
    #[arg(long, value_enum, default_value = "single-tor")]
    attachment: AttachmentName,
    /// Servers have no NVSwitch.
    #[arg(long, conflicts_with_all = ["nvlink_rate", "nvlink_delay"])]
    no_nvlink: bool,
    /// Rate of the link between a GPU and the NVSwitch of its server.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "2880Gbps")]
    nvlink_rate: BitRate,
    /// Its propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "25ns")]
    nvlink_delay: Span,
    /// Rate of a NIC, of both links together if it has two; of several rates, separated by commas, the GPUs take one
    /// after the other in turn.
    #[arg(long, value_name = "RATE", value_parser = rate, value_delimiter = ',', default_value = "400Gbps")]
    nic_rate: Vec<BitRate>,
    /// Propagation delay of its links.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "500ns")]
    nic_delay: Span,
    /// Links between a leaf and a spine.
    #[arg(long, value_name = "N", default_value_t = 1)]
    spine_links: u32,
    /// Rate of each of them.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "400Gbps")]
    spine_rate: BitRate,
    /// Their propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "500ns")]
    spine_delay: Span,
}

impl RailArgs {
    fn plan(&self) -> Rail<'_> {
        let nvlink = LinkClass { rate: self.nvlink_rate, delay: self.nvlink_delay };
        Rail {
            gpus_per_server: self.gpus_per_server,
            servers: self.servers,
            servers_per_leaf: self.servers_per_leaf,
            spines: self.spines,
            attachment: self.attachment.attachment(),
            nvlink: (!self.no_nvlink).then_some(nvlink),
            nic: HostLinks { rates: &self.nic_rate, delay: self.nic_delay },
            spine: trunk(self.spine_links, self.spine_rate, self.spine_delay),
        }
    }
}

/// An [`Attachment`] as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AttachmentName {
    /// One link, to the leaf of the rail.
    SingleTor,
    /// Two links, to two leaves of the rail, which are joined to all spines.
    DualTor,
    /// Two links, to two leaves of the rail in two planes, each with half of the spines.
    DualPlane,
}

impl AttachmentName {
    fn attachment(self) -> Attachment {
        match self {
            AttachmentName::SingleTor => Attachment::SingleTor,
            AttachmentName::DualTor => Attachment::DualTor,
            AttachmentName::DualPlane => Attachment::DualPlane,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct DumbbellArgs {
    /// Hosts on the left.
    #[arg(long, value_name = "N", default_value_t = 4)]
    left: u32,
    /// Hosts on the right.
    #[arg(long, value_name = "N", default_value_t = 4)]
    right: u32,
    #[command(flatten)]
    host: HostArgs,
    /// Links between the switches.
    #[arg(long, value_name = "N", default_value_t = 1)]
    bottleneck_links: u32,
    /// Rate of each of them.
    #[arg(long, value_name = "RATE", value_parser = rate, default_value = "100Gbps")]
    bottleneck_rate: BitRate,
    /// Their propagation delay.
    #[arg(long, value_name = "TIME", value_parser = delay, default_value = "1us")]
    bottleneck_delay: Span,
}

impl DumbbellArgs {
    fn plan(&self) -> Dumbbell<'_> {
        let bottleneck = trunk(self.bottleneck_links, self.bottleneck_rate, self.bottleneck_delay);
        Dumbbell { left: self.left, right: self.right, host: self.host.links(), bottleneck }
    }
}

#[derive(Args, Debug)]
pub(crate) struct StarArgs {
    /// Hosts.
    #[arg(long, value_name = "N", default_value_t = 8)]
    hosts: u32,
    #[command(flatten)]
    host: HostArgs,
}

impl StarArgs {
    fn plan(&self) -> Star<'_> {
        Star { hosts: self.hosts, host: self.host.links() }
    }
}

fn trunk(links: u32, rate: BitRate, delay: Span) -> Trunk {
    Trunk { links, class: LinkClass { rate, delay } }
}

fn rate(text: &str) -> Result<BitRate, String> {
    units::rate(text).map(BitRate)
}

fn delay(text: &str) -> Result<Span, String> {
    units::time(text).map(Span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::diagnostics::Diagnostics;
    use clap::{Parser, error::ErrorKind};

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        topo: TopoCommand,
    }

    fn parse(options: &str) -> Result<TopoCommand, ErrorKind> {
        let words = ["topo"].into_iter().chain(options.split_whitespace());
        Line::try_parse_from(words).map(|line| line.topo).map_err(|error| error.kind())
    }

    fn fabric(options: &str) -> FabricArgs {
        parse(options).expect(options).fabric
    }

    fn built(options: &str) -> Topology {
        build(&*fabric(options).plan()).expect(options)
    }

    #[test]
    fn options_have_the_defaults_of_the_plans() {
        let FabricArgs::FatTree(args) = fabric("fat-tree") else { panic!("no fat-tree") };
        assert_eq!(args.plan(), FatTree::default());
        let FabricArgs::Clos(args) = fabric("clos") else { panic!("no Clos network") };
        assert_eq!(args.plan(), Clos::default());
        let FabricArgs::Rail(args) = fabric("rail") else { panic!("no rail fabric") };
        assert_eq!(args.plan(), Rail::default());
        let FabricArgs::Dumbbell(args) = fabric("dumbbell") else { panic!("no dumbbell") };
        assert_eq!(args.plan(), Dumbbell::default());
        let FabricArgs::Star(args) = fabric("star") else { panic!("no star") };
        assert_eq!(args.plan(), Star::default());
    }

    #[test]
    fn every_option_goes_to_its_parameter() {
        let line = "clos --pods 2 --leaves 3 --hosts-per-leaf 5 --spines 7 --cores 14 --host-rate 1Gbps,2Gbps \
                    --host-delay 1ns --spine-links 2 --spine-rate 3Gbps --spine-delay 2ns --core-links 3 \
                    --core-rate 4Gbps --core-delay 3ns --out file";
        assert_eq!(parse(line).expect(line).out, Some("file".into()));
        let FabricArgs::Clos(args) = fabric(line) else { panic!("{line}") };
        let trunk = |links, gbps, ns| trunk(links, BitRate::from_gbps(gbps), Span::from_ns(ns));
        let rates = [1, 2].map(BitRate::from_gbps);
        let plan = Clos {
            pods: 2,
            leaves: 3,
            hosts_per_leaf: 5,
            spines: 7,
            cores: 14,
            host: HostLinks { rates: &rates, delay: Span::from_ns(1) },
            spine: trunk(2, 3, 2),
            core: trunk(3, 4, 3),
        };
        assert_eq!(args.plan(), plan);
        let line = "rail --attachment dual-plane --no-nvlink";
        let FabricArgs::Rail(args) = fabric(line) else { panic!("{line}") };
        assert_eq!(args.plan(), Rail { attachment: Attachment::DualPlane, nvlink: None, ..Rail::default() });
        assert_eq!(parse("rail --no-nvlink --nvlink-rate 1Gbps").err(), Some(ErrorKind::ArgumentConflict));
        assert_eq!(parse("star --host-rate 0Gbps").err(), Some(ErrorKind::ValueValidation));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for options in [
            "fat-tree --k 6 --core-rate 40Gbps --core-delay 3.33us",
            "clos --pods 2 --cores 8 --core-links 2 --host-rate 100Gbps,25Gbps",
            "rail --servers 128 --servers-per-leaf 32 --spines 32",
            "rail --servers 4 --attachment dual-tor --nic-rate 25Gbps",
            "rail --servers 4 --attachment dual-plane --no-nvlink",
            "dumbbell --bottleneck-links 3",
            "star --hosts 1",
        ] {
            let before = built(options);
            let mut written = Vec::new();
            write_topology(&before, &mut written).expect(options);
            let mut found = Diagnostics::of(options);
            let after = Topology::parse(std::str::from_utf8(&written).expect(options), &mut found);
            assert_eq!((after, found.all().len()), (Some(before), 0), "{options}");
        }
    }

    #[test]
    fn servers_with_nvswitches_are_simais() {
        let topology = built("rail --servers 128 --servers-per-leaf 32 --spines 32");
        assert_eq!(topology.describe(), "SimAI topology: 1024 GPUs, 128 NVSwitches, 64 switches, 3072 links");
        assert_eq!(topology.gpus_per_server, Some(8));
        // The rate that switch buffers take for the NICs'.
        assert_eq!(topology.links[0].rate, BitRate::from_gbps(400));
        assert_eq!(built("rail --no-nvlink").dialect, Dialect::Hpcc);
    }

    #[test]
    fn a_fabric_is_summed_up_in_a_line() {
        let line = |options: &str| summary(&*fabric(options).plan(), &built(options));
        let clos = "HPCC topology: 64 hosts, 6 switches, 72 links, bisection 1600 Gb/s, oversubscription 2.00:1";
        assert_eq!(line("clos --spines 2"), clos);
        assert_eq!(line("star --hosts 1"), "HPCC topology: 1 host, 1 switch, 1 link, bisection 0 Gb/s");
    }

    #[test]
    fn the_option_that_is_impossible_is_named() {
        let fault = |options: &str| build(&*fabric(options).plan()).map_err(|error| explain(&error)).err();
        for (options, want) in [
            ("fat-tree --k 3", "--k: k must be even"),
            ("clos --hosts-per-leaf 0", "--hosts-per-leaf: hosts_per_leaf must not be 0"),
            ("clos --cores 6", "--cores: cores must be a multiple of spines"),
            ("star --hosts 99999999", "the fabric would have more than 16777216 nodes"),
        ] {
            assert_eq!(fault(options).as_deref(), Some(want), "{options}");
        }
        let status = parse("fat-tree --k 3").expect("options").execute();
        assert_eq!(status.expect("nothing to write"), ExitStatus::BadInput);
    }
}
