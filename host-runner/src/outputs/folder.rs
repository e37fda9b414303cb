//! The folder of a run's results.

use super::{Rows, collectives_table, fct_rows, fct_table, links_table, ranks_table, write_pfc};
use crate::disk::replace_with;
use crate::outputs::Summary;
use crate::report::write_report;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Out = BufWriter<File>;

/// A table of results: `NAME.csv`, and if it is asked for `NAME.parquet`.
struct ResultTable {
    name: &'static str,
    /// Whether only runs with jobs have it.
    of_jobs: bool,
    rows: for<'o> fn(&'o Scenario, &'o Outcome) -> io::Result<Rows<'o>>,
}

const TABLES: [ResultTable; 4] = [
    ResultTable { name: "fct", of_jobs: false, rows: fct_table },
    ResultTable { name: "links", of_jobs: false, rows: |scenario, outcome| Ok(links_table(scenario, outcome)) },
    ResultTable { name: "collectives", of_jobs: true, rows: |_, outcome| Ok(collectives_table(outcome)) },
    ResultTable { name: "ranks", of_jobs: true, rows: |scenario, outcome| Ok(ranks_table(scenario, outcome)) },
];

/// Another file of results.
struct ResultFile {
    name: &'static str,
    fill: fn(&mut Out, &Scenario, &Outcome, &Summary) -> io::Result<()>,
}

/// The summary comes last: where it is, all others are.
const FILES: [ResultFile; 3] = [
    ResultFile {
        name: "fct.txt",
        fill: |out, _, outcome, _| fct_rows(outcome).try_for_each(|row| writeln!(out, "{}", row?)),
    },
    ResultFile { name: "pfc.txt", fill: |out, scenario, outcome, _| write_pfc(out, scenario, &outcome.pfc) },
    ResultFile {
        name: "summary.json",
        fill: |out, _, _, summary| {
            serde_json::to_writer_pretty(&mut *out, summary)?;
            writeln!(out)
        },
    },
];

/// The report. It is written once, like tables as Parquet: what comes on the way is for programs that follow a run.
const REPORT: &str = "report.html";

/// See the module. At any moment each file in it is whole: a new one takes the place of an old one in one step.
pub struct ResultFolder {
    path: PathBuf,
    parquet: bool,
    load: Duration,
}

impl ResultFolder {
    /// Makes the folder if it is not there. Results of an earlier run are removed: they must not pass for those of one
    /// that was killed. `parquet`: tables are to be there as Parquet, too. `load`: how long it took to read the inputs.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path, parquet: bool, load: Duration) -> io::Result<ResultFolder> {
        fs::create_dir_all(path)?;
        let tables = TABLES.iter().flat_map(|table| ["csv", "parquet"].map(|kind| format!("{}.{kind}", table.name)));
        let others = FILES.iter().map(|file| file.name).chain([REPORT]).map(str::to_owned);
        for name in tables.chain(others) {
            match fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(ResultFolder { path: path.to_owned(), parquet, load })
    }

    /// A file in the folder that has no name: it is gone when nobody uses it any more.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn nameless(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.path)
    }

    /// Writes what has come of a run so far: tables as CSV, and the summary.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
        self.write_files(scenario, outcome, self.summary(scenario, outcome), Instant::now()).map(|_| ())
    }

    /// Writes all files of a run that has ended. Gives what the last one, the summary, says.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn complete(&self, scenario: &Scenario, outcome: &Outcome) -> io::Result<Summary> {
        let (summary, begun) = (self.summary(scenario, outcome), Instant::now());
        self.replace(REPORT, |out| write_report(out, scenario, outcome, &summary, None))?;
        for table in tables(scenario).filter(|_| self.parquet) {
            let rows = (table.rows)(scenario, outcome)?;
            self.replace(&format!("{}.parquet", table.name), |out| rows.write_parquet(out))?;
        }
        self.write_files(scenario, outcome, summary, begun)
    }

    fn summary(&self, scenario: &Scenario, outcome: &Outcome) -> Summary {
        Summary { load_s: Some(self.load.as_secs_f64()), ..Summary::new(scenario, outcome) }
    }

    /// Writing has begun at `begun`.
    fn write_files(
        &self,
        scenario: &Scenario,
        outcome: &Outcome,
        mut summary: Summary,
        begun: Instant,
    ) -> io::Result<Summary> {
        for table in tables(scenario) {
            let rows = (table.rows)(scenario, outcome)?;
            self.replace(&format!("{}.csv", table.name), |out| rows.write_csv(out))?;
        }
        for file in &FILES {
            summary.outputs_s = Some(begun.elapsed().as_secs_f64());
            self.replace(file.name, |out| (file.fill)(out, scenario, outcome, &summary))?;
        }
        Ok(summary)
    }

    fn replace(&self, name: &str, fill: impl FnOnce(&mut Out) -> io::Result<()>) -> io::Result<()> {
        replace_with(&self.path.join(name), fill)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The tables that a run of this scenario has.
fn tables(scenario: &Scenario) -> impl Iterator<Item = &'static ResultTable> {
    let has_jobs = !scenario.jobs.is_empty();
    TABLES.iter().filter(move |table| has_jobs || !table.of_jobs)
}
