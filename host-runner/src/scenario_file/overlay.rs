//! Keys of another file that replace those of a scenario file, as the keys of a variant do.

use super::{Lines, ScenarioText};
use crate::input::diagnostics::Diagnostics;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// A key, and what it is set to.
#[derive(Clone, Debug)]
pub(crate) struct Setting<'t> {
    /// The table of the scenario file.
    pub(crate) table: String,
    /// The key there.
    pub(crate) key: String,
    /// Where the key stands, in bytes of the other file.
    pub(crate) at: usize,
    /// Its value.
    pub(crate) value: DeValue<'t>,
}

/// See the module.
///
/// The other file counts as if it stood behind the scenario's: positions go on from its end, and so do the lines that
/// findings name, until [`relocate`](Self::relocate) tells the two apart.
pub(crate) struct Overlay<'t> {
    /// The text of the other file.
    pub(super) text: &'t str,
    /// Tables like those of a variant.
    pub(super) tables: DeTable<'t>,
}

impl<'t> Overlay<'t> {
    /// Of keys of a file with this text. No key is there twice.
    pub(crate) fn new(text: &'t str, scenario: &ScenarioText, settings: &[Setting<'t>]) -> Overlay<'t> {
        let mut tables = DeTable::new();
        for Setting { table, key, at, value } in settings {
            let at = scenario.text.len() + at;
            let spanned = |text: &str| Spanned::new(at..at, DeString::Owned(text.to_owned()));
            let empty = || Spanned::new(at..at, DeValue::Table(DeTable::new()));
            let entry = tables.entry(spanned(table)).or_insert_with(empty);
            if let DeValue::Table(keys) = entry.get_mut() {
                keys.insert(spanned(key), Spanned::new(at..at, value.clone()));
            }
        }
        Overlay { text, tables }
    }

    /// Findings about the scenario, those behind its end named as being in the file `name`.
    pub(crate) fn relocate(scenario: &ScenarioText, name: &str, found: Diagnostics) -> Diagnostics {
        let last = Lines { text: &scenario.text, more: "" }.count();
        found.map(|finding| {
            if finding.file == scenario.name && finding.line > last {
                finding.file = name.to_owned();
                finding.line -= last;
            }
        })
    }
}
