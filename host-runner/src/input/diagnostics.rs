//! What is wrong with an input: where, which token, what was expected.

use std::fmt;

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
        f.write_str(&self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, ": {severity}: {}", self.message)?;
        if self.token.is_empty() { Ok(()) } else { write!(f, " (found `{}`)", self.token) }
    }
}

/// The findings of one file, in the order they were met.
#[derive(Clone, Default, Debug)]
pub struct Diagnostics {
    file: String,
    found: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Nothing found yet in `file`.
    pub fn of(file: impl Into<String>) -> Diagnostics {
        Diagnostics { file: file.into(), found: Vec::new() }
    }

    /// Notes an error at a line (0: the whole file) and token (may be empty).
    pub fn error(&mut self, line: usize, token: &str, message: impl Into<String>) {
        self.push(Severity::Error, line, token, message.into());
    }

    /// Notes a warning.
    pub fn warning(&mut self, line: usize, token: &str, message: impl Into<String>) {
        self.push(Severity::Warning, line, token, message.into());
    }

    fn push(&mut self, severity: Severity, line: usize, token: &str, message: String) {
        let (file, token) = (self.file.clone(), token.to_owned());
        self.found.push(Diagnostic { severity, file, line, token, message });
    }

    /// Takes over what was found in another file.
    pub fn extend(&mut self, other: Diagnostics) {
        self.found.extend(other.found);
    }

    /// Everything found.
    pub fn all(&self) -> &[Diagnostic] {
        &self.found
    }

    /// Whether anything found is an error.
    pub fn has_errors(&self) -> bool {
        self.found.iter().any(|d| d.severity == Severity::Error)
    }
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
    }
}
