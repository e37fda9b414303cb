//! `wormhole memo`: looking after memo files.

use super::records::{Records, file_bytes, latest};
use crate::disk::{open_locked, replace};
use crate::ending::ExitStatus;
use crate::input::diagnostics::Diagnostics;
use clap::Subcommand;
use serde::Serialize;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wormhole_memo_fmt::{Header, Record, record_len, write_record};

/// What to do with memo files.
#[derive(Subcommand, Debug)]
pub(crate) enum MemoCommand {
    /// Tell what memo files hold.
    Info {
        /// Memo files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// As JSON: a list with an object for each file.
        #[arg(long)]
        json: bool,
    },
    /// Put the records of several files into one. Of records with the same key the last one stays.
    Merge {
        /// The file to make. If it is there already, it must be among those that are merged.
        #[arg(value_name = "OUT")]
        out: PathBuf,
        /// Memo files of the same models.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Read memo files to their ends and tell everything that is wrong with them.
    Verify {
        /// Memo files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Rewrite memo files without records that later ones replace, and without damaged ends.
    Gc {
        /// Memo files.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Keep only the last N records.
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
    },
}

impl MemoCommand {
    /// Does it.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        match self {
            MemoCommand::Info { files, json } => info(files, *json),
            MemoCommand::Merge { out, files } => merge(out, files),
            MemoCommand::Verify { files } => verify(files),
            MemoCommand::Gc { files, keep } => gc(files, keep.unwrap_or(usize::MAX)),
        }
    }
}

/// The findings of one file.
fn findings_of(path: &Path) -> Diagnostics {
    Diagnostics::of(path.display().to_string())
}

/// Tells all findings; errors are those of input.
fn tell(found: &Diagnostics) -> ExitStatus {
    found.all().iter().for_each(|finding| eprintln!("{finding}"));
    if found.has_errors() { ExitStatus::BadInput } else { ExitStatus::Done }
}

/// The bytes of a file; `None` if it cannot be read.
fn read(path: &Path, found: &mut Diagnostics) -> Option<Vec<u8>> {
    fs::read(path).map_err(|error| found.error(0, "", format!("cannot be read: {error}"))).ok()
}

/// Header and records of a file, taken apart.
struct Contents<'b> {
    header: Header,
    records: Vec<(&'b [u8], Record<'b>)>,
    sound: usize,
}

impl<'b> Contents<'b> {
    /// Of a file's bytes; `None` if it is no memo file, or of another version. Damage at its end is a warning.
    fn of(bytes: &'b [u8], found: &mut Diagnostics) -> Option<Contents<'b>> {
        let mut records = Records::of(bytes).map_err(|fault| found.error(0, "", fault.to_string())).ok()?;
        let (header, all) = (records.header(), records.by_ref().collect());
        let sound = records.sound_len();
        if let Some(fault) = records.fault() {
            found.warning(0, "", format!("from byte {sound} on: {fault}"));
        }
        Some(Contents { header, records: all, sound })
    }
}

/// What is told of a file.
#[derive(Serialize)]
struct Info {
    file: String,
    format_version: u16,
    kernel_version: u32,
    /// 16 hexadecimal digits: JSON's numbers are too coarse for some readers.
    models: String,
    records: usize,
    distinct_keys: usize,
    bytes: usize,
    sound_bytes: usize,
    dropped_bytes: usize,
}

impl Info {
    fn of(path: &Path, found: &mut Diagnostics) -> Option<Info> {
        let bytes = read(path, found)?;
        let contents = Contents::of(&bytes, found)?;
        let Header { format_version, kernel_version, models } = contents.header;
        Some(Info {
            file: path.display().to_string(),
            format_version,
            kernel_version,
            models: format!("{models:016x}"),
            records: contents.records.len(),
            distinct_keys: latest(&contents.records, usize::MAX).len(),
            bytes: bytes.len(),
            sound_bytes: contents.sound,
            dropped_bytes: bytes.len() - contents.sound,
        })
    }
}

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  format version  {}", self.format_version)?;
        writeln!(f, "  kernel version  {}", self.kernel_version)?;
        writeln!(f, "  models          {}", self.models)?;
        writeln!(f, "  records         {}", self.records)?;
        writeln!(f, "  distinct keys   {}", self.distinct_keys)?;
        writeln!(f, "  bytes           {}", self.bytes)?;
        writeln!(f, "  sound bytes     {}", self.sound_bytes)?;
        writeln!(f, "  dropped bytes   {}", self.dropped_bytes)
    }
}

fn info(files: &[PathBuf], json: bool) -> io::Result<ExitStatus> {
    let (mut infos, mut all) = (Vec::new(), Diagnostics::default());
    for path in files {
        let mut found = findings_of(path);
        infos.extend(Info::of(path, &mut found));
        all.extend(found);
    }
    let mut out = io::stdout();
    if json {
        serde_json::to_writer_pretty(&mut out, &infos)?;
        writeln!(out)?;
    } else {
        infos.iter().try_for_each(|info| write!(out, "{info}"))?;
    }
    Ok(tell(&all))
}

fn merge(out: &Path, files: &[PathBuf]) -> io::Result<ExitStatus> {
    let (records, bytes) = match merge_files(out, files)? {
        Ok(merged) => merged,
        Err(status) => return Ok(status),
    };
    writeln!(io::stdout(), "{}: {records} records in {bytes} bytes", out.display())?;
    Ok(ExitStatus::Done)
}

/// Merges files; gives the records and bytes of the new one, or how the command ends that cannot merge them. What was
/// odd or wrong has been told.
///
/// # Errors
/// Those of writing.
pub(super) fn merge_files(out: &Path, files: &[PathBuf]) -> io::Result<Result<(usize, usize), ExitStatus>> {
    let mut all = findings_of(out);
    let is_out = |file: &PathBuf| fs::canonicalize(file).ok() == fs::canonicalize(out).ok();
    if out.exists() && !files.iter().any(is_out) {
        all.error(0, "", "it is there already and not among the files to merge: it stays as it is");
        return Ok(Err(tell(&all)));
    }
    // A run that ends now waits, and extends the merged file.
    let _locked = if out.exists() { Some(open_locked(out, false)?) } else { None };
    let mut images = Vec::new();
    for path in files {
        let mut found = findings_of(path);
        images.extend(read(path, &mut found).map(|bytes| (path, bytes)));
        all.extend(found);
    }
    let mut parts = Vec::new();
    for (path, bytes) in &images {
        let mut found = findings_of(path);
        parts.extend(Contents::of(bytes, &mut found).map(|contents| (path, contents)));
        all.extend(found);
    }
    let status = tell(&all);
    let [(first, Contents { header, .. }), ..] = &parts[..] else { return Ok(Err(status)) };
    if status != ExitStatus::Done {
        return Ok(Err(status));
    }
    if let Some((other, _)) = parts.iter().find(|(_, contents)| contents.header != *header) {
        eprintln!("{} and {}: error: made with different models or kernels", first.display(), other.display());
        return Ok(Err(ExitStatus::Unlike));
    }
    let records: Vec<_> = parts.iter().flat_map(|(_, contents)| contents.records.iter().cloned()).collect();
    let kept = latest(&records, usize::MAX);
    let bytes = file_bytes(header, &kept);
    replace(out, &bytes)?;
    Ok(Ok((kept.len(), bytes.len())))
}

fn verify(files: &[PathBuf]) -> io::Result<ExitStatus> {
    let (mut out, mut all) = (io::stdout(), Diagnostics::default());
    for path in files {
        let mut found = findings_of(path);
        let records = read(path, &mut found).map_or(0, |bytes| verify_bytes(&bytes, &mut found));
        if !found.has_errors() {
            writeln!(out, "{}: {records} records, all sound", path.display())?;
        }
        all.extend(found);
    }
    Ok(tell(&all))
}

/// Gives the number of sound records.
fn verify_bytes(bytes: &[u8], found: &mut Diagnostics) -> usize {
    let mut records = match Records::of(bytes) {
        Ok(records) => records,
        Err(fault) => {
            found.error(0, "", format!("at byte 0: {fault}"));
            return 0;
        }
    };
    let (mut at, mut count) = (records.sound_len(), 0);
    for (bytes, record) in records.by_ref() {
        if written_again(&record) != bytes {
            found.error(0, "", format!("at byte {at}: the record is not written as this program writes it"));
        }
        at += bytes.len();
        count += 1;
    }
    if let Some(fault) = records.fault() {
        found.error(0, "", format!("at byte {at}: {fault}"));
    }
    count
}

fn written_again(record: &Record<'_>) -> Vec<u8> {
    let (key, value): (Vec<u64>, Vec<u64>) = (record.key().collect(), record.value().collect());
    let mut bytes = vec![0; record_len(&key, &value)];
    // One that cannot be written is not equal to anything.
    let length = write_record(&key, &value, &mut bytes).unwrap_or(0);
    bytes.truncate(length);
    bytes
}

fn gc(files: &[PathBuf], keep: usize) -> io::Result<ExitStatus> {
    let (mut out, mut all) = (io::stdout(), Diagnostics::default());
    for path in files {
        let mut found = findings_of(path);
        if let Some((before, after)) = collect(path, keep, &mut found) {
            writeln!(out, "{}: {before} bytes before, {after} after", path.display())?;
        }
        all.extend(found);
    }
    Ok(tell(&all))
}

/// Rewrites one file; gives its length before and after.
fn collect(path: &Path, keep: usize, found: &mut Diagnostics) -> Option<(usize, usize)> {
    // Until it is replaced no run extends it.
    let opened = open_locked(path, false).map_err(|error| found.error(0, "", format!("cannot be opened: {error}")));
    let _locked = opened.ok()?;
    let bytes = read(path, found)?;
    let contents = Contents::of(&bytes, found)?;
    let after = file_bytes(&contents.header, &latest(&contents.records, keep));
    if after != bytes {
        replace(path, &after).map_err(|error| found.error(0, "", format!("cannot be replaced: {error}"))).ok()?;
    }
    Some((bytes.len(), after.len()))
}
