//! Tables of a scenario file as command-line arguments: a key is an option's name.

use crate::input::diagnostics::Diagnostics;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command, ValueHint};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A text, to tell lines by offsets.
#[derive(Clone, Copy)]
pub(super) struct Lines<'t>(pub(super) &'t str);

impl Lines<'_> {
    /// The line, from 1, of what begins at a byte.
    pub(super) fn of<T>(&self, spanned: &Spanned<T>) -> usize {
        self.at(spanned.span().start)
    }

    pub(super) fn at(&self, offset: usize) -> usize {
        1 + self.0.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

/// What a table may hold.
pub(super) struct Keys<'k> {
    /// Whose options they are.
    pub(super) command: &'k Command,
    /// Only options under this heading, if there is one.
    pub(super) heading: Option<&'k str>,
    /// Keys that mean something else.
    pub(super) others: &'k [&'k str],
    /// Paths are relative to this folder.
    pub(super) folder: Option<&'k Path>,
}

impl Keys<'_> {
    /// Adds the arguments that a table stands for, in place of earlier ones of the same keys; what is wrong with it
    /// goes to `found`, all of it.
    pub(super) fn add(
        &self,
        table: &DeTable<'_>,
        arguments: &mut Vec<String>,
        lines: Lines<'_>,
        found: &mut Diagnostics,
    ) {
        for (key, value) in table.iter() {
            let (name, line) = (key.get_ref().as_ref(), lines.of(key));
            if self.others.contains(&name) {
                continue;
            }
            let Some(option) = self.option(name) else {
                found.error(line, name, self.unknown(name));
                continue;
            };
            match self.arguments(option, value.get_ref()) {
                Ok(own) => {
                    arguments.retain(|earlier| !is_of(earlier, name));
                    arguments.extend(own);
                }
                Err(message) => found.error(line, name, message),
            }
        }
    }

    fn options(&self) -> impl Iterator<Item = &Arg> {
        let in_table = |option: &&Arg| self.heading.is_none_or(|heading| option.get_help_heading() == Some(heading));
        self.command.get_arguments().filter(in_table).filter(|option| option.get_long().is_some())
    }

    fn option(&self, name: &str) -> Option<&Arg> {
        self.options().find(|option| option.get_long() == Some(name))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.options().filter_map(Arg::get_long).chain(self.others.iter().copied()).collect();
        unknown("key", name, &known)
    }

    /// What one key stands for. Of a flag that is not set, nothing; of an option that may be given several times, as
    /// many as there are values.
    fn arguments(&self, option: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, String> {
        let is_repeated = matches!(option.get_action(), ArgAction::Append) && option.get_value_delimiter().is_none();
        match value {
            DeValue::Array(items) if is_repeated => {
                items.iter().map(|item| self.argument(option, item.get_ref())).collect()
            }
            DeValue::Boolean(set) if matches!(option.get_action(), ArgAction::SetTrue) => {
                let flag = format!("--{}", option.get_long().unwrap_or_default());
                Ok(set.then_some(flag).into_iter().collect())
            }
            _ if matches!(option.get_action(), ArgAction::SetTrue) => Err("expected true or false".into()),
            value => Ok(vec![self.argument(option, value)?]),
        }
    }

    fn argument(&self, option: &Arg, value: &DeValue<'_>) -> Result<String, String> {
        let name = option.get_long().unwrap_or_default();
        let mut text = plain_text(value)?;
        if let Some(folder) = self.folder
            && option.get_value_hint() == ValueHint::AnyPath
        {
            text = folder.join(text).display().to_string();
        }
        let argument = format!("--{name}={text}");
        self.check(&argument)?;
        Ok(argument)
    }

    /// Whether the option takes the value. Others that it needs may be in other tables.
    fn check(&self, argument: &str) -> Result<(), String> {
        match self.command.clone().try_get_matches_from([self.command.get_name(), argument]) {
            Err(error) if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) => {
                Err(explain(&error))
            }
            _ => Ok(()),
        }
    }
}

/// Whether an argument is one of this option.
fn is_of(argument: &str, option: &str) -> bool {
    argument.strip_prefix("--").and_then(|rest| rest.split('=').next()) == Some(option)
}

/// Says that there is no such thing, and what may have been meant.
pub(super) fn unknown(noun: &str, name: &str, known: &[&str]) -> String {
    let alike = |other: &&&str| strsim::jaro_winkler(name, other) > 0.7;
    let best = known
        .iter()
        .filter(alike)
        .max_by(|a, b| strsim::jaro_winkler(name, a).total_cmp(&strsim::jaro_winkler(name, b)));
    match best {
        Some(best) => format!("no such {noun}; did you mean `{best}`?"),
        None => format!("no such {noun}; there are {}", known.join(", ")),
    }
}

/// clap's message in a line.
pub(super) fn explain(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<&str> =
        lines.take_while(|line| !line.starts_with("For more") && !line.starts_with("Usage")).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// A value as it would stand in an HPCC configuration, on one line: 1 and 0 are yes and no there.
pub(super) fn config_text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::Boolean(set) => Ok(u8::from(*set).to_string()),
        other => plain_text(other),
    }
    .and_then(|text| if text.contains(['\n', '\r']) { Err("expected one line".into()) } else { Ok(text) })
}

/// A value as it would be typed. An array is a list with commas.
fn plain_text(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_owned()),
        DeValue::Float(number) => Ok(number.as_str().to_owned()),
        DeValue::Boolean(set) => Ok(set.to_string()),
        DeValue::Datetime(date) => Ok(date.to_string()),
        DeValue::Array(items) => {
            let texts: Result<Vec<String>, String> = items.iter().map(|item| plain_text(item.get_ref())).collect();
            Ok(texts?.join(","))
        }
        DeValue::Table(_) => Err("expected a value, not a table".into()),
    }
}
