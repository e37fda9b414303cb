//! Link changes: a row each, `time_us down|up a b` for the links between two nodes, `time_us down|up a` for all links
//! of a node, such as those of a switch that fails; `#` begins a comment. The reference's `LINK_DOWN` is one.

use super::diagnostics::Diagnostics;
use super::tokens::Tokens;
use super::units;
use wormhole_kernel::{LinkId, LinkSpec, SimTime};

/// A link goes down or comes up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkEvent {
    /// When.
    pub at: SimTime,
    /// Which link.
    pub link: LinkId,
    /// Up, or down.
    pub up: bool,
}

/// Reads a list of link changes. Parallel links between two nodes change together. Of two rows about one link the later
/// counts, whether it names the link or a node.
pub fn parse(text: &str, links: &[LinkSpec], found: &mut Diagnostics) -> Vec<LinkEvent> {
    let mut events = Vec::new();
    let mut tokens = Tokens::new(text);
    while let Some(line) = tokens.next_line() {
        let fields: Vec<&str> = line.iter().map(|t| t.text).take_while(|text| !text.starts_with('#')).collect();
        if !fields.is_empty() {
            row(line[0].line, &fields, links, &mut events, found);
        }
    }
    events.sort_by_key(|e| e.at);
    events
}

fn row(line: usize, fields: &[&str], links: &[LinkSpec], events: &mut Vec<LinkEvent>, found: &mut Diagnostics) {
    let (time, change, ends) = match fields {
        [time, change, ends @ ..] if (1..=2).contains(&ends.len()) => (*time, *change, ends),
        _ => return found.error(line, fields[0], "a row is `time_us down|up a b`, or `time_us down|up a`"),
    };
    let at = units::microseconds(time).map_err(|message| found.error(line, time, message)).ok();
    let up = match change {
        "up" => Some(true),
        "down" => Some(false),
        _ => None,
    };
    if up.is_none() {
        found.error(line, change, "a link goes `down` or `up`");
    }
    let changed = match *ends {
        [a, b] => links_between(a.parse().ok(), b.parse().ok(), links),
        _ => links_of(ends[0].parse().ok(), links),
    };
    if changed.is_empty() {
        let message = if ends.len() == 2 { "no link joins these nodes" } else { "no link ends at this node" };
        found.error(line, &ends.join(" "), message);
    }
    if let (Some(at), Some(up)) = (at, up) {
        events.extend(changed.into_iter().map(|link| LinkEvent { at: SimTime(at), link, up }));
    }
}

/// The links of a node.
fn links_of(node: Option<u32>, links: &[LinkSpec]) -> Vec<LinkId> {
    let ends_there = |link: &LinkSpec| [link.a, link.b].iter().any(|end| Some(end.0) == node);
    (0..).map(LinkId).zip(links).filter(|(_, link)| ends_there(link)).map(|(id, _)| id).collect()
}

/// The links that join two nodes, in either direction.
pub fn links_between(a: Option<u32>, b: Option<u32>, links: &[LinkSpec]) -> Vec<LinkId> {
    let ends = |l: &LinkSpec| (Some(l.a.0), Some(l.b.0));
    let joined = |l: &LinkSpec| ends(l) == (a, b) || ends(l) == (b, a);
    (0..).map(LinkId).zip(links).filter(|(_, l)| joined(l)).map(|(id, _)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::super::mistreat;
    use super::*;
    use wormhole_kernel::{BitRate, NodeId, Span};

    #[test]
    fn rows_name_links_by_their_ends() {
        let link = |a, b| LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate(1), delay: Span(0), loss: 0 };
        let links = [link(0, 1), link(1, 2), link(2, 1)];
        let mut found = Diagnostics::of("e");
        let events = parse("# time_us down a b\n500.5 up 0 1 # again\n\n 20 down 2 1\n", &links, &mut found);
        let want = [(20_000_000, 1, false), (20_000_000, 2, false), (500_500_000, 0, true)];
        assert_eq!(events.iter().map(|e| (e.at.0, e.link.0, e.up)).collect::<Vec<_>>(), want);
        let of_node = parse("7 down 1\n8 up 0\n", &links, &mut found);
        let want = [(7, 0, false), (7, 1, false), (7, 2, false), (8, 0, true)];
        assert_eq!(of_node.iter().map(|e| (e.at.0 / 1_000_000, e.link.0, e.up)).collect::<Vec<_>>(), want);
        assert!(found.all().is_empty());
        parse("5 down\nx sideways 0 2\n", &links, &mut found);
        assert_eq!(found.all().len(), 4, "{:?}", found.all());
        let mut found = Diagnostics::of("e");
        parse("5 down 3\n5 down 0 2\n5 down x\n", &links, &mut found);
        let lines: Vec<String> = found.all().iter().map(|d| d.to_string()).collect();
        let want = [
            "e:1: error: no link ends at this node (found `3`)",
            "e:2: error: no link joins these nodes (found `0 2`)",
            "e:3: error: no link ends at this node (found `x`)",
        ];
        assert_eq!(lines, want);
        let mut found = Diagnostics::of("e");
        parse("\n\n5 down 0 1 2\n-1 down 0 1\n", &links, &mut found);
        let lines: Vec<String> = found.all().iter().map(|d| d.to_string()).collect();
        let want = [
            "e:3: error: a row is `time_us down|up a b`, or `time_us down|up a` (found `5`)",
            "e:4: error: must not be negative (found `-1`)",
        ];
        assert_eq!(lines, want);
        mistreat("# t\n500.5 down 0 1 # note\n", |text| {
            parse(text, &links, &mut Diagnostics::of("e"));
        });
    }
}
