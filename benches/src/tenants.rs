//! A random workload of many tenants: what share of it ever comes again is a parameter.
//!
//! Hosts are divided among tenants. A tenant works in rounds: its ranks compute for a time, send one message each, and
//! meet. In a usual round all compute equally long and send equally much to the next rank of a ring, as in every usual
//! round before. In a round of churn they compute for random times and send random amounts to random hosts of the
//! whole fabric, so that nothing of it comes again, and tenants are in each other's way.

use std::sync::Arc;
use wormhole::workload::collective::{AllReduce, AllToAll, CollectiveOptions};
use wormhole::workload::engine::PlacedJob;
use wormhole::workload::task::{Call, CollectiveKind, Group, Job, Program, Rank, Task, TaskId, Work};
use wormhole_kernel::{NodeId, SimTime, Span};

/// Least and most bytes of a random message; their logarithms are spread evenly.
const LEAST_BYTES: u64 = 4_000;
const OCTAVES: u32 = 10;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Tenants {
    /// Hosts of the fabric: 0 and so on.
    pub hosts: u32,
    /// Hosts of a tenant; they divide `hosts`.
    pub ranks: u32,
    /// Rounds of each tenant.
    pub rounds: u32,
    /// Percentage of rounds that are of churn.
    pub churn: u32,
    /// Of all chance.
    pub seed: u64,
}

impl Tenants {
    /// All of them, as one job: so ranks may send to those of other tenants.
    ///
    /// # Panics
    /// If the tenants do not fill the hosts.
    pub fn job(self) -> PlacedJob {
        assert!(self.hosts.is_multiple_of(self.ranks), "{self:?}");
        let of = |tenant: u32| (tenant * self.ranks..(tenant + 1) * self.ranks).collect();
        let tenants = 0..self.hosts / self.ranks;
        let groups = tenants.map(|tenant| Group { name: format!("tenant {tenant}"), ranks: of(tenant) }).collect();
        let this = Arc::new(self);
        let program = |rank| Box::new(Rounds { of: this.clone(), rank, round: 0, step: 0 }) as Box<dyn Program>;
        let description = format!("{} % churn", self.churn);
        PlacedJob {
            name: "tenants".into(),
            job: Job { description, groups, programs: (0..self.hosts).map(program).collect() },
            hosts: (0..self.hosts).map(NodeId).collect(),
            start: SimTime::ZERO,
            collectives: CollectiveOptions {
                all_reduce: AllReduce::Ring,
                all_to_all: AllToAll::Direct,
                channels: 1,
                chunk_bytes: u64::MAX,
            },
        }
    }

    /// Random 64 bits for something of a round.
    fn chance(&self, what: u64, whose: u32, round: u32) -> u64 {
        let mut word = self.seed ^ what.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for part in [whose, round] {
            // The mixing steps of SplitMix64.
            word = (word ^ u64::from(part)).wrapping_add(0x9e37_79b9_7f4a_7c15);
            word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            word ^= word >> 31;
        }
        word
    }

    /// How long a rank computes in a round, and then how much it sends to whom.
    fn round(&self, rank: Rank, round: u32) -> (Span, Rank, u64) {
        let (tenant, place) = (rank / self.ranks, rank % self.ranks);
        if self.chance(0, tenant, round) % 100 >= u64::from(self.churn) {
            let next = tenant * self.ranks + (place + 1) % self.ranks;
            return (Span::from_us(20 + u64::from(tenant)), next, 400_000 + 20_000 * u64::from(tenant));
        }
        let time = Span(self.chance(1, rank, round) % Span::from_us(50).0);
        let to = (rank + 1 + (self.chance(2, rank, round) % u64::from(self.hosts - 1)) as u32) % self.hosts;
        let size = self.chance(3, rank, round);
        let least = LEAST_BYTES << (size % u64::from(OCTAVES));
        (time, to, least + (size >> 32) % least)
    }
}

/// The program of a rank.
#[derive(Clone)]
struct Rounds {
    of: Arc<Tenants>,
    rank: Rank,
    round: u32,
    /// 0: compute, 1: send, 2: meet.
    step: u32,
}

impl Program for Rounds {
    fn next(&mut self) -> Option<Task> {
        if self.round == self.of.rounds {
            return None;
        }
        let (time, to, bytes) = self.of.round(self.rank, self.round);
        let before: Option<TaskId> = (3 * self.round + self.step).checked_sub(1);
        let work = match self.step {
            0 => Work::Compute { time, processor: 0 },
            1 => Work::Put { to, bytes },
            _ => {
                let group = self.rank / self.of.ranks;
                Work::Collective(Call { group, kind: CollectiveKind::Barrier, bytes: 0 })
            }
        };
        (self.round, self.step) = if self.step == 2 { (self.round + 1, 0) } else { (self.round, self.step + 1) };
        Some(Task::new(work, before.into_iter().collect()))
    }

    fn lookahead(&self) -> usize {
        4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const TENANTS: Tenants = Tenants { hosts: 64, ranks: 8, rounds: 200, churn: 0, seed: 1 };

    fn rounds(tenants: Tenants) -> Vec<(Rank, Span, Rank, u64)> {
        let all = (0..tenants.rounds).flat_map(|round| (0..tenants.hosts).map(move |rank| (rank, round)));
        all.map(|(rank, round)| (rank, tenants.round(rank, round)))
            .map(|(rank, (time, to, bytes))| (rank, time, to, bytes))
            .collect()
    }

    #[test]
    fn churn_is_the_share_of_what_does_not_come_again() {
        for churn in [0, 10, 50, 90, 100] {
            let all = rounds(Tenants { churn, ..TENANTS });
            let distinct = all.iter().collect::<HashSet<_>>().len();
            let (repeated, ranks) = (1.0 - distinct as f64 / all.len() as f64, f64::from(TENANTS.hosts));
            let want = 1.0 - f64::from(churn) / 100.0;
            assert!((repeated - want).abs() < 0.03 + ranks / all.len() as f64, "{churn} %: {repeated}");
            assert!(all.iter().all(|(rank, _, to, bytes)| rank != to && *bytes >= LEAST_BYTES));
        }
    }

    #[test]
    fn programs_yield_every_round_in_order() {
        let mut program = TENANTS.job().job.programs.swap_remove(5);
        let tasks: Vec<Task> = std::iter::from_fn(|| program.next()).collect();
        assert_eq!(tasks.len(), 600);
        assert!((0..).zip(&tasks).all(|(id, task)| task.after == Vec::from_iter(u32::checked_sub(id, 1))));
        assert!(matches!(tasks[1].work, Work::Put { to: 6, bytes: 400_000 }), "{:?}", tasks[1]);
    }
}
