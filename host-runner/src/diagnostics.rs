//! What is wrong with the inputs: collected over all files, reported together.
//!
//! A parser goes on after a fault, so that one run of the tool shows a user every line to mend.

use std::fmt;

/// Diagnostics of one severity that are kept; the rest is only counted, so that a binary file given by mistake does
/// not fill the memory or the screen.
pub const MAX_KEPT: usize = 1_000;

/// Characters of a token that are quoted.
const MAX_TOKEN: usize = 60;

/// How bad a fault is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Severity {
    /// The inputs cannot be used.
    Error,
    /// The inputs can be used, but perhaps not as was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        })
    }
}

/// One fault of one file.
///
/// Displayed as `topology.txt:5: error: link names node 9, but nodes are 0..2 (token "9")`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The file, as the user named it.
    pub file: String,
    /// Line in the file, from 1; `None` if the fault is of the file as a whole.
    pub line: Option<usize>,
    /// The token at fault; long ones are cut.
    pub token: Option<String>,
    /// What is wrong, in a sentence without a full stop.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}: {}", self.severity, self.message)?;
        match &self.token {
            Some(token) => write!(f, " (token {token:?})"),
            None => Ok(()),
        }
    }
}

/// All faults of all files, in the order they were found.
///
/// As a whole it is displayed file by file, each in the order of its lines, and serves as the error of a run.
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    error_count: usize,
    warning_count: usize,
}

impl Diagnostics {
    /// No faults.
    pub fn new() -> Diagnostics {
        Diagnostics::default()
    }

    /// Errors, in the order they were found; at most [`MAX_KEPT`].
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.kept.iter().filter(|d| d.severity == Severity::Error)
    }

    /// Warnings, in the order they were found; at most [`MAX_KEPT`].
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.kept.iter().filter(|d| d.severity == Severity::Warning)
    }

    /// Errors pushed, those that were not kept included.
    pub fn error_count(&self) -> usize {
        self.error_count
    }

    /// Warnings pushed, those that were not kept included.
    pub fn warning_count(&self) -> usize {
        self.warning_count
    }

    /// Whether any error was pushed.
    pub fn has_errors(&self) -> bool {
        self.error_count > 0
    }

    /// Whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.error_count + self.warning_count == 0
    }

    /// Adds a fault.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let count = match diagnostic.severity {
            Severity::Error => &mut self.error_count,
            Severity::Warning => &mut self.warning_count,
        };
        *count += 1;
        if *count <= MAX_KEPT {
            self.kept.push(diagnostic);
        }
    }

    /// The warnings, if there are no errors.
    ///
    /// # Errors
    /// All of it, warnings included, if there is at least one error.
    pub fn into_result(self) -> Result<Vec<Diagnostic>, Diagnostics> {
        if self.has_errors() { Err(self) } else { Ok(self.sorted().into_iter().cloned().collect()) }
    }

    /// By file in the order they first appear, then by line; faults of a whole file come first.
    fn sorted(&self) -> Vec<&Diagnostic> {
        let mut files: Vec<&str> = Vec::new();
        for diagnostic in &self.kept {
            if !files.contains(&diagnostic.file.as_str()) {
                files.push(&diagnostic.file);
            }
        }
        let mut sorted: Vec<&Diagnostic> = self.kept.iter().collect();
        sorted.sort_by_key(|d| (files.iter().position(|f| *f == d.file), d.line));
        sorted
    }
}

impl fmt::Display for Diagnostics {
    /// A line for each, without a line end after the last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, diagnostic) in self.sorted().into_iter().enumerate() {
            if i > 0 {
                writeln!(f)?;
            }
            write!(f, "{diagnostic}")?;
        }
        for (count, noun) in [(self.error_count, "errors"), (self.warning_count, "warnings")] {
            if count > MAX_KEPT {
                write!(f, "\nand {} more {noun}", count - MAX_KEPT)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The diagnostics of one file: what a parser writes to.
pub(crate) struct Report<'d> {
    file: &'d str,
    out: &'d mut Diagnostics,
}

impl<'d> Report<'d> {
    pub(crate) fn new(file: &'d str, out: &'d mut Diagnostics) -> Report<'d> {
        Report { file, out }
    }

    pub(crate) fn file(&self) -> &'d str {
        self.file
    }

    pub(crate) fn error(&mut self, line: Option<usize>, token: Option<&str>, message: impl Into<String>) {
        self.push(Severity::Error, line, token, message.into());
    }

    pub(crate) fn warning(&mut self, line: Option<usize>, token: Option<&str>, message: impl Into<String>) {
        self.push(Severity::Warning, line, token, message.into());
    }

    fn push(&mut self, severity: Severity, line: Option<usize>, token: Option<&str>, message: String) {
        let token = token.map(cut);
        self.out.push(Diagnostic { severity, file: self.file.to_owned(), line, token, message });
    }
}

fn cut(token: &str) -> String {
    let mut kept: String = token.chars().take(MAX_TOKEN).collect();
    if kept.len() < token.len() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displays_file_line_and_token() {
        let mut out = Diagnostics::new();
        let mut report = Report::new("topology.txt", &mut out);
        report.error(Some(5), Some("9"), "link names node 9, but nodes are 0..2");
        report.warning(None, None, "empty");
        let shown: Vec<String> = out.errors().chain(out.warnings()).map(|d| d.to_string()).collect();
        assert_eq!(
            shown,
            [
                "topology.txt:5: error: link names node 9, but nodes are 0..2 (token \"9\")",
                "topology.txt: warning: empty"
            ]
        );
    }

    #[test]
    fn displays_by_file_then_line() {
        let mut out = Diagnostics::new();
        Report::new("b", &mut out).error(Some(7), None, "x");
        Report::new("a", &mut out).error(Some(1), None, "x");
        Report::new("b", &mut out).warning(Some(3), None, "y");
        assert_eq!(out.to_string(), "b:3: warning: y\nb:7: error: x\na:1: error: x");
    }

    #[test]
    fn only_errors_fail() {
        let mut out = Diagnostics::new();
        assert!(out.is_empty());
        Report::new("f", &mut out).warning(None, None, "w");
        assert_eq!(out.clone().into_result().unwrap().len(), 1);
        Report::new("f", &mut out).error(None, None, "e");
        let failed = out.into_result().unwrap_err();
        assert_eq!((failed.error_count(), failed.warning_count()), (1, 1));
    }

    #[test]
    fn a_flood_is_counted_not_kept() {
        let mut out = Diagnostics::new();
        for line in 1..=MAX_KEPT + 5 {
            Report::new("f", &mut out).error(Some(line), Some(&"x".repeat(1_000)), "bad");
        }
        assert_eq!(out.errors().count(), MAX_KEPT);
        assert_eq!(out.error_count(), MAX_KEPT + 5);
        assert!(out.to_string().ends_with("\nand 5 more errors"));
        assert!(out.errors().all(|d| d.token.as_ref().unwrap().chars().count() == MAX_TOKEN + 1));
    }
}
