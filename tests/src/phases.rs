//! Traffic that memoisation is made for: the same patterns again and again, as input files tell of it.

use crate::usable;
use std::fmt::Write;
use wormhole::load::{Texts, load_texts};
use wormhole::reference::NS3;
use wormhole::scenario::{Options, Profile, Scenario};
use wormhole_kernel::accel::{Acceleration, Tier};

/// Congestion control of the reference runs of this kind: windows keep queues below all thresholds.
pub const DCQCN: &str = "CC_MODE 1\nHAS_WIN 1\nVAR_WIN 1\nRP_TIMER 900\nRATE_AI 50Mb/s\nRATE_HAI 100Mb/s\n";
/// As [`DCQCN`].
pub const DCTCP: &str = "CC_MODE 8\nHAS_WIN 1\nVAR_WIN 1\nEWMA_GAIN 0.0625\nRATE_AI 10Mb/s\nDCTCP_RATE_AI 615Mb/s\n";
/// As [`DCQCN`]; byte counters are sent in units of 512 B.
pub const HPCC: &str =
    "CC_MODE 3\nHAS_WIN 1\nVAR_WIN 1\nFAST_REACT 1\nU_TARGET 0.95\nMI_THRESH 0\nRATE_AI 50Mb/s\nINT_MULTI 4\n";

/// A fabric of stars that nothing joins, and flows.
pub struct Stars {
    stars: u32,
    hosts: u32,
    flows: Vec<String>,
}

impl Stars {
    /// So many stars of so many hosts, all links of 100 Gb/s and 1 us.
    pub fn new(stars: u32, hosts: u32) -> Stars {
        Stars { stars, hosts, flows: vec![] }
    }

    /// A flow from one host to another of every star.
    pub fn flow(&mut self, src: u32, dst: u32, bytes: u64, start_us: u64) {
        // Profile ns3 begins after 2 s, as the reference runs do.
        let (seconds, rest) = (2 + start_us / 1_000_000, start_us % 1_000_000);
        for first in (0..self.stars).map(|star| star * self.hosts) {
            self.flows.push(format!("{} {} 3 100 {bytes} {seconds}.{rest:06}000", first + src, first + dst));
        }
    }

    /// Each of the first `hosts` hosts of every star sends to the next, the last to the first.
    pub fn ring(&mut self, hosts: u32, bytes: u64, start_us: u64) {
        (0..hosts).for_each(|src| self.flow(src, (src + 1) % hosts, bytes, start_us));
    }

    fn topology(&self) -> String {
        let hosts = self.stars * self.hosts;
        let switches: Vec<String> = (hosts..hosts + self.stars).map(|switch| switch.to_string()).collect();
        let mut text = format!("{} {} {hosts}\n{}\n", hosts + self.stars, self.stars, switches.join(" "));
        for host in 0..hosts {
            writeln!(text, "{host} {} 100Gbps 0.001ms 0", hosts + host / self.hosts).expect("a string takes it");
        }
        text
    }

    /// The scenario under a configuration.
    pub fn scenario(&self, config: &str, profile: Profile, tier: Tier) -> Scenario {
        let flows = format!("{}\n{}\n", self.flows.len(), self.flows.join("\n"));
        let options = Options { profile, acceleration: Acceleration { tier, ..NS3.acceleration }, ..NS3 };
        let texts = Texts {
            topology: ("topology.txt", &self.topology()),
            flows: Some(("flow.txt", &flows)),
            config: Some(("config.txt", config)),
            link_events: None,
        };
        usable(load_texts(&texts, &options))
    }
}

/// So many phases on a star of 32 hosts, 12 ms apart. In each the hosts 0 to 15 form a ring, and of the others each
/// fourth hears from the three that follow it.
pub fn phases(count: u64, bytes: u64) -> Stars {
    let mut star = Stars::new(1, 32);
    for start_us in (0..count).map(|phase| 12_000 * phase) {
        star.ring(16, bytes, start_us);
        for sink in (16..32).step_by(4) {
            (sink + 1..sink + 4).for_each(|src| star.flow(src, sink, bytes, start_us));
        }
    }
    star
}

/// As the name says.
pub fn ten_phases(bytes: u64) -> Stars {
    phases(10, bytes)
}
