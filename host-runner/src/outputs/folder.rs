//! The folder of a run's results.

use super::{fct_rows, write_collectives_csv, write_fct_csv, write_links_csv, write_pfc, write_ranks_csv};
use crate::disk::replace_with;
use crate::outputs::Summary;
use crate::report::write_report;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

type Out = BufWriter<File>;
type Fill = fn(&mut Out, &Scenario, &Outcome, &Summary) -> io::Result<()>;

/// A file of results.
struct ResultFile {
    name: &'static str,
    /// Whether only runs with jobs have it.
    of_jobs: bool,
    fill: Fill,
}

/// The report, which is written once: it is not made for others to follow.
const REPORT: &str = "report.html";

impl ResultFile {
    const fn new(name: &'static str, of_jobs: bool, fill: Fill) -> ResultFile {
        ResultFile { name, of_jobs, fill }
    }
}

/// All files of results. The summary comes last: where it is, the others are.
const FILES: [ResultFile; 7] = [
    ResultFile::new("fct.csv", false, |out, _, outcome, _| write_fct_csv(out, outcome)),
    ResultFile::new("fct.txt", false, |out, _, outcome, _| {
        fct_rows(outcome).try_for_each(|row| writeln!(out, "{row}"))
    }),
    ResultFile::new("links.csv", false, |out, scenario, outcome, _| write_links_csv(out, scenario, outcome)),
    ResultFile::new("pfc.txt", false, |out, scenario, outcome, _| write_pfc(out, scenario, &outcome.pfc)),
    ResultFile::new("collectives.csv", true, |out, _, outcome, _| write_collectives_csv(out, outcome)),
    ResultFile::new("ranks.csv", true, |out, scenario, outcome, _| write_ranks_csv(out, scenario, outcome)),
    ResultFile::new("summary.json", false, |out, _, _, summary| {
        serde_json::to_writer_pretty(&mut *out, summary)?;
        writeln!(out)
    }),
];

/// See the module. At any moment each file in it is whole: a new one takes the place of an old one in one step.
pub struct ResultFolder(PathBuf);

impl ResultFolder {
    /// Makes the folder if it is not there. Results of an earlier run are removed: they must not pass for those of one
    /// that was killed.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: &Path) -> io::Result<ResultFolder> {
        fs::create_dir_all(path)?;
        for name in FILES.iter().map(|file| file.name).chain([REPORT]) {
            match fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(ResultFolder(path.to_owned()))
    }

    /// Writes what has come of a run so far: all files but the report.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
        self.write_files(scenario, outcome, &Summary::new(scenario, outcome))
    }

    /// Writes all files of a run that has ended.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn complete(&self, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
        let summary = Summary::new(scenario, outcome);
        replace_with(&self.0.join(REPORT), |out| write_report(out, scenario, outcome, &summary, None))?;
        self.write_files(scenario, outcome, &summary)
    }

    fn write_files(&self, scenario: &Scenario, outcome: &Outcome, summary: &Summary) -> io::Result<()> {
        let mut files = FILES.iter().filter(|file| !file.of_jobs || !scenario.jobs.is_empty());
        files.try_for_each(|file| {
            replace_with(&self.0.join(file.name), |out| (file.fill)(out, scenario, outcome, summary))
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
