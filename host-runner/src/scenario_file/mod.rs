//! Scenario files: fabric, jobs, models, acceleration and outputs of a run in one TOML file.
//!
//! | table | keys |
//! |---|---|
//! | `[fabric]` | `kind` and the options of `wormhole topo KIND`, or `file`: a topology file |
//! | `[[job]]` | `kind` (`gpt`, `moe` or `file`) and the options of [`JobKind`] |
//! | `[models]`, `[acceleration]`, `[outputs]` | the options of `wormhole run` under these headings |
//! | `[config]` | keys of an HPCC configuration file, such as `BUFFER_SIZE = 64` |
//! | `[variant.NAME.TABLE]` | for `--variant NAME`: keys that replace the table's; with a `kind` or `file`, all of it |
//! | `[variant.NAME.job]` | keys that replace those of every job |
//!
//! What is given on the command line replaces what the file says. Paths of inputs are relative to the file.

mod embedded;
mod keys;
mod overlay;

pub(crate) use embedded::list;
pub use embedded::{Embedded, embedded};
pub(crate) use keys::{Lines, explain, plain_text, unknown};
pub(crate) use overlay::{Overlay, Setting};

use crate::input::diagnostics::Diagnostics;
use crate::jobs::{JobKind, JobSource};
use crate::load::Source;
use crate::topo::FabricArgs;
use clap::{Command, Subcommand};
use keys::Keys;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Tables with options of `wormhole run`, and the headings these are under.
const OPTION_TABLES: [(&str, &str); 3] =
    [("models", "Models"), ("acceleration", "Acceleration"), ("outputs", "Outputs")];

/// The text of a scenario file.
#[derive(Clone, Debug)]
pub struct ScenarioText {
    /// Its name, as the user gave it.
    pub name: String,
    /// The text.
    pub text: String,
    /// What paths in it are relative to.
    pub folder: PathBuf,
}

impl ScenarioText {
    /// The embedded scenario of this name, or a file whose path is relative to `folder`.
    ///
    /// # Errors
    /// That there is neither, and what may have been meant.
    pub fn read(name: &str, folder: &Path) -> Result<ScenarioText, String> {
        let hint = match embedded::find(name) {
            Ok(Embedded { name, text }) => {
                return Ok(ScenarioText { name: name.into(), text: text.into(), folder: PathBuf::new() });
            }
            Err(hint) => hint,
        };
        let path = folder.join(name);
        let bytes = std::fs::read(&path).map_err(|error| format!("cannot be read: {error}; {hint}"))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Ok(ScenarioText { name: path.display().to_string(), text: crate::input::decode(bytes), folder })
    }
}

/// What a scenario file says.
#[derive(Clone, Debug)]
pub struct ScenarioFile {
    /// Its name, as the user gave it.
    pub name: String,
    /// The fabric, if it names one.
    pub fabric: Option<Source>,
    /// The jobs.
    pub jobs: Vec<JobSource>,
    /// The configuration, if there is a table of it, as HPCC's text.
    pub config: Option<Source>,
    /// Arguments of `wormhole run` that it stands for.
    pub arguments: Vec<String>,
}

impl ScenarioFile {
    /// Reads the embedded scenario of this name, or a file. `run` is the command whose options it may name, `variant`
    /// the variant that is chosen. `None` if anything found is an error.
    pub fn load(name: &str, variant: Option<&str>, run: &Command, found: &mut Diagnostics) -> Option<ScenarioFile> {
        let read = ScenarioText::read(name, Path::new(""));
        let source = read.map_err(|fault| found.error(0, "", fault)).ok()?;
        ScenarioFile::parse(&source, variant, None, run, found)
    }

    /// Reads a text; `overlay` has keys that replace those of the text and of the variant.
    pub(crate) fn parse(
        source: &ScenarioText,
        variant: Option<&str>,
        overlay: Option<&Overlay<'_>>,
        run: &Command,
        found: &mut Diagnostics,
    ) -> Option<ScenarioFile> {
        let ScenarioText { name, text, folder } = source;
        let lines = Lines { text, more: overlay.map_or("", |overlay| overlay.text) };
        let document = match DeTable::parse(text) {
            Ok(document) => document,
            Err(error) => {
                found.error(error.span().map_or(0, |span| lines.at(span.start)), "", error.message());
                return None;
            }
        };
        let mut reader = Reader { lines, folder, found };
        let document = document.get_ref();
        reader.check_tables(document, true);
        let chosen = variant.and_then(|variant| reader.variant(document, variant));
        let overlaid = overlay.map(|overlay| &overlay.tables);
        overlaid.into_iter().for_each(|tables| reader.check_tables(tables, false));
        let layers: Vec<&DeTable<'_>> = std::iter::once(document).chain(chosen).chain(overlaid).collect();
        let fabric = reader.fabric(&layers);
        let jobs = reader.jobs(name, &layers);
        let config = reader.config(name, &layers);
        let arguments = reader.options(&layers, run);
        (!reader.found.has_errors()).then(|| ScenarioFile { name: name.clone(), fabric, jobs, config, arguments })
    }
}

/// Names of the variants of a scenario's text.
pub fn variants(text: &str) -> Vec<String> {
    let Ok(document) = DeTable::parse(text) else { return Vec::new() };
    let variants = document.get_ref().get("variant").map(|value| value.get_ref());
    let Some(DeValue::Table(variants)) = variants else { return Vec::new() };
    variants.keys().map(|key| key.get_ref().to_string()).collect()
}

struct Reader<'r, 't> {
    lines: Lines<'t>,
    folder: &'r Path,
    found: &'r mut Diagnostics,
}

impl Reader<'_, '_> {
    /// All keys of the top level must be tables that there are.
    fn check_tables(&mut self, document: &DeTable<'_>, is_whole: bool) {
        let mut known: Vec<&str> = OPTION_TABLES.iter().map(|(table, _)| *table).collect();
        known.extend(["fabric", "config", "job"]);
        if is_whole {
            known.push("variant");
        }
        for (key, value) in document.iter() {
            let (name, line) = (key.get_ref().as_ref(), self.lines.of(key));
            let is_table = matches!(value.get_ref(), DeValue::Table(_));
            // Jobs of the file are a list; what a variant says is about all of them.
            let is_jobs = is_whole && name == "job";
            if !known.contains(&name) {
                self.found.error(line, name, unknown("table", name, &known));
            } else if !is_table && !is_jobs {
                self.found.error(line, name, format!("expected a table: [{name}]"));
            }
        }
    }

    fn variant<'d, 'i>(&mut self, document: &'d DeTable<'i>, name: &str) -> Option<&'d DeTable<'i>> {
        let table = document.get("variant").map(|value| value.get_ref());
        let Some(DeValue::Table(variants)) = table else {
            self.found.error(0, name, "it has no variants");
            return None;
        };
        match variants.get(name).map(|value| value.get_ref()) {
            Some(DeValue::Table(variant)) => {
                self.check_tables(variant, false);
                Some(variant)
            }
            _ => {
                let known: Vec<&str> = variants.keys().map(|key| key.get_ref().as_ref()).collect();
                self.found.error(0, name, unknown("variant", name, &known));
                None
            }
        }
    }

    fn fabric(&mut self, layers: &[&DeTable<'_>]) -> Option<Source> {
        let tables = layers.iter().filter_map(|layer| table(layer, "fabric"));
        let mut tables: Vec<&DeTable<'_>> = tables.collect();
        // A new kind or file begins anew.
        let is_new = |table: &&DeTable<'_>| table.contains_key("kind") || table.contains_key("file");
        let first = tables.iter().rposition(is_new).unwrap_or(0);
        tables.drain(..first);
        let base = *tables.first()?;
        if let Some(file) = base.get("file") {
            let keys = Keys { command: &Command::new("fabric"), heading: None, others: &["file"], folder: None };
            tables.iter().for_each(|table| keys.add(table, &mut Vec::new(), self.lines, self.found));
            let DeValue::String(path) = file.get_ref() else {
                self.found.error(self.lines.of(file), "file", "expected the path of a topology file");
                return None;
            };
            return Some(Source::File(self.folder.join(path.as_ref())));
        }
        let (line, args) = self.understand::<FabricArgs>("fabric", &tables)?;
        let text = args.text().map_err(|message| self.found.error(line, "", message)).ok()?;
        Some(Source::Text { name: "fabric".into(), text })
    }

    /// What tables with a `kind` stand for, and the line of the kind.
    fn understand<K: Subcommand>(&mut self, name: &'static str, tables: &[&DeTable<'_>]) -> Option<(usize, K)> {
        let command = K::augment_subcommands(Command::new(name)).args_override_self(true);
        let (line, words) = self.words(&command, tables)?;
        let matches = command.try_get_matches_from(words);
        let kind = matches.and_then(|matches| K::from_arg_matches(&matches));
        kind.map(|kind| (line, kind)).map_err(|error| self.found.error(line, "", explain(&error))).ok()
    }

    /// The command line that tables stand for, and the line of the `kind`: the last one counts.
    fn words(&mut self, command: &Command, tables: &[&DeTable<'_>]) -> Option<(usize, Vec<String>)> {
        let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        let Some(kind) = tables.iter().rev().find_map(|table| table.get("kind")) else {
            let keys = tables.iter().flat_map(|table| table.keys());
            let line = keys.map(|key| self.lines.of(key)).min().unwrap_or(0);
            self.found.error(line, "", format!("a `kind` is missing: {}", known.join(", ")));
            return None;
        };
        let line = self.lines.of(kind);
        let DeValue::String(name) = kind.get_ref() else {
            self.found.error(line, "kind", format!("expected one of {}", known.join(", ")));
            return None;
        };
        let Some(of_kind) = command.find_subcommand(name.as_ref()) else {
            self.found.error(line, name, unknown("kind", name, &known));
            return None;
        };
        let keys = Keys { command: of_kind, heading: None, others: &["kind"], folder: Some(self.folder) };
        let errors = self.found.error_count();
        let mut words = vec![command.get_name().to_owned(), name.to_string()];
        tables.iter().for_each(|table| keys.add(table, &mut words, self.lines, self.found));
        (self.found.error_count() == errors).then_some((line, words))
    }

    /// The jobs of the file, with what a variant says of all of them.
    fn jobs(&mut self, file: &str, layers: &[&DeTable<'_>]) -> Vec<JobSource> {
        let Some(jobs) = layers.first().and_then(|document| document.get("job")) else { return Vec::new() };
        let DeValue::Array(jobs) = jobs.get_ref() else {
            self.found.error(self.lines.of(jobs), "job", "expected a list of tables: [[job]]");
            return Vec::new();
        };
        let changes: Vec<&DeTable<'_>> = layers[1..].iter().filter_map(|layer| table(layer, "job")).collect();
        let mut sources = Vec::new();
        for job in jobs.iter() {
            let DeValue::Table(base) = job.get_ref() else {
                self.found.error(self.lines.of(job), "job", "expected a table: [[job]]");
                continue;
            };
            let tables: Vec<&DeTable<'_>> = std::iter::once(base).chain(changes.iter().copied()).collect();
            let kind = self.understand::<JobKind>("job", &tables);
            sources.extend(kind.map(|(line, kind)| JobSource { kind, file: file.to_owned(), line }));
        }
        sources
    }

    /// The text of the configuration, with each key in its line of the file. Keys and values are checked as those of a
    /// configuration file are.
    fn config(&mut self, file: &str, layers: &[&DeTable<'_>]) -> Option<Source> {
        let mut rows: Vec<(usize, &str, String)> = Vec::new();
        for table in layers.iter().filter_map(|layer| table(layer, "config")) {
            for (key, value) in table.iter() {
                let (name, line) = (key.get_ref().as_ref(), self.lines.of(key));
                match keys::config_text(value.get_ref()) {
                    Ok(value) => {
                        rows.retain(|(_, earlier, _)| *earlier != name);
                        rows.push((line, name, value.replace(',', " ")));
                    }
                    Err(message) => self.found.error(line, name, message),
                }
            }
        }
        rows.sort_unstable();
        let (mut text, mut lines) = (String::new(), 1);
        for (line, name, value) in &rows {
            let blank = line.saturating_sub(lines);
            text += &format!("{}{name} {value}\n", "\n".repeat(blank));
            lines += blank + 1;
        }
        (!rows.is_empty()).then(|| Source::Text { name: file.to_owned(), text })
    }

    fn options(&mut self, layers: &[&DeTable<'_>], run: &Command) -> Vec<String> {
        let mut arguments = Vec::new();
        for (name, heading) in OPTION_TABLES {
            // Outputs go where the user is, inputs come from where the scenario is.
            let folder = (name == "models").then_some(self.folder);
            let keys = Keys { command: run, heading: Some(heading), others: &[], folder };
            for table in layers.iter().filter_map(|layer| table(layer, name)) {
                keys.add(table, &mut arguments, self.lines, self.found);
            }
        }
        arguments
    }
}

fn table<'d, 'i>(document: &'d DeTable<'i>, name: &str) -> Option<&'d DeTable<'i>> {
    match document.get(name)?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
