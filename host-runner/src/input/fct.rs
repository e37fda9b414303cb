//! `fct.txt` of the HPCC simulator: `sip dip sport dport bytes start_ns fct_ns ideal_ns`, a row per finished flow.

use super::diagnostics::Diagnostics;
use super::tokens::Tokens;
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

/// A node's address (`node_id_to_ip`).
fn address(node: u32) -> u32 {
    0x0b00_0001u32.wrapping_add((node / 256) << 16).wrapping_add((node % 256) << 8)
}

impl fmt::Display for FctRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FctRow { src_port, dst_port, bytes, start_ns, fct_ns, ideal_ns, .. } = self;
        let (src, dst) = (address(self.src), address(self.dst));
        write!(f, "{src:08x} {dst:08x} {src_port} {dst_port} {bytes} {start_ns} {fct_ns} {ideal_ns}")
    }
}

/// Reads `fct.txt`.
pub fn parse(text: &str, found: &mut Diagnostics) -> Vec<FctRow> {
    let mut tokens = Tokens::new(text);
    let mut rows = Vec::new();
    while let Some(row) = tokens.row::<8>("row", found) {
        let mut node = |index: usize| {
            let ip = u32::from_str_radix(row[index].text, 16).ok();
            if ip.is_none() {
                found.error(row[index].line, row[index].text, "an address has 8 hexadecimal digits");
            }
            ip.map(|ip| ip >> 8 & 0xffff)
        };
        let (src, dst) = (node(0), node(1));
        let (src_port, dst_port) = (row[2].number("a port", found), row[3].number("a port", found));
        let (bytes, start_ns) = (row[4].number("bytes", found), row[5].number("a start", found));
        let (fct_ns, ideal_ns) = (row[6].number("an FCT", found), row[7].number("an ideal FCT", found));
        let whole = || {
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
        };
        rows.extend(whole());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_as_they_are_read() {
        let text = "0b000001 0b000101 10000 100 4490 2000000000 4466 4538";
        let mut found = Diagnostics::of("fct.txt");
        let rows = parse(text, &mut found);
        assert_eq!((rows[0].src, rows[0].dst, rows[0].fct_ns), (0, 1, 4_466));
        assert_eq!(rows[0].to_string(), text);
        assert_eq!(FctRow { src: 300, ..rows[0] }.to_string().split(' ').next(), Some("0b012c01"));
        assert!(parse("zz 0b000101 1 1 1 1 1", &mut found).is_empty() && found.has_errors());
    }
}
