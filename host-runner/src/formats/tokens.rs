//! Tokens between white space, each with its line.

use std::borrow::Cow;

/// A run of bytes without white space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) bytes: &'a [u8],
    /// From 1.
    pub(crate) line: usize,
}

impl<'a> Token<'a> {
    /// The token to read a value from; one that is not UTF-8 becomes a character that no value has.
    pub(crate) fn value(self) -> &'a str {
        std::str::from_utf8(self.bytes).unwrap_or("\u{fffd}")
    }

    /// The token to show.
    pub(crate) fn shown(self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }

    /// Whether it has digits only.
    pub(crate) fn is_digits(self) -> bool {
        self.bytes.iter().all(u8::is_ascii_digit)
    }
}

/// The tokens of a file from some point on. Cheap to clone, to look ahead.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    rest: &'a [u8],
    line: usize,
}

impl<'a> Tokens<'a> {
    /// All tokens of a file. A byte order mark is no part of the first.
    pub(crate) fn new(file: &'a [u8]) -> Tokens<'a> {
        Tokens { rest: file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file), line: 1 }
    }

    /// Bytes from here to the end.
    pub(crate) fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// The next token, without going on.
    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.clone().next()
    }

    /// The tokens from here on that are on a line, without going on.
    pub(crate) fn ahead_on(&self, line: usize) -> impl Iterator<Item = Token<'a>> + use<'a> {
        self.clone().take_while(move |t| t.line == line)
    }

    /// Goes on to the first token after a line.
    pub(crate) fn skip_line(&mut self, line: usize) {
        while self.peek().is_some_and(|t| t.line <= line) {
            self.next();
        }
    }

    /// The tokens of the next line that has any, or the rest of them if some were taken.
    pub(crate) fn next_line(&mut self) -> Option<Vec<Token<'a>>> {
        let first = self.next()?;
        let mut line = vec![first];
        while let Some(token) = self.peek().filter(|t| t.line == first.line) {
            line.push(token);
            self.next();
        }
        Some(line)
    }

    /// The next `N` tokens; goes to the end and returns `None` if there are fewer.
    pub(crate) fn next_row<const N: usize>(&mut self) -> Option<[Token<'a>; N]> {
        let mut row = [Token { bytes: &[], line: 0 }; N];
        for token in &mut row {
            *token = self.next()?;
        }
        Some(row)
    }

    fn skip_space(&mut self) {
        while let Some((&byte, after)) = self.rest.split_first()
            && is_space(byte)
        {
            // CR LF is one line end; CR alone is one, too.
            if byte == b'\n' || byte == b'\r' && after.first() != Some(&b'\n') {
                self.line += 1;
            }
            self.rest = after;
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_space();
        let end = self.rest.iter().position(|&b| is_space(b)).unwrap_or(self.rest.len());
        let (bytes, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!bytes.is_empty()).then_some(Token { bytes, line: self.line })
    }
}

/// White space of C, which is what ns-3 reads by: with the vertical tab, which Rust's does not have.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(file: &str) -> Vec<(&str, usize)> {
        Tokens::new(file.as_bytes()).map(|t| (t.value(), t.line)).collect()
    }

    #[test]
    fn lines_end_in_any_way() {
        assert_eq!(seen("a b\n\nc"), [("a", 1), ("b", 1), ("c", 3)]);
        assert_eq!(seen("a\r\n\r\nc\r\n"), [("a", 1), ("c", 3)]);
        assert_eq!(seen("a\r\rc"), [("a", 1), ("c", 3)]);
        assert_eq!(seen("\u{feff}a\tb\x0b\x0cc "), [("a", 1), ("b", 1), ("c", 1)]);
        assert_eq!(seen(" \n "), []);
    }

    #[test]
    fn lines_and_rows_of_tokens() {
        let mut tokens = Tokens::new(b"a b c\nd e\nf g");
        assert_eq!(tokens.next_row::<2>().unwrap().map(|t| t.value()), ["a", "b"]);
        assert_eq!(tokens.ahead_on(1).count(), 1);
        assert_eq!(tokens.next_line().unwrap().len(), 1);
        tokens.skip_line(2);
        assert_eq!(tokens.peek().unwrap().value(), "f");
        assert!(tokens.next_row::<3>().is_none());
        assert!(tokens.next_line().is_none());
    }

    #[test]
    fn other_encodings_can_be_shown() {
        let token = Tokens::new(b"\xff1").next().unwrap();
        assert_eq!((token.value(), &*token.shown()), ("\u{fffd}", "\u{fffd}1"));
    }
}
