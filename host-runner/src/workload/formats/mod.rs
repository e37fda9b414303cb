//! Workload formats of other tools, read into [`Job`]s. What holds for
//! [input formats](crate::input) holds for these, too: every fault is reported at once, and none panics.

pub mod chakra;
pub mod goal;
pub mod htsim;
pub mod simai;

use super::task::{Job, Listed, Program, Rank, Task};
use crate::input::diagnostics::Diagnostics;
use crate::input::tokens::{Token, Tokens};
use crate::input::units;
use wormhole_kernel::Span;

/// More ranks than this are taken for a mistake: a line of a header must not fill the memory.
pub const MAX_RANKS: u32 = 1 << 20;

/// Reads a workload of any format that is a text; what is wrong goes to `found`. `None` if anything is. If it does not
/// say how many ranks it has, it has one for each of the hosts.
pub fn parse(text: &str, hosts: u32, found: &mut Diagnostics) -> Option<Job> {
    match Format::of(text) {
        Some(Format::SimAi) => simai::parse(text, Some(hosts).filter(|hosts| *hosts > 0), found),
        Some(Format::Goal) => goal::parse(text, found),
        Some(Format::Htsim) => htsim::parse(text, found),
        None => {
            let first = Tokens::new(text).next();
            let (line, token) = first.map_or((0, ""), |t| (t.line, t.text));
            let known = "SimAI (HYBRID_TRANSFORMER_FWD_IN_BCKWD …), GOAL (num_ranks …) or htsim (Nodes …)";
            found.error(line, token, format!("the workload is none of {known}"));
            None
        }
    }
}

/// Formats that are texts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    SimAi,
    Goal,
    Htsim,
}

impl Format {
    /// By the first line that begins with a word that only one of them has; that may be behind comments.
    fn of(text: &str) -> Option<Format> {
        let mut tokens = Tokens::new(text);
        std::iter::from_fn(|| {
            let first = tokens.next()?;
            tokens.skip_line(first.line);
            Some(first.text)
        })
        .find_map(|word| match word {
            "num_ranks" => Some(Format::Goal),
            "Nodes" | "Connections" | "Triggers" | "Failures" => Some(Format::Htsim),
            _ => simai::is_policy(word.trim_end_matches(':')).then_some(Format::SimAi),
        })
    }
}

/// A number of ranks, at least 1.
fn number_of_ranks(token: &Token<'_>, found: &mut Diagnostics) -> Option<u32> {
    let in_range = |n: &u32| (1..=MAX_RANKS).contains(n);
    let parse = |text: &str| text.parse().ok().filter(in_range).ok_or(format!("expected 1 to {MAX_RANKS} ranks"));
    token.parse(parse, found)
}

/// A rank of so many; `noun` is what the format calls it.
fn rank_below(ranks: u32, noun: &str, token: &Token<'_>, found: &mut Diagnostics) -> Option<Rank> {
    let message = || format!("no such {noun}: there are 0 to {}", ranks.saturating_sub(1));
    token.parse(|text| text.parse().ok().filter(|rank| *rank < ranks).ok_or_else(message), found)
}

/// A time that is written without its unit.
fn bare_time(token: &Token<'_>, unit: &str, found: &mut Diagnostics) -> Option<Span> {
    let parse = |text: &str| {
        if text.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
            units::time(&format!("{text}{unit}"))
        } else {
            Err(format!("expected a number of {unit}, without the unit"))
        }
    };
    token.parse(parse, found).map(Span)
}

/// Programs that are in memory as a whole.
fn listed(programs: impl IntoIterator<Item = Vec<Task>>) -> Vec<Box<dyn Program>> {
    programs.into_iter().map(|tasks| Box::new(Listed::new(tasks)) as Box<dyn Program>).collect()
}

/// Says of tasks that form a cycle what is wrong with them.
fn waiting_for_one_another(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let more = names.len().saturating_sub(SHOWN);
    let ellipsis = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("these wait for one another: {}{ellipsis}", names[..names.len() - more].join(", "))
}

/// Keys of a line with a value behind each, in any order.
struct Pairs<'t>(Vec<(&'t str, Token<'t>)>);

impl<'t> Pairs<'t> {
    /// Reads a line of keys, each of which is one of the known.
    fn read(tokens: &[Token<'t>], known: &[&str], found: &mut Diagnostics) -> Pairs<'t> {
        let mut pairs = Pairs(Vec::new());
        for pair in tokens.chunks(2) {
            let key = pair[0];
            if !known.contains(&key.text) {
                found.error(key.line, key.text, format!("expected one of the keys {}", known.join(", ")));
            } else if pairs.get(key.text).is_some() {
                found.error(key.line, key.text, "the key is there twice");
            } else if let Some(value) = pair.get(1) {
                pairs.0.push((key.text, *value));
            } else {
                found.error(key.line, key.text, "the key has no value");
            }
        }
        pairs
    }

    fn get(&self, key: &str) -> Option<Token<'t>> {
        self.0.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    /// The whole number of a key, if it is there and one.
    fn number<T: std::str::FromStr>(&self, key: &str, found: &mut Diagnostics) -> Option<T> {
        self.get(key)?.number(key, found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All tasks of each rank.
    pub(super) fn run(job: Job) -> Vec<Vec<Task>> {
        let all = |mut program: Box<dyn Program>| std::iter::from_fn(move || program.next()).collect();
        job.programs.into_iter().map(all).collect()
    }

    /// What is wrong, as users see it.
    pub(super) fn lines(found: &Diagnostics) -> Vec<String> {
        found.all().iter().map(|d| d.to_string()).collect()
    }

    #[test]
    fn formats_are_known_by_their_content() {
        let ranks = |text: &str| parse(text, 5, &mut Diagnostics::of("f")).map(|job| job.ranks());
        assert_eq!(ranks("// of\n/* Nodes:\n*/\nnum_ranks 3\n"), Some(3));
        assert_eq!(ranks("# Connections\nConnections 0\nNodes 4\n"), Some(4));
        assert_eq!(ranks("MICRO\n1\nl -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8 1"), Some(5));
        let mut found = Diagnostics::of("f");
        assert!(parse("\n3 1 2\n", 5, &mut found).is_none());
        let want = "f:2: error: the workload is none of SimAI (HYBRID_TRANSFORMER_FWD_IN_BCKWD …), GOAL \
            (num_ranks …) or htsim (Nodes …) (found `3`)";
        assert_eq!(lines(&found), [want]);
        assert!(parse("", 5, &mut found).is_none());
    }

    #[test]
    fn times_without_a_unit() {
        let mut found = Diagnostics::of("f");
        let mut time = |text| bare_time(&Token { text, line: 3 }, "ns", &mut found).map(|t| t.0);
        assert_eq!(["5", "1.5", "1e3", "+2"].map(&mut time), [5_000, 1_500, 1_000_000, 2_000].map(Some));
        assert_eq!(["", "5us", "-5", "x9", "99999999999999999999"].map(&mut time), [None; 5]);
        assert_eq!(lines(&found)[1], "f:3: error: expected a number of ns, without the unit (found `5us`)");
    }
}
