//! A training job for people.

use super::schedule::Direction;
use super::{Training, iteration::Facts, iteration::Iterations};
use crate::workload::task::{Call, Group, Program, Work};
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;
use wormhole_kernel::Span;

/// What one rank does in all its iterations, summed up.
#[derive(Default, PartialEq, Eq)]
struct Tally {
    compute: Span,
    /// With whom, what, how many bytes; and how often.
    sends: BTreeMap<(String, String, u64), u64>,
}

impl Tally {
    fn of(mut program: Iterations, groups: &[Group]) -> Tally {
        let mut tally = Tally::default();
        while let Some(task) = program.next() {
            match task.work {
                Work::Compute { time, .. } => tally.compute.0 += time.0,
                Work::Send { bytes, .. } => tally.count("pipeline", "Send".into(), bytes),
                Work::Collective(Call { group, kind, bytes }) => {
                    tally.count(purpose(&groups[group as usize]), format!("{kind:?}"), bytes);
                }
                _ => {}
            }
        }
        tally
    }

    fn count(&mut self, whom: &str, what: String, bytes: u64) {
        *self.sends.entry((whom.into(), what, bytes)).or_default() += 1;
    }
}

fn milliseconds(time: Span) -> String {
    format!("{:.3} ms", time.0 as f64 / 1e9)
}

/// The first word of a group's name.
fn purpose(group: &Group) -> &str {
    group.name.split(' ').next().unwrap_or_default()
}

/// A valid job: its model, times, groups, and what a rank of each stage computes and sends.
pub struct Description<'t>(pub &'t Training);

impl fmt::Display for Description<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let training = self.0;
        let (groups, facts) = Facts::new(training);
        writeln!(f, "{training}")?;
        for (name, value) in facts_of(training, &groups, &facts) {
            writeln!(f, "{name:<28} {value}")?;
        }
        for (stages, tally) in tallies(training, facts, &groups) {
            write_stages(f, stages, &tally)?;
        }
        Ok(())
    }
}

/// What a rank does in each stage; stages that do the same are together.
fn tallies(training: &Training, facts: Facts, groups: &[Group]) -> Vec<(RangeInclusive<u32>, Tally)> {
    let facts = Arc::new(facts);
    let mut list: Vec<(RangeInclusive<u32>, Tally)> = Vec::new();
    for stage in 0..training.pp {
        let rank = stage * training.tp * training.dp;
        let tally = Tally::of(Iterations::new(facts.clone(), rank), groups);
        match list.last_mut() {
            Some((stages, same)) if *same == tally => *stages = *stages.start()..=stage,
            _ => list.push((stage..=stage, tally)),
        }
    }
    list
}

fn facts_of(training: &Training, groups: &[Group], facts: &Facts) -> Vec<(&'static str, String)> {
    let model = &training.model;
    let billions = |count: u128| format!("{:.2} billion", count as f64 / 1e9);
    let layer = |direction| milliseconds(facts.costs.layers(1, false, direction));
    let idle = f64::from(training.pp - 1) / f64::from(training.schedule.chunks() * training.micro_batches);
    vec![
        (
            "parameters",
            format!("{}, {} for a token", billions(model.parameters()), billions(model.active_parameters())),
        ),
        ("ranks", training.ranks().to_string()),
        ("sequence, global batch", format!("{} tokens, {} sequences", model.sequence, training.global_batch())),
        ("a layer forward, backward", format!("{}, {}", layer(Direction::Forward), layer(Direction::Backward))),
        ("pipeline bubble", format!("{:.1} % of the computation, if sending takes no time", 100.0 * idle)),
        ("groups", list_groups(groups)),
    ]
}

/// How many groups of how many ranks there are of each purpose.
fn list_groups(groups: &[Group]) -> String {
    let mut counts: BTreeMap<(&str, usize), usize> = BTreeMap::new();
    for group in groups {
        *counts.entry((purpose(group), group.ranks.len())).or_default() += 1;
    }
    let mut text = String::new();
    for ((purpose, ranks), count) in counts {
        let comma = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}{count} {purpose} of {ranks}");
    }
    if text.is_empty() { "none".into() } else { text }
}

fn write_stages(f: &mut fmt::Formatter<'_>, stages: RangeInclusive<u32>, tally: &Tally) -> fmt::Result {
    let (first, last) = (stages.start(), stages.end());
    let name = if first == last { format!("stage {first}") } else { format!("stages {first} to {last}") };
    writeln!(f, "each rank of {name}: computes {}", milliseconds(tally.compute))?;
    for ((whom, what, bytes), count) in &tally.sends {
        writeln!(f, "  {whom:<12} {what:<14} {count:>8} x {bytes:>14} bytes {:>18} bytes in all", bytes * count)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::training::ModelShape;

    #[test]
    fn a_rank_of_each_stage_is_described() {
        let training = Training { tp: 8, pp: 4, dp: 4, micro_batches: 4, ..Training::new(ModelShape::default()) };
        let text = Description(&training).to_string();
        let has = |line: &str| assert!(text.lines().any(|found| found == line), "no {line:?} in\n{text}");
        has("GPT 13b, 128 ranks: tp 8, pp 4, dp 4, ep 1, 4 micro-batches");
        has("parameters                   12.85 billion, 12.85 billion for a token");
        has("pipeline bubble              75.0 % of the computation, if sending takes no time");
        has("groups                       32 dp of 4");
        has("  pipeline     Send                  4 x        2621440 bytes           10485760 bytes in all");
        let stages: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("each rank of ")).collect();
        assert!(stages.len() == 3 && stages[1].starts_with("stages 1 to 2: computes "), "{text}");
    }
}
