//! Tables of a fixed number of fields whose number of rows is declared at the top.

use super::counted;
use super::diagnostics::Diagnostics;
use super::tokens::{Token, Tokens};

/// What a table is called, and what is in a row.
pub(crate) struct Table<'t> {
    /// Of one row.
    pub(crate) noun: &'static str,
    /// Names of the fields.
    pub(crate) fields: &'static str,
    /// How many rows were declared.
    pub(crate) declared: usize,
    /// The token that declares it.
    pub(crate) header: Token<'t>,
}

impl Table<'_> {
    fn declaration(&self) -> String {
        format!("{} declared", counted(self.declared, self.noun))
    }
}

/// Reads the rows that were declared, or as many as there are. `read` also gets the number of the row, from 1.
///
/// Line ends do not matter, except that they show where fields are missing or left over: that is one fault, and the
/// next line is read as if nothing were wrong.
pub(crate) fn read_rows<'t, const N: usize, T>(
    table: &Table<'t>,
    tokens: &mut Tokens<'t>,
    found: &mut Diagnostics,
    mut read: impl FnMut(usize, &[Token<'t>; N], &mut Diagnostics) -> Option<T>,
) -> Vec<T> {
    // Each field takes two bytes at least: a header alone cannot make this large.
    let possible = tokens.bytes_left() / (2 * N) + 1;
    let mut rows = Vec::with_capacity(table.declared.min(possible));
    let mut count = 0;
    let mut line_of_last = None;
    while count < table.declared {
        let before = tokens.clone();
        let Some(first) = tokens.peek() else { break };
        let is_last = count + 1 == table.declared;
        match tokens.next_row::<N>().filter(|row| is_aligned(row, is_last, &before, tokens)) {
            Some(row) => {
                count += 1;
                rows.extend(read(count, &row, found));
                line_of_last = Some(row[N - 1].line);
            }
            None => {
                // What is left over on the line of a good row is no row.
                let left_over = line_of_last == Some(first.line);
                let here = before.ahead_on(first.line).count();
                let has = if left_over { format!("{here} more") } else { here.to_string() };
                let message = format!("a {} has {N} fields ({}), but this line has {has}", table.noun, table.fields);
                found.error(first.line, first.text, message);
                count += usize::from(!left_over);
                *tokens = before;
                tokens.skip_line(first.line);
            }
        }
    }
    if count < table.declared {
        found.error(table.header.line, table.header.text, format!("{}, {count} found", table.declaration()));
    }
    rows
}

/// Whether a row that was taken between `before` and `after` is one.
///
/// A row may wrap. It is none if it takes up some of the fields of a line that has the right number of them without
/// it, or, as the last row, the beginning of a line whose rest nobody reads.
fn is_aligned<const N: usize>(row: &[Token<'_>; N], is_last: bool, before: &Tokens<'_>, after: &Tokens<'_>) -> bool {
    let (first, last) = (row[0].line, row[N - 1].line);
    if first == last || after.ahead_on(last).next().is_none() {
        return true;
    }
    let on_last = before.clone().skip_while(|t| t.line < last).take_while(|t| t.line == last).count();
    !is_last && !on_last.is_multiple_of(N)
}

/// Warns if text after the last declared row has lines that look like more rows. Any other text is a note and fine.
pub(crate) fn warn_of_more_rows<'t>(
    table: &Table<'t>,
    mut tokens: Tokens<'t>,
    found: &mut Diagnostics,
    is_row: impl Fn(&[Token<'t>]) -> bool,
) {
    let (mut more, mut first) = (0, None);
    while let Some(line) = tokens.next_line() {
        if is_row(&line) {
            more += 1;
            first = first.or(Some(line[0]));
        }
    }
    if let Some(first) = first {
        let verb = if more == 1 { "follows and is" } else { "follow and are" };
        found.warning(first.line, first.text, format!("{}, but {more} more {verb} not read", table.declaration()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums of triples, and the faults.
    fn read(text: &str) -> (Vec<u32>, Vec<String>) {
        let mut tokens = Tokens::new(text);
        let header = tokens.next().unwrap();
        let table = Table { noun: "triple", fields: "a b c", declared: header.text.parse().unwrap(), header };
        let mut found = Diagnostics::of("f");
        let rows = read_rows(&table, &mut tokens, &mut found, |_, row: &[Token<'_>; 3], found| {
            let values = row.map(|t| t.text.parse::<u32>().ok());
            if values.contains(&None) {
                found.error(row[0].line, "", "bad");
            }
            values.into_iter().sum()
        });
        warn_of_more_rows(&table, tokens, &mut found, |line| line.len() == 3 && line.iter().all(|t| t.is_digits()));
        (rows, found.all().iter().map(|d| d.to_string()).collect())
    }

    #[test]
    fn line_ends_do_not_matter() {
        for text in ["2 1 2 3 4 5 6 prose", "2\n1\n2\n3\n4\n5\n6\nprose", "2\n1 2\n3\n\n4 5 6", "2\n1 2 3 4\n5 6"] {
            assert_eq!(read(text), (vec![6, 15], vec![]), "{text}");
        }
    }

    #[test]
    fn one_bad_row_is_one_fault() {
        let (rows, faults) = read("4\n1 2 3\n4 5 x\n6 7\n8 9 10");
        assert_eq!(rows, [6, 27]);
        let short = "a triple has 3 fields (a b c), but this line has 2 (found `6`)";
        assert_eq!(faults, ["f:3: error: bad".to_owned(), format!("f:4: error: {short}")]);
        let (rows, faults) = read("3\n1 2 3 4\n5 6 7\n8 9 10");
        assert_eq!(rows, [6, 18, 27]);
        assert_eq!(faults, ["f:2: error: a triple has 3 fields (a b c), but this line has 1 more (found `4`)"]);
    }

    #[test]
    fn a_short_last_row_takes_nothing_from_the_notes() {
        for text in ["2\n1 2 3\n4 5\n2024 was the year", "2\n1 2 3\n4 5\n"] {
            let (rows, faults) = read(text);
            assert_eq!((rows.len(), faults.len()), (1, 1), "{faults:?}");
            assert!(faults[0].starts_with("f:3: error: a triple has 3 fields"), "{faults:?}");
        }
    }

    #[test]
    fn rows_are_counted_whatever_else_is_wrong() {
        let (rows, faults) = read("839\n1 2 3\n4 5 6\n");
        assert_eq!(rows.len(), 2);
        assert_eq!(faults, ["f:1: error: 839 triples declared, 2 found (found `839`)"]);
        let (_, faults) = read("5\n1 2 x\n4 5\n7 8 9");
        assert_eq!(faults.len(), 3);
        assert_eq!(faults[2], "f:1: error: 5 triples declared, 3 found (found `5`)");
        assert_eq!(read("18446744073709551615 1 2").1.len(), 2);
        let (rows, faults) = read("1\n1 2 3\n\nnotes\n4 5 6\n7 8 9\n");
        assert_eq!(rows, [6]);
        assert_eq!(faults, ["f:5: warning: 1 triple declared, but 2 more follow and are not read (found `4`)"]);
    }
}
