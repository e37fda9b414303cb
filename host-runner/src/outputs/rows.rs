//! The tables of a run: their columns are named once, for CSV and for Parquet.

use super::columns::{Columns, ParquetFile};
use std::fmt;
use std::io::{self, Write};
use wormhole_kernel::Span;
use wormhole_kernel::units::PS_PER_NS;

/// What the cells of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Text,
    /// Whole numbers from 0 on.
    Count,
    /// Numbers.
    Number,
}

/// A cell. Which kinds stand in which column is its table's affair.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Cell {
    Text(String),
    Count(u64),
    /// A time, in nanoseconds with as many decimals as picoseconds need.
    Nanoseconds(Span),
    /// With so many decimals in CSV.
    Number(f64, usize),
}

impl From<u64> for Cell {
    fn from(count: u64) -> Cell {
        Cell::Count(count)
    }
}

impl From<u32> for Cell {
    fn from(count: u32) -> Cell {
        Cell::Count(count.into())
    }
}

impl From<Span> for Cell {
    fn from(span: Span) -> Cell {
        Cell::Nanoseconds(span)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // As RFC 4180 has it.
            Cell::Text(text) if text.contains([',', '"', '\n', '\r']) => write!(f, "\"{}\"", text.replace('"', "\"\"")),
            Cell::Text(text) => f.write_str(text),
            Cell::Count(count) => write!(f, "{count}"),
            Cell::Nanoseconds(span) => match (span.0 / PS_PER_NS, span.0 % PS_PER_NS) {
                (whole, 0) => write!(f, "{whole}"),
                (whole, rest) => write!(f, "{whole}.{rest:03}"),
            },
            Cell::Number(value, decimals) => write!(f, "{value:.decimals$}"),
        }
    }
}

impl Cell {
    fn text(&self) -> Option<String> {
        if let Cell::Text(text) = self { Some(text.clone()) } else { None }
    }

    fn count(&self) -> Option<u64> {
        if let Cell::Count(count) = self { Some(*count) } else { None }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Cell::Text(_) => None,
            Cell::Count(count) => Some(*count as f64),
            Cell::Nanoseconds(span) => Some(span.0 as f64 / PS_PER_NS as f64),
            Cell::Number(value, _) => Some(*value),
        }
    }
}

/// Rows of a row group of Parquet: they are in memory at once.
const GROUP: usize = 1 << 16;

/// A table, row by row. Where rows come from may fail.
pub struct Rows<'o> {
    columns: &'static [(&'static str, Kind)],
    rows: Box<dyn Iterator<Item = io::Result<Vec<Cell>>> + 'o>,
}

impl<'o> Rows<'o> {
    /// A table whose rows have a cell for each column.
    pub(super) fn new(
        columns: &'static [(&'static str, Kind)],
        rows: impl Iterator<Item = Vec<Cell>> + 'o,
    ) -> Rows<'o> {
        Rows::read(columns, rows.map(Ok))
    }

    /// The same of rows that are read from somewhere.
    pub(super) fn read(
        columns: &'static [(&'static str, Kind)],
        rows: impl Iterator<Item = io::Result<Vec<Cell>>> + 'o,
    ) -> Rows<'o> {
        Rows { columns, rows: Box::new(rows) }
    }

    /// Writes CSV: a heading, then a row a line.
    ///
    /// # Errors
    /// Those of `out`, and those of where rows come from.
    pub fn write_csv(self, out: &mut impl Write) -> io::Result<()> {
        let names: Vec<&str> = self.columns.iter().map(|(name, _)| *name).collect();
        writeln!(out, "{}", names.join(","))?;
        for row in self.rows {
            for (place, cell) in row?.iter().enumerate() {
                write!(out, "{}{cell}", if place > 0 { "," } else { "" })?;
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Writes Parquet: a column of texts, `INT64` or `DOUBLE` for each of CSV, by the same name. Numbers are whole
    /// there, not rounded.
    ///
    /// # Errors
    /// Those of `out`, and those of where rows come from.
    pub fn write_parquet(mut self, out: &mut (impl Write + Send)) -> io::Result<()> {
        let mut group = self.next_group()?;
        let mut file = ParquetFile::new(&group, out)?;
        loop {
            file.add(&group)?;
            group = self.next_group()?;
            if group.is_empty() {
                return file.close();
            }
        }
    }

    fn next_group(&mut self) -> io::Result<Columns> {
        let rows: Vec<Vec<Cell>> = self.rows.by_ref().take(GROUP).collect::<io::Result<_>>()?;
        let mut columns = Columns::default();
        for (place, (name, kind)) in self.columns.iter().enumerate() {
            let cells = rows.iter().map(|row| &row[place]);
            match kind {
                Kind::Text => columns.texts(name, cells.map(Cell::text)),
                Kind::Count => columns.counts(name, cells.map(Cell::count)),
                Kind::Number => columns.numbers(name, cells.map(Cell::number)),
            }
        }
        Ok(columns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_of_csv_are_short_and_quoted_where_they_must_be() {
        let shown = |cell: Cell| cell.to_string();
        assert_eq!((shown(Span(2_000).into()), shown(Span(2_040).into())), ("2".into(), "2.040".into()));
        assert_eq!((shown(Cell::Number(0.5, 6)), shown(Cell::Number(-1.0, 0))), ("0.500000".into(), "-1".into()));
        assert_eq!(
            (shown("a job".into()), shown("a \"job\", b".into())),
            ("a job".into(), "\"a \"\"job\"\", b\"".into())
        );
    }

    #[test]
    fn rows_follow_their_heading() {
        let rows = [vec![Cell::from(7u64), "x".into()], vec![Cell::from(8u32), "y".into()]];
        let mut out = Vec::new();
        let table = Rows::new(&[("n", Kind::Count), ("name", Kind::Text)], rows.into_iter());
        table.write_csv(&mut out).expect("memory");
        assert_eq!(out, b"n,name\n7,x\n8,y\n");
    }
}
