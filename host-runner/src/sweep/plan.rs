//! The points of a sweep, from its file.
//!
//! | key | meaning |
//! |---|---|
//! | `scenario` | an embedded scenario, or a file whose path is relative to this one |
//! | `variant` | the variant of points that name none |
//! | `batch` | points that see the same memo store, and so most that run at the same time; 16 unless it is said |
//! | `[grid]` | `"TABLE.KEY" = [VALUES]` or `variant = [NAMES]`: all combinations, the last key changing fastest |
//! | `[[point]]` | `"TABLE.KEY" = VALUE` or `variant = NAME`: one point; these come after the grid |
//!
//! A table is one of the scenario file: `fabric`, `job` (all of them), `models`, `acceleration` or `config`. So a point
//! is a further variant of the scenario.

use crate::args::ScenarioArgs;
use crate::cli::{run_command, scenario_arguments};
use crate::input::diagnostics::Diagnostics;
use crate::input::{self, counted, decode};
use crate::scenario::Scenario;
use crate::scenario_file::{
    Lines, Overlay, ScenarioFile, ScenarioText, Setting, explain, plain_text, unknown, variants,
};
use std::collections::BTreeMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Points that see the same memo store, unless the file says otherwise. More of them keep more processors busy, and
/// learn later from each other.
const BATCH: usize = 16;

/// Points of a sweep at most.
const MAX_POINTS: usize = 100_000;

/// Tables whose keys may be swept. Outputs are those of the sweep.
const TABLES: [&str; 5] = ["acceleration", "config", "fabric", "job", "models"];

/// The key that is in no table.
const VARIANT: &str = "variant";

/// The text of a sweep's file.
pub(crate) struct PlanText {
    name: String,
    text: String,
}

/// See the module.
pub(crate) struct Plan<'t> {
    /// The file's name, as the user gave it.
    name: &'t str,
    /// Its text.
    pub(crate) text: &'t str,
    /// What all points are variants of.
    pub(crate) scenario: ScenarioText,
    variant: Option<String>,
    /// Points that see the same memo store.
    pub(crate) batch: usize,
    /// The keys that are swept, in the order in which the file states them.
    pub(crate) keys: Vec<String>,
    /// The points; a point's number is its place here.
    pub(crate) points: Vec<Point<'t>>,
}

/// One point.
#[derive(Clone, Default, Debug)]
pub(crate) struct Point<'t> {
    settings: Vec<Value<'t>>,
    /// The line of the sweep's file that is told with faults that concern no key.
    line: usize,
}

/// A key of a point, as the file states it, and its value.
#[derive(Clone, Debug)]
struct Value<'t> {
    /// `TABLE.KEY` or `variant`.
    path: String,
    at: usize,
    value: DeValue<'t>,
}

impl PlanText {
    /// Reads the file; that it cannot be read goes to `found`.
    pub(crate) fn read(path: &Path, found: &mut Diagnostics) -> Option<PlanText> {
        let text = input::read(path, found).map(decode)?;
        Some(PlanText { name: path.display().to_string(), text })
    }

    /// A text that is in no file.
    #[cfg(fuzzing)]
    pub(crate) fn of(name: &str, text: &str) -> PlanText {
        PlanText { name: name.into(), text: text.into() }
    }

    /// Understands it. All that is wrong goes to `found`; `None` if anything is.
    pub(crate) fn plan(&self, found: &mut Diagnostics) -> Option<Plan<'_>> {
        let mut of_file = Diagnostics::of(&self.name);
        let lines = Lines { text: &self.text, more: "" };
        let plan = match DeTable::parse(&self.text) {
            Ok(document) => Reader { lines, found: &mut of_file }.plan(self, document.get_ref()),
            Err(error) => {
                of_file.error(error.span().map_or(0, |span| lines.at(span.start)), "", error.message());
                None
            }
        };
        let usable = !of_file.has_errors();
        found.extend(of_file);
        plan.filter(|_| usable)
    }
}

impl<'t> Plan<'t> {
    /// The swept keys of a point with their values, as they would be typed.
    pub(crate) fn values(&self, point: usize) -> BTreeMap<String, String> {
        let text = |value: &Value<'_>| (value.path.clone(), plain_text(&value.value).unwrap_or_default());
        self.points[point].settings.iter().map(text).collect()
    }

    /// The scenario of a point and the arguments it is from, or `None` and what is wrong; `options` of `wormhole run`
    /// count for all points.
    pub(crate) fn load(&self, number: usize, options: &[String]) -> (Option<(Scenario, ScenarioArgs)>, Diagnostics) {
        let mut all = Diagnostics::default();
        let loaded = self.arguments(number, options, &mut all).and_then(|args| {
            let (scenario, found) = match args.input.load(&args.input.files(), &args.options()) {
                Ok(loaded) => (loaded.scenario, loaded.found),
                Err((_, found)) => (None, found),
            };
            all.extend(found);
            scenario.map(|scenario| (scenario, args))
        });
        (loaded, Overlay::relocate(&self.scenario, self.name, all))
    }

    fn arguments(&self, number: usize, options: &[String], all: &mut Diagnostics) -> Option<ScenarioArgs> {
        let point = &self.points[number];
        let overlay = Overlay::new(self.text, &self.scenario, &point.settings());
        let variant = point.variant().or(self.variant.as_deref());
        let mut found = Diagnostics::of(&self.scenario.name);
        let file = ScenarioFile::parse(&self.scenario, variant, Some(&overlay), &run_command(), &mut found);
        all.extend(found);
        let arguments = scenario_arguments(file?, options);
        let fault = |error| all.extend(Diagnostics::fault(self.name, point.line, explain(&error)));
        arguments.map_err(fault).ok()
    }
}

impl<'t> Point<'t> {
    fn variant(&self) -> Option<&str> {
        self.settings.iter().rev().find(|value| value.path == VARIANT).and_then(|value| value.value.as_str())
    }

    fn settings(&self) -> Vec<Setting<'t>> {
        let setting = |value: &Value<'t>| {
            let (table, key) = value.path.split_once('.')?;
            let (table, key) = (table.to_owned(), key.to_owned());
            Some(Setting { table, key, at: value.at, value: value.value.clone() })
        };
        self.settings.iter().filter_map(setting).collect()
    }
}

struct Reader<'r, 't> {
    lines: Lines<'t>,
    found: &'r mut Diagnostics,
}

impl<'t> Reader<'_, 't> {
    fn plan(&mut self, source: &'t PlanText, document: &DeTable<'t>) -> Option<Plan<'t>> {
        self.check_keys(document);
        let variant = document.get(VARIANT).and_then(|variant| self.name(VARIANT, variant));
        let scenario = self.scenario(Path::new(&source.name), document);
        let batch = self.batch(document);
        let mut points = self.grid(document);
        points.extend(self.list(document));
        if points.is_empty() && !self.found.has_errors() {
            self.found.error(0, "", "it has no points: expected [grid] with lists of values, or [[point]]");
        }
        let scenario = scenario?;
        self.check_variants(&scenario, document.get(VARIANT), &points);
        let mut keys: Vec<String> = Vec::new();
        for value in points.iter().flat_map(|point| &point.settings) {
            if !keys.contains(&value.path) {
                keys.push(value.path.clone());
            }
        }
        Some(Plan { name: &source.name, text: &source.text, scenario, variant, batch, keys, points })
    }

    fn check_keys(&mut self, document: &DeTable<'_>) {
        const KNOWN: [&str; 5] = ["scenario", VARIANT, "batch", "grid", "point"];
        for key in document.keys().filter(|key| !KNOWN.contains(&key.get_ref().as_ref())) {
            let name = key.get_ref().as_ref();
            self.found.error(self.lines.of(key), name, unknown("key", name, &KNOWN));
        }
    }

    /// A value that must be a text.
    fn name(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
        let name = value.get_ref().as_str().map(str::to_owned);
        if name.is_none() {
            self.found.error(self.lines.of(value), key, "expected a name in quotes");
        }
        name
    }

    fn scenario(&mut self, file: &Path, document: &DeTable<'_>) -> Option<ScenarioText> {
        let Some(value) = document.get("scenario") else {
            self.found.error(0, "", "it does not say what to run: `scenario = \"NAME\"` is missing");
            return None;
        };
        let name = self.name("scenario", value)?;
        let scenario = ScenarioText::read(&name, file.parent().unwrap_or(Path::new("")));
        scenario.map_err(|fault| self.found.error(self.lines.of(value), &name, fault)).ok()
    }

    fn batch(&mut self, document: &DeTable<'_>) -> usize {
        let Some(value) = document.get("batch") else { return BATCH };
        let number = match value.get_ref() {
            DeValue::Integer(number) => number.as_str().parse().ok().filter(|number| *number > 0),
            _ => None,
        };
        number.unwrap_or_else(|| {
            self.found.error(self.lines.of(value), "batch", "expected a whole number from 1 on");
            BATCH
        })
    }

    /// All combinations of what is in `[grid]`.
    fn grid(&mut self, document: &DeTable<'t>) -> Vec<Point<'t>> {
        let Some(grid) = document.get("grid") else { return Vec::new() };
        let line = self.lines.of(grid);
        let DeValue::Table(table) = grid.get_ref() else {
            self.found.error(line, "grid", "expected a table: [grid]");
            return Vec::new();
        };
        let mut axes: Vec<Vec<Value<'t>>> = Vec::new();
        for Value { path, at, value } in self.values(table) {
            match value {
                DeValue::Array(values) if !values.is_empty() => axes.push(self.axis(&path, at, &values)),
                _ => self.found.error(self.lines.at(at), &path, "expected a list of values: [A, B]"),
            }
        }
        let count = axes.iter().try_fold(1_usize, |count, axis| count.checked_mul(axis.len()));
        if count.is_none_or(|count| count > MAX_POINTS) {
            self.found.error(line, "grid", format!("more than {}", counted(MAX_POINTS, "point")));
            return Vec::new();
        }
        let first = vec![Point { settings: Vec::new(), line }];
        let points = axes.iter().fold(first, |points, axis| {
            let with = |point: &Point<'t>, value: &Value<'t>| {
                let mut point = point.clone();
                point.settings.push(value.clone());
                point
            };
            points.iter().flat_map(|point| axis.iter().map(move |value| with(point, value))).collect()
        });
        if axes.is_empty() { Vec::new() } else { points }
    }

    fn axis(&mut self, path: &str, at: usize, values: &DeArray<'t>) -> Vec<Value<'t>> {
        let mut axis = Vec::new();
        for value in values.iter() {
            let value = Value { path: path.to_owned(), at, value: value.get_ref().clone() };
            self.check(&value);
            axis.push(value);
        }
        axis
    }

    /// The points that are listed.
    fn list(&mut self, document: &DeTable<'t>) -> Vec<Point<'t>> {
        let Some(list) = document.get("point") else { return Vec::new() };
        let DeValue::Array(list) = list.get_ref() else {
            self.found.error(self.lines.of(list), "point", "expected a list of tables: [[point]]");
            return Vec::new();
        };
        let mut points = Vec::new();
        for point in list.iter() {
            let line = self.lines.of(point);
            let DeValue::Table(table) = point.get_ref() else {
                self.found.error(line, "point", "expected a table: [[point]]");
                continue;
            };
            let settings = self.values(table);
            settings.iter().for_each(|value| self.check(value));
            points.push(Point { settings, line });
        }
        if points.len() > MAX_POINTS {
            self.found.error(0, "point", format!("more than {}", counted(MAX_POINTS, "point")));
        }
        points
    }

    /// The keys of a table in the order in which it states them. What is in a table there has that table's name before
    /// it: `[grid.models]` with `cca` is `models.cca`.
    fn values(&mut self, table: &DeTable<'t>) -> Vec<Value<'t>> {
        let mut values = Vec::new();
        for (key, value) in table.iter() {
            match value.get_ref() {
                DeValue::Table(inner) => {
                    let within = inner
                        .iter()
                        .map(|(name, value)| (format!("{}.{}", key.get_ref(), name.get_ref()), name, value));
                    values.extend(within.map(|(path, name, value)| (path, name.span().start, value)));
                }
                _ => values.push((key.get_ref().to_string(), key.span().start, value)),
            }
        }
        values.sort_by_key(|(_, at, _)| *at);
        let mut kept: Vec<Value<'t>> = Vec::new();
        for (path, at, value) in values {
            let value = Value { path, at, value: value.get_ref().clone() };
            if kept.iter().any(|other| other.path == value.path) {
                self.found.error(self.lines.at(at), &value.path, "it is there already");
            } else if self.check_path(&value) {
                kept.push(value);
            }
        }
        kept
    }

    /// Whether a key is one that can be swept. Which keys a table has is told with the scenario.
    fn check_path(&mut self, value: &Value<'_>) -> bool {
        let fault = match value.path.split_once('.') {
            _ if value.path == VARIANT => return true,
            Some((table, _)) if TABLES.contains(&table) => return true,
            Some((table, _)) => unknown("table", table, &TABLES),
            None => format!("expected \"TABLE.KEY\", where a table is one of {}, or {VARIANT}", TABLES.join(", ")),
        };
        self.found.error(self.lines.at(value.at), &value.path, fault);
        false
    }

    fn check(&mut self, Value { path, at, value }: &Value<'_>) {
        let line = self.lines.at(*at);
        if path == VARIANT && value.as_str().is_none() {
            self.found.error(line, path, "expected names in quotes");
        } else if let Err(fault) = plain_text(value) {
            self.found.error(line, path, fault);
        }
    }

    fn check_variants(&mut self, scenario: &ScenarioText, of_all: Option<&Spanned<DeValue<'_>>>, points: &[Point<'_>]) {
        let known = variants(&scenario.text);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let of_all = of_all.into_iter().filter_map(|value| Some((value.span().start, value.get_ref().as_str()?)));
        let named = points.iter().flat_map(|point| &point.settings).filter(|value| value.path == VARIANT);
        let of_points = named.filter_map(|value| Some((value.at, value.value.as_str()?)));
        let mut faulty: Vec<(usize, &str)> =
            of_all.chain(of_points).filter(|(_, name)| !known.contains(name)).collect();
        faulty.sort_unstable();
        faulty.dedup();
        for (at, name) in faulty {
            let fault = match known[..] {
                [] => format!("{} has no variants", scenario.name),
                _ => unknown("variant", name, &known),
            };
            self.found.error(self.lines.at(at), name, fault);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a text says, and what is wrong with it.
    fn read<T>(text: &str, use_plan: impl FnOnce(Plan<'_>) -> T) -> (Option<T>, Vec<String>) {
        let source = PlanText { name: "sweep.toml".into(), text: text.into() };
        let mut found = Diagnostics::default();
        let plan = source.plan(&mut found).map(use_plan);
        (plan, found.all().iter().map(ToString::to_string).collect())
    }

    /// What is wrong with a text.
    fn faults(text: &str) -> Vec<String> {
        let (plan, found) = read(text, |plan| plan.points.len());
        assert!(plan.is_none(), "it has {plan:?} points");
        found
    }

    fn points(text: &str) -> Vec<String> {
        let all = |plan: Plan<'_>| {
            let point = |number| {
                let values = plan.values(number);
                let value = |key: &String| values.get(key).cloned().unwrap_or_else(|| "-".into());
                plan.keys.iter().map(value).collect::<Vec<_>>().join(" ")
            };
            (0..plan.points.len()).map(point).collect::<Vec<_>>()
        };
        let (points, found) = read(text, all);
        assert!(found.is_empty(), "{found:#?}");
        points.expect("a plan")
    }

    #[test]
    fn a_grid_is_every_combination_in_the_order_it_is_stated() {
        let text = "scenario = 'gpt-7b-64'\n[grid]\nvariant = ['100g', 'clos']\n'models.cca' = ['hpcc', 'dcqcn']\n\
                    config.BUFFER_SIZE = [16, 32]\n";
        let want = [
            "100g hpcc 16",
            "100g hpcc 32",
            "100g dcqcn 16",
            "100g dcqcn 32",
            "clos hpcc 16",
            "clos hpcc 32",
            "clos dcqcn 16",
            "clos dcqcn 32",
        ];
        assert_eq!(points(text), want);
    }

    #[test]
    fn listed_points_come_after_the_grid_and_may_have_keys_of_their_own() {
        let text = "scenario = 'gpt-7b-64'\n[grid.models]\nseed = [1, 2]\n[[point]]\n[[point]]\n'models.seed' = 7\n\
                    'config.PMAX_MAP' = [1, 100, 0.2]\n";
        assert_eq!(points(text), ["1 -", "2 -", "- -", "7 1,100,0.2"]);
    }

    #[test]
    fn all_faults_are_told_with_their_lines() {
        let text = "scenaro = 'x'\nscenario = 'gpt-7b-65'\nvariant = 3\nbatch = 0\n[grid]\ncca = ['hpcc']\n\
                    'modles.cca' = ['hpcc']\n'models.seed' = 3\n'models.cca' = []\n'job.tp' = [{ a = 1 }]\n\
                    [[point]]\nvariant = 1\n'outputs.out' = 'x'\nmodels.seed = 1\n'models.seed' = 2\n";
        let found = faults(text);
        let want = [
            "sweep.toml:1: error: no such key; did you mean `scenario`? (found `scenaro`)",
            "sweep.toml:3: error: expected a name in quotes (found `variant`)",
            "sweep.toml:2: error: cannot be read: No such file or directory (os error 2); no such embedded scenario; \
             did you mean `gpt-7b-64`? (found `gpt-7b-65`)",
            "sweep.toml:4: error: expected a whole number from 1 on (found `batch`)",
            "sweep.toml:6: error: expected \"TABLE.KEY\", where a table is one of acceleration, config, fabric, job, \
             models, or variant (found `cca`)",
            "sweep.toml:7: error: no such table; did you mean `models`? (found `modles.cca`)",
            "sweep.toml:8: error: expected a list of values: [A, B] (found `models.seed`)",
            "sweep.toml:9: error: expected a list of values: [A, B] (found `models.cca`)",
            "sweep.toml:10: error: expected a value, not a table (found `job.tp`)",
            "sweep.toml:13: error: no such table; there are acceleration, config, fabric, job, models (found \
             `outputs.out`)",
            "sweep.toml:15: error: it is there already (found `models.seed`)",
            "sweep.toml:12: error: expected names in quotes (found `variant`)",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_sweep_without_points_or_scenario_is_no_sweep() {
        let found = faults("scenario = 'gpt-7b-64'\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("it has no points"), "{found:?}");
        let found = faults("[[point]]\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`scenario = \"NAME\"` is missing"), "{found:?}");
        let found = faults("scenario =\n");
        assert!(found[0].starts_with("sweep.toml:1: error: "), "{found:?}");
    }

    #[test]
    fn variants_are_those_of_the_scenario() {
        let text = "scenario = 'gpt-7b-64'\nvariant = '100gb'\n[grid]\nvariant = ['clos', 'cloos']\n";
        let found = faults(text);
        let want = [
            "sweep.toml:2: error: no such variant; did you mean `100g`? (found `100gb`)",
            "sweep.toml:4: error: no such variant; did you mean `clos`? (found `cloos`)",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_grid_without_bounds_is_refused() {
        let values: Vec<String> = (0..400).map(|value| value.to_string()).collect();
        let values = values.join(", ");
        let text =
            format!("scenario = 'gpt-7b-64'\n[grid]\n'models.seed' = [{values}]\n'config.CC_MODE' = [{values}]\n");
        let found = faults(&text);
        assert_eq!(found, ["sweep.toml:2: error: more than 100000 points (found `grid`)"]);
    }

    #[test]
    fn faults_of_a_points_values_are_told_where_the_sweep_states_them() {
        let text = "scenario = 'gpt-7b-64'\n[[point]]\n'models.routing' = 'ecpm'\n[[point]]\n'fabric.spine' = 3\n\
                    'config.BUFFER_SIZE' = 'x'\n[[point]]\n'config.BUFFER_SIZE' = 'x'\n";
        let loaded = |plan: Plan<'_>| {
            let found = |number| plan.load(number, &[]).1.all().iter().map(ToString::to_string).collect::<Vec<_>>();
            (0..3).map(found).collect::<Vec<_>>()
        };
        let found = read(text, loaded).0.expect("a plan");
        assert!(found[0][0].starts_with("sweep.toml:3: error: invalid value 'ecpm'"), "{found:#?}");
        assert_eq!(found[1], ["sweep.toml:5: error: no such key; did you mean `spines`? (found `spine`)"]);
        assert!(found[2][0].starts_with("sweep.toml:8: error: "), "{found:#?}");
        assert!(found[2][0].ends_with("(found `x`)"), "{found:#?}");
    }
}
