//! Readers and writers of the HPCC text dialect and its relatives.
//!
//! | module | file |
//! |---|---|
//! | [`units`] | rates, delays, sizes and probabilities, as single tokens |
//! | [`topology`] | `topology.txt` of HPCC, ns3-datacenter / PowerTCP and SimAI |
//! | [`flows`] | `flow.txt` |
//! | [`config`] | `config.txt`, `SimAI.conf` |
//! | [`link_events`] | `events.txt`: links that fail and come back |
//! | [`fct`] | `fct.txt` |
//!
//! Every reader takes the bytes of a file (footers in any encoding are common), the name to report it by and a
//! [`Diagnostics`](crate::diagnostics::Diagnostics) to add its faults to. It returns what could be read, which is
//! consistent in itself but must only be used for further checks once there is an error. Readers never panic, and
//! their memory is in proportion to the file, whatever its header claims.

pub mod config;
pub mod fct;
pub mod flows;
pub mod link_events;
mod rows;
mod tokens;
pub mod topology;
pub mod units;

/// `1 link`, `2 links`, `2 switches`.
fn counted(count: usize, noun: &str) -> String {
    let plural = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{count} {noun}{}", if count == 1 { "" } else { plural })
}

/// Gives a reader every beginning of a file, and the file with every byte changed in several ways.
#[cfg(test)]
fn mistreat(file: &[u8], read: impl Fn(&[u8])) {
    for end in 0..=file.len() {
        read(&file[..end]);
    }
    let mut bytes = file.to_vec();
    for at in 0..bytes.len() {
        let kept = bytes[at];
        for changed in [!kept, kept ^ 1, kept ^ 0x80, b'9', b'-', b' ', b'\n', b'\r', b'e', b'.', 0] {
            bytes[at] = changed;
            read(&bytes);
        }
        bytes[at] = kept;
    }
}
