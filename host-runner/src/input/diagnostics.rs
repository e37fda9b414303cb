//! What is wrong with an input: where, which token, what was expected.

use super::counted;
use std::fmt;

/// Findings of one severity that are kept. A binary file given by mistake must not fill the memory or the screen.
pub const MAX_KEPT: usize = 1_000;

/// Characters of a token that are shown.
const MAX_TOKEN: usize = 60;

/// How bad it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The input cannot be used.
    Error,
    /// Legal, but probably not meant.
    Warning,
}

/// One finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as the user named it.
    pub file: String,
    /// The line, from 1; 0 if it concerns the whole file.
    pub line: usize,
    /// The offending token; empty if there is none.
    pub token: String,
    /// What was expected.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.file.is_empty() {
            f.write_str(&self.file)?;
            if self.line > 0 {
                write!(f, ":{}", self.line)?;
            }
            f.write_str(": ")?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}", self.message)?;
        if self.token.is_empty() { Ok(()) } else { write!(f, " (found `{}`)", self.token) }
    }
}

/// The findings of one file, in the order they were met; also of several files, joined with [`Diagnostics::extend`].
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    file: String,
    /// Those that are kept, and behind them one that counts the others if there are others.
    found: Vec<Diagnostic>,
    errors: usize,
    warnings: usize,
}

impl Diagnostics {
    /// Nothing found yet in `file`.
    pub fn of(file: impl Into<String>) -> Diagnostics {
        Diagnostics { file: file.into(), ..Diagnostics::default() }
    }

    /// An error in `file` and nothing else, at a line (0: the whole file).
    pub fn fault(file: impl Into<String>, line: usize, message: impl Into<String>) -> Diagnostics {
        let mut found = Diagnostics::of(file);
        found.error(line, "", message);
        found
    }

    /// Notes an error at a line (0: the whole file) and token (may be empty).
    pub fn error(&mut self, line: usize, token: &str, message: impl Into<String>) {
        self.note(Severity::Error, line, token, message.into());
    }

    /// Notes a warning.
    pub fn warning(&mut self, line: usize, token: &str, message: impl Into<String>) {
        self.note(Severity::Warning, line, token, message.into());
    }

    fn note(&mut self, severity: Severity, line: usize, token: &str, message: String) {
        self.found.truncate(self.kept());
        self.push(Diagnostic { severity, file: self.file.clone(), line, token: cut(token), message });
        self.count_the_rest();
    }

    /// Takes over what was found in another file.
    pub fn extend(&mut self, mut other: Diagnostics) {
        self.found.truncate(self.kept());
        let (kept, errors, warnings) = (other.kept(), other.errors, other.warnings);
        other.found.truncate(kept);
        let kept_errors = errors.min(MAX_KEPT);
        other.found.into_iter().for_each(|d| self.push(d));
        self.errors += errors - kept_errors;
        self.warnings += warnings - (kept - kept_errors);
        self.count_the_rest();
    }

    /// How many of the findings are kept.
    fn kept(&self) -> usize {
        self.errors.min(MAX_KEPT) + self.warnings.min(MAX_KEPT)
    }

    fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        *count += 1;
        if *count <= MAX_KEPT {
            self.found.push(diagnostic);
        }
    }

    /// Says in a last line how many findings are not kept.
    fn count_the_rest(&mut self) {
        let more = |count: usize, noun| (count > 0).then(|| counted(count, noun));
        let errors = more(self.errors.saturating_sub(MAX_KEPT), "more error");
        let warnings = more(self.warnings.saturating_sub(MAX_KEPT), "more warning");
        let severity = if errors.is_some() { Severity::Error } else { Severity::Warning };
        let rest: Vec<String> = errors.into_iter().chain(warnings).collect();
        if !rest.is_empty() {
            let (file, message) = (self.file.clone(), format!("{}, not shown", rest.join(" and ")));
            self.found.push(Diagnostic { severity, file, line: 0, token: String::new(), message });
        }
    }

    /// With each finding changed by `change`, which leaves its severity.
    pub(crate) fn map(mut self, change: impl Fn(&mut Diagnostic)) -> Diagnostics {
        self.found.iter_mut().for_each(change);
        self
    }

    /// Everything found; at most [`MAX_KEPT`] of each severity, and a last line that counts the rest.
    pub fn all(&self) -> &[Diagnostic] {
        &self.found
    }

    /// How many errors there are, also those that are not kept.
    pub fn error_count(&self) -> usize {
        self.errors
    }

    /// Whether anything found is an error.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }
}

/// The beginning of a token: enough to find it by. Control characters would be obeyed by a terminal.
fn cut(token: &str) -> String {
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let ellipsis = token.chars().nth(MAX_TOKEN).map(|_| '…');
    token.chars().take(MAX_TOKEN).map(shown).chain(ellipsis).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_name_file_line_and_token() {
        let mut found = Diagnostics::of("topology.txt");
        found.error(5, "9", "nodes are 0 to 2");
        found.warning(0, "", "nothing in it");
        let lines: Vec<String> = found.all().iter().map(|d| d.to_string()).collect();
        assert_eq!(lines[0], "topology.txt:5: error: nodes are 0 to 2 (found `9`)");
        assert_eq!(lines[1], "topology.txt: warning: nothing in it");
        assert!(found.has_errors());
        found.error(1, "\x1b[2J", "bad");
        assert_eq!(found.all()[2].token, "\u{fffd}[2J");
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let mut found = Diagnostics::of("f");
        for line in 1..=MAX_KEPT + 5 {
            found.error(line, &"x".repeat(1_000), "bad");
        }
        found.warning(1, "", "odd");
        assert_eq!(found.all().len(), MAX_KEPT + 2);
        assert_eq!(found.all()[MAX_KEPT].message, "odd");
        assert_eq!(found.all()[MAX_KEPT + 1].to_string(), "f: error: 5 more errors, not shown");
        assert_eq!(found.all()[0].token.chars().count(), MAX_TOKEN + 1);
    }

    #[test]
    fn files_that_are_joined_keep_their_counts() {
        let mut flood = Diagnostics::of("f");
        (0..MAX_KEPT + 1).for_each(|line| flood.warning(line, "", "odd"));
        let mut all = Diagnostics::default();
        all.extend(flood.clone());
        assert!(!all.has_errors());
        assert_eq!(all.all().last().unwrap().to_string(), "warning: 1 more warning, not shown");
        all.extend(flood);
        all.extend(Diagnostics::of("g"));
        let mut last = Diagnostics::of("h");
        last.error(7, "", "bad");
        all.extend(last);
        let lines: Vec<String> = all.all()[MAX_KEPT..].iter().map(|d| d.to_string()).collect();
        assert_eq!(lines, ["h:7: error: bad", "warning: 1002 more warnings, not shown"]);
        assert!(all.has_errors());
    }
}
