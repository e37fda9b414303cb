//! Tables of a fixed number of fields whose number of rows is declared at the top.

use super::counted;
use super::tokens::{Token, Tokens};
use crate::diagnostics::{Diagnostics, Report};

/// What a table is called, and what is in a row.
pub(crate) struct Table<'a> {
    /// Of one row.
    pub(crate) noun: &'static str,
    /// Names of the fields.
    pub(crate) fields: &'static str,
    /// How many rows were declared.
    pub(crate) declared: u64,
    /// The token that declares it.
    pub(crate) header: Token<'a>,
}

impl Table<'_> {
    fn declaration(&self) -> String {
        format!("{} declared", counted(usize::try_from(self.declared).unwrap_or(usize::MAX), self.noun))
    }
}

/// Reads the rows that were declared, or as many as there are.
///
/// Line ends do not matter to a good row. A bad row is one fault, and reading goes on behind it.
pub(crate) fn read_rows<'a, const N: usize, T>(
    table: &Table<'a>,
    tokens: &mut Tokens<'a>,
    report: &mut Report<'_>,
    mut read: impl FnMut(&[Token<'a>; N], &mut Report<'_>) -> Option<T>,
) -> Vec<T> {
    // Each field takes two bytes at least: a header alone cannot make this large.
    let possible = tokens.bytes_left() / (2 * N) + 1;
    let mut rows = Vec::with_capacity(usize::try_from(table.declared).unwrap_or(usize::MAX).min(possible));
    let mut found = 0;
    let mut line_of_last = None;
    while found < table.declared {
        let before = tokens.clone();
        let Some(first) = tokens.peek() else { break };
        if let Some(row) = tokens.next_row::<N>().filter(|row| !is_misaligned(&before, tokens, row)) {
            line_of_last = (row[N - 1].line == first.line).then_some(first.line);
            found += 1;
            match read_if_aligned(&row, tokens, report, &mut read) {
                Ok(value) => {
                    rows.extend(value);
                    continue;
                }
                Err(Misaligned) => found -= 1,
            }
        }
        *tokens = before;
        report_misaligned::<N>(table, tokens, first, line_of_last == Some(first.line), report);
        // What is left over on the line of a good row is no row.
        found += u64::from(line_of_last != Some(first.line));
        tokens.skip_line(first.line);
    }
    if found < table.declared {
        let message = format!("{}, {found} found", table.declaration());
        report.error(Some(table.header.line), Some(&table.header.shown()), message);
    }
    rows
}
