//! A part of the points of a sweep, for job arrays of a cluster.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The `index`-th of `count` parts, from 1: points whose number leaves `index - 1` when divided by `count`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Shard {
    index: usize,
    count: usize,
}

impl Shard {
    /// All points.
    pub(crate) const WHOLE: Shard = Shard { index: 1, count: 1 };

    /// Whether a point is one of it.
    pub(crate) fn has(self, point: usize) -> bool {
        point % self.count == self.index - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Shard { index, count }),
            _ => Err("expected I/N with I from 1 to N, such as 1/4".into()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_the_points() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| text.parse().expect("a shard")).collect();
        let of = |shard: Shard| (0..8).filter(|point| shard.has(*point)).collect::<Vec<_>>();
        assert_eq!(
            shards.iter().map(|shard| of(*shard)).collect::<Vec<_>>(),
            [vec![0, 3, 6], vec![1, 4, 7], vec![2, 5]]
        );
        assert_eq!(of(Shard::WHOLE).len(), 8);
        assert_eq!(shards[1].to_string(), "2/3");
        for text in ["0/3", "4/3", "1", "/", "1/0", "-1/2", "a/b"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
