//! `fct.txt` of the HPCC simulator: `sip dip sport dport bytes start_ns fct_ns ideal_ns`, a row per finished flow.
//! Addresses are hexadecimal; conweave prints decimal node ids in their place.

use super::counted;
use super::diagnostics::Diagnostics;
use super::tokens::{Token, Tokens};
use std::fmt;

/// A row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FctRow {
    /// Sender.
    pub src: u32,
    /// Receiver.
    pub dst: u32,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Payload bytes.
    pub bytes: u64,
    /// Start, nanoseconds.
    pub start_ns: u64,
    /// Flow completion time, nanoseconds.
    pub fct_ns: u64,
    /// ns-3's estimate of the FCT of the flow alone, nanoseconds.
    pub ideal_ns: u64,
}

/// The address of node 0. Each node has 256 of them (`node_id_to_ip`).
const FIRST_ADDRESS: u32 = 0x0b00_0001;

pub(crate) fn address(node: u32) -> u32 {
    FIRST_ADDRESS.wrapping_add(node << 8)
}

impl fmt::Display for FctRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FctRow { src_port, dst_port, bytes, start_ns, fct_ns, ideal_ns, .. } = self;
        let (src, dst) = (address(self.src), address(self.dst));
        write!(f, "{src:08x} {dst:08x} {src_port} {dst_port} {bytes} {start_ns} {fct_ns} {ideal_ns}")
    }
}

/// Reads `fct.txt`. A row has a line of its own.
pub fn parse(text: &str, found: &mut Diagnostics) -> Vec<FctRow> {
    let mut tokens = Tokens::new(text);
    let lines = std::iter::from_fn(|| tokens.next_line());
    lines.filter_map(|line| row(&line, found)).collect()
}

fn row(line: &[Token<'_>], found: &mut Diagnostics) -> Option<FctRow> {
    let [src, dst, src_port, dst_port, bytes, start_ns, fct_ns, ideal_ns] = line else {
        let has = counted(line.len(), "field");
        let message = format!("a row is `sip dip sport dport bytes start_ns fct_ns ideal_ns`, but this line has {has}");
        found.error(line[0].line, line[0].text, message);
        return None;
    };
    let (src, dst) = (src.parse(node, found), dst.parse(node, found));
    let (src_port, dst_port) = (src_port.number("a port", found), dst_port.number("a port", found));
    let (bytes, start_ns) = (bytes.number("bytes", found), start_ns.number("a start", found));
    let (fct_ns, ideal_ns) = (fct_ns.number("an FCT", found), ideal_ns.number("an ideal FCT", found));
    Some(FctRow {
        src: src?,
        dst: dst?,
        src_port: src_port?,
        dst_port: dst_port?,
        bytes: bytes?,
        start_ns: start_ns?,
        fct_ns: fct_ns?,
        ideal_ns: ideal_ns?,
    })
}

/// A node by its address, which always has eight digits, or by its id, which never has.
fn node(text: &str) -> Result<u32, String> {
    let expected = "expected an address of 8 hexadecimal digits or a decimal node id";
    let digits = |valid: fn(&u8) -> bool| text.as_bytes().iter().all(valid);
    let node = match text.len() {
        8 if digits(u8::is_ascii_hexdigit) => {
            u32::from_str_radix(text, 16).ok().map(|ip| ip.wrapping_sub(FIRST_ADDRESS) >> 8)
        }
        1..8 if digits(u8::is_ascii_digit) => text.parse().ok(),
        _ => None,
    };
    node.ok_or_else(|| expected.into())
}

#[cfg(test)]
mod tests {
    use super::super::mistreat;
    use super::*;

    #[test]
    fn rows_are_written_as_they_are_read() {
        let text = "0b000001 0b000101 10000 100 4490 2000000000 4466 4538";
        let mut found = Diagnostics::of("fct.txt");
        let rows = parse(text, &mut found);
        assert_eq!((rows[0].src, rows[0].dst, rows[0].fct_ns), (0, 1, 4_466));
        assert_eq!(rows[0].to_string(), text);
        assert_eq!(FctRow { src: 300, ..rows[0] }.to_string().split(' ').next(), Some("0b012c01"));
        assert!(parse("zz 0b000101 1 1 1 1 1 1", &mut found).is_empty() && found.has_errors());
    }

    #[test]
    fn every_node_has_its_address() {
        let row = FctRow { src: 0, dst: 1, src_port: 1, dst_port: 1, bytes: 1, start_ns: 1, fct_ns: 1, ideal_ns: 1 };
        for src in [0, 255, 256, 65_535, 65_536, 70_000, (1 << 24) - 1] {
            let mut found = Diagnostics::of("fct.txt");
            assert_eq!(parse(&FctRow { src, ..row }.to_string(), &mut found), [FctRow { src, ..row }]);
            assert!(found.all().is_empty());
        }
    }

    #[test]
    fn decimal_ids_are_told_from_addresses() {
        let mut found = Diagnostics::of("fct.txt");
        let rows = parse("10 301 10000 100 4490 2000000000 4466 4538\n", &mut found);
        assert_eq!((rows[0].src, rows[0].dst), (10, 301));
        for bad in ["0b0001", "b000001", "123456789", "+1"] {
            let mut found = Diagnostics::of("fct.txt");
            assert!(parse(&format!("{bad} 1 1 1 1 1 1 1"), &mut found).is_empty() && found.has_errors(), "{bad}");
        }
    }

    #[test]
    fn a_short_row_is_one_fault() {
        let mut found = Diagnostics::of("r");
        let text = "0b000001 0b000101 1 1 1 1 1\n0b000001 0b000101 1 1 1 1 1 1\n";
        assert_eq!(parse(text, &mut found).len(), 1);
        let want =
            "r:1: error: a row is `sip dip sport dport bytes start_ns fct_ns ideal_ns`, but this line has 7 fields";
        assert_eq!(found.all().len(), 1);
        assert!(found.all()[0].to_string().starts_with(want));
    }

    #[test]
    fn no_text_is_too_broken() {
        mistreat("0b000001 0b000101 10000 100 4490 2000000000 4466 4538\n", |text| {
            parse(text, &mut Diagnostics::of("r"));
        });
    }
}
