//! Whitespace-separated tokens with their lines.

use super::diagnostics::Diagnostics;

/// A token and the line it stands on, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'t> {
    pub(super) text: &'t str,
    pub(super) line: usize,
}

/// The tokens of a text in order. Line ends do not matter to the formats; they are kept for messages.
pub(super) struct Tokens<'t> {
    lines: std::iter::Enumerate<std::str::Lines<'t>>,
    rest: std::str::SplitWhitespace<'t>,
    line: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { lines: text.lines().enumerate(), rest: "".split_whitespace(), line: 0 }
    }

    /// The line of the last token taken.
    pub(super) fn line(&self) -> usize {
        self.line
    }

    /// Passes over what is left of `line`, if that is still the present one.
    pub(super) fn skip_line(&mut self, line: usize) {
        if self.line == line {
            self.rest = "".split_whitespace();
        }
    }

    /// All tokens left on the present line, or on the next that has any.
    pub(super) fn rest_of_line(&mut self) -> Vec<Token<'t>> {
        let Some(first) = self.next() else { return Vec::new() };
        let line = first.line;
        let others: Vec<Token<'t>> = self.rest.by_ref().map(|text| Token { text, line }).collect();
        std::iter::once(first).chain(others).collect()
    }

    /// The next `N` tokens; `None` at the end, with an error if some but not all are there.
    pub(super) fn row<const N: usize>(&mut self, what: &str, found: &mut Diagnostics) -> Option<[Token<'t>; N]> {
        let mut row = [Token { text: "", line: 0 }; N];
        for (got, place) in row.iter_mut().enumerate() {
            match self.next() {
                Some(token) => *place = token,
                None if got == 0 => return None,
                None => {
                    found.error(self.line, "", format!("the file ends inside a {what}: {got} of {N} fields"));
                    return None;
                }
            }
        }
        Some(row)
    }
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            if let Some(text) = self.rest.next() {
                return Some(Token { text, line: self.line });
            }
            let (index, line) = self.lines.next()?;
            self.line = index + 1;
            self.rest = line.split_whitespace();
        }
    }
}

impl Token<'_> {
    /// The token as a number, or an error that says what was expected.
    pub(super) fn number<T: std::str::FromStr>(&self, what: &str, found: &mut Diagnostics) -> Option<T> {
        let number = self.text.parse().ok();
        if number.is_none() {
            found.error(self.line, self.text, format!("{what} must be a whole number"));
        }
        number
    }

    /// The token as read by `parse`, or an error with its message.
    pub(super) fn parse<T>(&self, parse: impl Fn(&str) -> Result<T, String>, found: &mut Diagnostics) -> Option<T> {
        parse(self.text).map_err(|message| found.error(self.line, self.text, message)).ok()
    }
}
