//! Tables of typed columns, as CSV and as Parquet.

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use std::fmt::Display;
use std::io::{self, Write};
use std::sync::Arc;

/// The cells of a column, row by row; `None` is an empty cell.
enum Cells {
    Texts(Vec<Option<String>>),
    Counts(Vec<Option<u64>>),
    Numbers(Vec<Option<f64>>),
}

/// See the module. All columns have the same number of rows.
#[derive(Default)]
pub(crate) struct Columns(Vec<(String, Cells)>);

impl Columns {
    /// Adds a column of texts.
    pub(crate) fn texts(&mut self, name: &str, cells: impl Iterator<Item = Option<String>>) {
        self.0.push((name.to_owned(), Cells::Texts(cells.collect())));
    }

    /// Adds a column of whole numbers, below 2^63.
    pub(crate) fn counts(&mut self, name: &str, cells: impl Iterator<Item = Option<u64>>) {
        self.0.push((name.to_owned(), Cells::Counts(cells.collect())));
    }

    /// Adds a column of numbers.
    pub(crate) fn numbers(&mut self, name: &str, cells: impl Iterator<Item = Option<f64>>) {
        self.0.push((name.to_owned(), Cells::Numbers(cells.collect())));
    }

    /// Whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.first().is_none_or(|(_, cells)| cells.len() == 0)
    }

    /// Writes CSV: a heading, then a row a line. Texts are quoted if they have to be (RFC 4180), numbers are as short
    /// as they can be without loss.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        write_row(out, self.0.iter().map(|(name, _)| quoted(name)))?;
        let rows = self.0.first().map_or(0, |(_, cells)| cells.len());
        (0..rows).try_for_each(|row| write_row(out, self.0.iter().map(|(_, cells)| cells.text(row))))
    }

    /// Writes one row group of Parquet.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write_parquet(&self, out: &mut (impl Write + Send)) -> io::Result<()> {
        let mut file = ParquetFile::new(self, out)?;
        file.add(self)?;
        file.close()
    }
}

/// A table as Parquet: columns are optional `BYTE_ARRAY` (UTF-8), `INT64` and `DOUBLE`.
pub(crate) struct ParquetFile<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> ParquetFile<W> {
    /// A file with columns like these.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn new(like: &Columns, out: W) -> io::Result<ParquetFile<W>> {
        let create = || {
            let fields = like.0.iter().map(|(name, cells)| cells.field(name));
            let fields = fields.collect::<ParquetResult<Vec<TypePtr>>>()?;
            let schema = Arc::new(Type::group_type_builder("schema").with_fields(fields).build()?);
            let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
            SerializedFileWriter::new(out, schema, properties).map(ParquetFile)
        };
        create().map_err(io::Error::other)
    }

    /// Writes rows, as a row group.
    ///
    /// # Errors
    /// Those of the output.
    pub(crate) fn add(&mut self, rows: &Columns) -> io::Result<()> {
        let mut add = || {
            let mut group = self.0.next_row_group()?;
            for (_, cells) in &rows.0 {
                let Some(mut column) = group.next_column()? else { break };
                cells.write(column.untyped())?;
                column.close()?;
            }
            group.close().map(|_| ())
        };
        add().map_err(io::Error::other)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Those of the output.
    pub(crate) fn close(self) -> io::Result<()> {
        self.0.close().map(|_| ()).map_err(io::Error::other)
    }
}

impl Cells {
    fn len(&self) -> usize {
        match self {
            Cells::Texts(cells) => cells.len(),
            Cells::Counts(cells) => cells.len(),
            Cells::Numbers(cells) => cells.len(),
        }
    }

    fn text(&self, row: usize) -> String {
        fn shown(cell: &Option<impl Display>) -> String {
            cell.as_ref().map_or(String::new(), ToString::to_string)
        }
        match self {
            Cells::Texts(cells) => quoted(cells[row].as_deref().unwrap_or_default()),
            Cells::Counts(cells) => shown(&cells[row]),
            Cells::Numbers(cells) => shown(&cells[row]),
        }
    }

    fn field(&self, name: &str) -> ParquetResult<TypePtr> {
        let (physical, logical) = match self {
            Cells::Texts(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
            Cells::Counts(_) => (Physical::INT64, None),
            Cells::Numbers(_) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_logical_type(logical);
        field.with_repetition(Repetition::OPTIONAL).build().map(Arc::new)
    }

    fn write(&self, column: &mut ColumnWriter<'_>) -> ParquetResult<()> {
        match (self, column) {
            (Cells::Texts(cells), ColumnWriter::ByteArrayColumnWriter(column)) => {
                let (cells, levels) = parts(cells, |text: &String| ByteArray::from(text.as_str()));
                column.write_batch(&cells, Some(&levels), None).map(drop)
            }
            (Cells::Counts(cells), ColumnWriter::Int64ColumnWriter(column)) => {
                let (cells, levels) = parts(cells, |count| *count as i64);
                column.write_batch(&cells, Some(&levels), None).map(drop)
            }
            (Cells::Numbers(cells), ColumnWriter::DoubleColumnWriter(column)) => {
                let (cells, levels) = parts(cells, |number| *number);
                column.write_batch(&cells, Some(&levels), None).map(drop)
            }
            _ => Err(ParquetError::General("the schema has another type".into())),
        }
    }
}

/// The cells that are not empty, as Parquet has them, and for each row whether there is one.
fn parts<C, V>(cells: &[Option<C>], value: impl Fn(&C) -> V) -> (Vec<V>, Vec<i16>) {
    (cells.iter().flatten().map(value).collect(), cells.iter().map(|cell| cell.is_some().into()).collect())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

fn write_row(out: &mut impl Write, cells: impl Iterator<Item = String>) -> io::Result<()> {
    writeln!(out, "{}", cells.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    fn columns() -> Columns {
        let mut columns = Columns::default();
        columns.texts("a,b", [Some("x"), None, Some("say \"1,2\"")].into_iter().map(|text| text.map(str::to_owned)));
        columns.counts("n", [Some(1), Some(u64::MAX >> 1), None].into_iter());
        columns.numbers("x", [None, Some(0.1), Some(2e15)].into_iter());
        columns
    }

    #[test]
    fn csv_quotes_what_has_to_be() {
        let mut out = Vec::new();
        columns().write_csv(&mut out).expect("memory");
        let rows = "\"a,b\",n,x\nx,1,\n,9223372036854775807,0.1\n\"say \"\"1,2\"\"\",,2000000000000000\n";
        assert_eq!(String::from_utf8(out).expect("UTF-8"), rows);
    }

    #[test]
    fn parquet_holds_the_same_cells() {
        let (mut out, mut again) = (Vec::new(), Vec::new());
        columns().write_parquet(&mut out).expect("memory");
        columns().write_parquet(&mut again).expect("memory");
        assert!(out == again, "the same table is the same file");
        let path = std::env::temp_dir().join(format!("wormhole-columns-{}.parquet", std::process::id()));
        std::fs::write(&path, out).expect("a file");
        let reader = SerializedFileReader::new(std::fs::File::open(&path).expect("a file")).expect("Parquet");
        std::fs::remove_file(&path).expect("the file goes");
        let rows: Vec<Vec<(String, Field)>> =
            reader.get_row_iter(None).expect("rows").map(|row| row.expect("a row").into_columns()).collect();
        let row = |a: Field, n: Field, x: Field| vec![("a,b".to_owned(), a), ("n".to_owned(), n), ("x".to_owned(), x)];
        let want = [
            row(Field::Str("x".into()), Field::Long(1), Field::Null),
            row(Field::Null, Field::Long(i64::MAX), Field::Double(0.1)),
            row(Field::Str("say \"1,2\"".into()), Field::Null, Field::Double(2e15)),
        ];
        assert_eq!(rows, want);
    }

    #[test]
    fn a_table_without_rows_has_its_heading() {
        let mut columns = Columns::default();
        columns.counts("n", std::iter::empty());
        let mut out = Vec::new();
        columns.write_csv(&mut out).expect("memory");
        assert_eq!(out, b"n\n");
        columns.write_parquet(&mut out).expect("memory");
    }
}
