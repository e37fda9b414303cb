//! Tokens between white space, each with its line.

use super::diagnostics::Diagnostics;

/// A run of characters without white space, and the line it stands on, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token<'t> {
    pub(crate) text: &'t str,
    pub(crate) line: usize,
}

/// The tokens of a text from some point on. Cheap to clone, to look ahead.
#[derive(Clone)]
pub(crate) struct Tokens<'t> {
    rest: &'t str,
    line: usize,
}

impl<'t> Tokens<'t> {
    /// All tokens of a text. A byte order mark is no part of the first.
    pub(crate) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { rest: text.strip_prefix('\u{feff}').unwrap_or(text), line: 1 }
    }

    /// Bytes from here to the end.
    pub(crate) fn bytes_left(&self) -> usize {
        self.rest.len()
    }

    /// The next token, without going on.
    pub(crate) fn peek(&self) -> Option<Token<'t>> {
        self.clone().next()
    }

    /// The next token, if it is on a line.
    pub(crate) fn next_on(&mut self, line: usize) -> Option<Token<'t>> {
        self.peek().filter(|t| t.line == line)?;
        self.next()
    }

    /// The tokens from here on that are on a line, without going on.
    pub(crate) fn ahead_on(&self, line: usize) -> impl Iterator<Item = Token<'t>> + use<'t> {
        self.clone().take_while(move |t| t.line == line)
    }

    /// Goes on to the first token after a line.
    pub(crate) fn skip_line(&mut self, line: usize) {
        while self.next_on(line).is_some() {}
    }

    /// The tokens of the next line that has any, or the rest of them if some were taken.
    pub(crate) fn next_line(&mut self) -> Option<Vec<Token<'t>>> {
        let first = self.next()?;
        let mut line = vec![first];
        line.extend(std::iter::from_fn(|| self.next_on(first.line)));
        Some(line)
    }

    /// The next `N` tokens; goes to the end and returns `None` if there are fewer.
    pub(crate) fn next_row<const N: usize>(&mut self) -> Option<[Token<'t>; N]> {
        let mut row = [Token { text: "", line: 0 }; N];
        for token in &mut row {
            *token = self.next()?;
        }
        Some(row)
    }

    fn skip_space(&mut self) {
        let bytes = self.rest.as_bytes();
        let end = bytes.iter().position(|&b| !is_space(b)).unwrap_or(bytes.len());
        for (at, &byte) in bytes[..end].iter().enumerate() {
            // CR LF is one line end; CR alone is one, too.
            self.line += usize::from(byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        }
        self.rest = &self.rest[end..];
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        self.skip_space();
        // White space is ASCII: the text is cut between characters.
        let end = self.rest.bytes().position(is_space).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!text.is_empty()).then_some(Token { text, line: self.line })
    }
}

/// White space of C, which is what ns-3 reads by.
fn is_space(byte: u8) -> bool {
    byte == b' ' || (b'\t'..=b'\r').contains(&byte)
}

impl Token<'_> {
    /// Whether it has digits only.
    pub(crate) fn is_digits(&self) -> bool {
        self.text.bytes().all(|b| b.is_ascii_digit())
    }

    /// The token as a number, or an error that says what was expected.
    pub(crate) fn number<T: std::str::FromStr>(&self, what: &str, found: &mut Diagnostics) -> Option<T> {
        self.parse(|text| text.parse().map_err(|_| format!("{what} must be a whole number")), found)
    }

    /// The token as read by `parse`, or an error with its message.
    pub(crate) fn parse<T>(&self, parse: impl Fn(&str) -> Result<T, String>, found: &mut Diagnostics) -> Option<T> {
        parse(self.text).map_err(|message| found.error(self.line, self.text, message)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Vec<(&str, usize)> {
        Tokens::new(text).map(|t| (t.text, t.line)).collect()
    }

    #[test]
    fn lines_end_in_any_way() {
        assert_eq!(seen("a b\n\nc"), [("a", 1), ("b", 1), ("c", 3)]);
        assert_eq!(seen("a\r\n\r\nc\r\n"), [("a", 1), ("c", 3)]);
        assert_eq!(seen("a\r\rc"), [("a", 1), ("c", 3)]);
        assert_eq!(seen("\u{feff}a\tb\x0b\x0cé\u{fffd} "), [("a", 1), ("b", 1), ("é\u{fffd}", 1)]);
        assert_eq!(seen(" \n "), []);
    }

    #[test]
    fn lines_and_rows_of_tokens() {
        let mut tokens = Tokens::new("a b c\nd e\nf g");
        assert_eq!(tokens.next_row::<2>().unwrap().map(|t| t.text), ["a", "b"]);
        assert_eq!(tokens.ahead_on(1).count(), 1);
        assert_eq!(tokens.next_line().unwrap().len(), 1);
        assert_eq!(tokens.next_on(3), None);
        tokens.skip_line(2);
        assert_eq!(tokens.peek().unwrap().text, "f");
        assert!(tokens.next_row::<3>().is_none());
        assert!(tokens.next_line().is_none());
    }
}
