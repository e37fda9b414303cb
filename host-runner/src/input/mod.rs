//! Input formats. Parsers report every fault of a file at once and go on after each; none panics, and their memory is
//! in proportion to the file, whatever its header claims.

pub mod config;
pub mod diagnostics;
pub mod fct;
pub mod flows;
pub mod link_events;
pub(crate) mod rows;
pub(crate) mod tokens;
pub mod topology;
pub mod units;

use diagnostics::Diagnostics;
use std::path::Path;

/// The bytes of a file; that it cannot be read goes to `found`.
pub(crate) fn read(path: &Path, found: &mut Diagnostics) -> Option<Vec<u8>> {
    let fault = |error| Diagnostics::fault(path.display().to_string(), 0, format!("cannot be read: {error}"));
    std::fs::read(path).map_err(|error| found.extend(fault(error))).ok()
}

/// The text of a file in any encoding that has ASCII in it: only notes have other characters, and are not read. What
/// is not UTF-8 becomes U+FFFD. A byte order mark is left out.
pub fn decode(mut bytes: Vec<u8>) -> String {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// `1 link`, `2 links`, `2 switches`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if noun.ends_with("ch") { "es" } else { "s" };
    format!("{count} {noun}{}", if count == 1 { "" } else { plural })
}

/// Gives a parser every beginning of a text, and the text with every byte changed in several ways.
#[cfg(test)]
pub(crate) fn mistreat(text: &str, parse: impl Fn(&str)) {
    for end in 0..=text.len() {
        parse(&text[..end]);
    }
    for at in 0..text.len() {
        for byte in *b"90-+ \n\r\te.x#\0\xff" {
            let mut bytes = text.as_bytes().to_vec();
            bytes[at] = byte;
            parse(&decode(bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_encoding_is_read() {
        assert_eq!(decode(b"3 1 2\nd\xe9lai".to_vec()), "3 1 2\nd\u{fffd}lai");
        assert_eq!(decode(b"\xef\xbb\xbf3 1".to_vec()), "3 1");
        assert_eq!(decode(Vec::new()), "");
    }

    #[test]
    fn nouns_are_counted() {
        assert_eq!(
            [counted(0, "switch"), counted(1, "NVSwitch"), counted(2, "link")],
            ["0 switches", "1 NVSwitch", "2 links"]
        );
    }
}
