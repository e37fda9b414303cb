//! Tables of the report.

use maud::{Markup, html};

/// A table: its first column names its rows, numbers are aligned to the right.
pub(super) struct Table {
    caption: String,
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// How a column's cells stand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Align {
    Words,
    Numbers,
}

impl Table {
    /// A table whose first column has this heading.
    pub(super) fn new(caption: impl Into<String>, first: &str) -> Table {
        Table { caption: caption.into(), columns: vec![(first.into(), Align::Words)], rows: Vec::new() }
    }

    /// One more column of words.
    pub(super) fn words(mut self, heading: impl Into<String>) -> Table {
        self.columns.push((heading.into(), Align::Words));
        self
    }

    /// One more column of numbers.
    pub(super) fn numbers(mut self, heading: impl Into<String>) -> Table {
        self.columns.push((heading.into(), Align::Numbers));
        self
    }

    /// One more row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// All of it, in a box in which it scrolls if it is wide or long.
    pub(super) fn markup(&self) -> Markup {
        let class = |column: usize| if self.columns[column].1 == Align::Numbers { "number" } else { "word" };
        html! {
            div.scroll.long tabindex="0" role="group" aria-label=(self.caption) {
                table {
                    caption { (self.caption) }
                    thead { tr { @for (column, (heading, _)) in self.columns.iter().enumerate() {
                        th scope="col" class=(class(column)) { (heading) }
                    } } }
                    tbody { @for row in &self.rows {
                        tr { @for (column, cell) in row.iter().enumerate() {
                            @if column == 0 { th scope="row" { (cell) } } @else { td class=(class(column)) { (cell) } }
                        } }
                    } }
                }
            }
        }
    }
}
