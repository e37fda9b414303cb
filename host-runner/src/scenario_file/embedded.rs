//! The scenarios that the program brings with it.

use super::keys::unknown;
use super::variants;
use crate::ending::ExitStatus;
use include_dir::{Dir, include_dir};
use std::io::{self, Write};

static FOLDER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../tests/scenarios");

/// A scenario in the program.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// Its file's name without `.toml`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All of them, by name.
pub fn embedded() -> impl Iterator<Item = Embedded> {
    let mut files: Vec<_> = FOLDER.files().collect();
    files.sort_by_key(|file| file.path());
    files.into_iter().filter_map(|file| {
        let name = file.path().to_str()?.strip_suffix(".toml")?;
        Some(Embedded { name, text: file.contents_utf8()? })
    })
}

/// The one of this name.
///
/// # Errors
/// That there is none, and which may have been meant.
pub(super) fn find(name: &str) -> Result<Embedded, String> {
    embedded().find(|scenario| scenario.name == name).ok_or_else(|| {
        let names: Vec<&str> = embedded().map(|scenario| scenario.name).collect();
        unknown("embedded scenario", name, &names)
    })
}

impl Embedded {
    /// What it is: the first line of its comment.
    pub fn title(&self) -> &'static str {
        self.text.lines().next().unwrap_or_default().trim_start_matches('#').trim()
    }
}

/// Prints the names of the embedded scenarios with their variants, or the text of one.
///
/// # Errors
/// Those of standard output.
pub(crate) fn list(name: Option<&str>) -> io::Result<ExitStatus> {
    let mut out = io::stdout().lock();
    let Some(name) = name else {
        for scenario in embedded() {
            writeln!(out, "{:<16} {}", scenario.name, scenario.title())?;
            let variants = variants(scenario.text);
            if !variants.is_empty() {
                writeln!(out, "{:<16} variants: {}", "", variants.join(", "))?;
            }
        }
        return Ok(ExitStatus::Done);
    };
    match find(name) {
        Ok(scenario) => {
            write!(out, "{}", scenario.text)?;
            Ok(ExitStatus::Done)
        }
        Err(hint) => {
            eprintln!("wormhole: {hint}");
            Ok(ExitStatus::BadInput)
        }
    }
}
