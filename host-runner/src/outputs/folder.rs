//! The folder of a run's results.

use super::{fct_rows, write_collectives_csv, write_fct_csv, write_links_csv, write_pfc, write_ranks_csv};
use crate::disk::replace_with;
use crate::outputs::Summary;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

type Out = BufWriter<File>;
type Fill = fn(&mut Out, &Scenario, &Outcome) -> io::Result<()>;

/// A file of results.
struct ResultFile {
    name: &'static str,
    /// Whether only runs with jobs have it.
    of_jobs: bool,
    fill: Fill,
}

impl ResultFile {
    const fn new(name: &'static str, of_jobs: bool, fill: Fill) -> ResultFile {
        ResultFile { name, of_jobs, fill }
    }
}

/// All files of results. The summary comes last: where it is, the others are.
const FILES: [ResultFile; 7] = [
    ResultFile::new("fct.csv", false, |out, _, outcome| write_fct_csv(out, outcome)),
    ResultFile::new("fct.txt", false, |out, _, outcome| fct_rows(outcome).try_for_each(|row| writeln!(out, "{row}"))),
    ResultFile::new("links.csv", false, write_links_csv),
    ResultFile::new("pfc.txt", false, |out, scenario, outcome| write_pfc(out, scenario, &outcome.pfc)),
    ResultFile::new("collectives.csv", true, |out, _, outcome| write_collectives_csv(out, outcome)),
    ResultFile::new("ranks.csv", true, write_ranks_csv),
    ResultFile::new("summary.json", false, |out, scenario, outcome| {
        serde_json::to_writer_pretty(&mut *out, &Summary::new(scenario, outcome))?;
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
        for file in &FILES {
            match fs::remove_file(path.join(file.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(ResultFolder(path.to_owned()))
    }

    /// Writes all files of a run, or of what has come of it so far.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
        let mut files = FILES.iter().filter(|file| !file.of_jobs || !scenario.jobs.is_empty());
        files.try_for_each(|file| replace_with(&self.0.join(file.name), |out| (file.fill)(out, scenario, outcome)))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}
