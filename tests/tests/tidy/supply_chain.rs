//! What the crates depend on: licences, sources, versions, and the compilers they need. The lists are those of
//! `.config/deny.toml`, which cargo-deny reads, too.

use super::root;
use serde_json::Value;
use spdx::{Expression, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Where crates come from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Workspaces with a lock file of their own, and the platforms they are for.
const LOCKED: [(&str, &str); 5] = [
    ("Cargo.toml", "x86_64-unknown-linux-gnu"),
    ("kernel/firmware/Cargo.toml", "thumbv7em-none-eabihf"),
    ("kernel/firmware/Cargo.toml", "riscv32imac-unknown-none-elf"),
    ("tests/fuzz/Cargo.toml", "x86_64-unknown-linux-gnu"),
    ("tests/loom/Cargo.toml", "x86_64-unknown-linux-gnu"),
];

/// Packages and their dependencies, as cargo has resolved them.
struct Graph {
    packages: BTreeMap<String, Value>,
    nodes: BTreeMap<String, Value>,
    members: Vec<String>,
}

impl Graph {
    /// Of a workspace. Its lock file must be up to date.
    fn of(manifest: &str, platform: &str) -> Graph {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--locked", "--format-version", "1", "--filter-platform", platform, "--manifest-path"])
            .arg(root().join(manifest))
            .output()
            .expect("cargo");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{manifest}: {errors}");
        let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let by_id = |list: &Value| {
            let list = list.as_array().expect("a list").iter();
            list.map(|entry| (text(entry, "id"), entry.clone())).collect()
        };
        let members = metadata["workspace_members"].as_array().expect("a list").iter();
        Graph {
            packages: by_id(&metadata["packages"]),
            nodes: by_id(&metadata["resolve"]["nodes"]),
            members: members.map(|id| id.as_str().expect("an id").to_owned()).collect(),
        }
    }

    /// Packages that are not of this repository.
    fn foreign(&self) -> impl Iterator<Item = &Value> {
        self.packages.values().filter(|package| !package["source"].is_null())
    }

    /// All that a package is built from, itself included; not what its tests need.
    fn parts(&self, id: &str) -> BTreeSet<&str> {
        let (mut parts, mut open) = (BTreeSet::new(), vec![id]);
        while let Some(id) = open.pop() {
            let (id, node) = self.nodes.get_key_value(id).expect("a node");
            if parts.insert(id.as_str()) {
                let dependencies = node["deps"].as_array().expect("a list").iter();
                let is_part = |dependency: &&Value| {
                    dependency["dep_kinds"].as_array().expect("a list").iter().any(|kind| kind["kind"] != "dev")
                };
                open.extend(dependencies.filter(is_part).map(|dependency| dependency["pkg"].as_str().expect("an id")));
            }
        }
        parts
    }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_else(|| panic!("{key} of {value}")).to_owned()
}

fn name(package: &Value) -> String {
    format!("{} {}", text(package, "name"), text(package, "version"))
}

fn graphs() -> Vec<Graph> {
    LOCKED.map(|(manifest, platform)| Graph::of(manifest, platform)).into()
}

fn deny() -> toml::Table {
    let text = std::fs::read_to_string(root().join(".config/deny.toml")).expect("deny.toml");
    text.parse().expect("TOML")
}

/// The strings of a list.
fn strings(list: &toml::Value) -> BTreeSet<&str> {
    list.as_array().expect("a list").iter().map(|entry| entry.as_str().expect("a string")).collect()
}

fn fails_with(rule: &str, offenders: BTreeSet<String>) {
    let offenders: Vec<String> = offenders.into_iter().collect();
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

/// A version that begins with these numbers.
fn matches(version: &str, prefix: &str) -> bool {
    version.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// A compiler's version.
fn compiler(package: &Value) -> Option<(u32, u32)> {
    let mut numbers = package["rust_version"].as_str()?.split('.').map(|number| number.parse().expect("a number"));
    Some((numbers.next()?, numbers.next().unwrap_or(0)))
}

#[test]
fn dependencies_come_from_the_registry() {
    let is_other = |package: &&Value| package["source"] != REGISTRY;
    let graphs = graphs();
    fails_with("not of crates.io", graphs.iter().flat_map(Graph::foreign).filter(is_other).map(name).collect());
    assert!(graphs.iter().all(|graph| graph.foreign().count() > 5));
}

#[test]
fn licences_are_those_that_are_allowed() {
    let deny = deny();
    let allowed = strings(&deny["licenses"]["allow"]);
    let exceptions: BTreeMap<&str, BTreeSet<&str>> = deny["licenses"]["exceptions"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|exception| (exception["crate"].as_str().expect("a name"), strings(&exception["allow"])))
        .collect();
    let is_allowed = |package: &Value| {
        let licence = Expression::parse_mode(&text(package, "license"), ParseMode::LAX).expect("a licence");
        let own = exceptions.get(text(package, "name").as_str());
        licence.evaluate(|asked| {
            let asked = asked.to_string();
            allowed.contains(asked.as_str()) || own.is_some_and(|own| own.contains(asked.as_str()))
        })
    };
    let graphs = graphs();
    let offenders = graphs.iter().flat_map(Graph::foreign).filter(|package| !is_allowed(package));
    fails_with(
        "licences that .config/deny.toml does not allow",
        offenders.map(|package| format!("{}: {}", name(package), text(package, "license"))).collect(),
    );
}

#[test]
fn of_each_crate_there_is_one_version() {
    let deny = deny();
    let skipped: BTreeSet<(&str, &str)> = deny["bans"]["skip"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| entry["crate"].as_str().and_then(|spec| spec.split_once('@')).expect("NAME@VERSION"))
        .collect();
    let graph = Graph::of(LOCKED[0].0, LOCKED[0].1);
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in graph.packages.values() {
        versions.entry(text(package, "name")).or_default().push(text(package, "version"));
    }
    let is_skipped = |name: &str, version: &str| skipped.iter().any(|(n, v)| *n == name && matches(version, v));
    let offenders = versions.iter().filter(|(name, all)| all.iter().filter(|v| !is_skipped(name, v)).count() > 1);
    fails_with("several versions", offenders.map(|(name, all)| format!("{name} {}", all.join(", "))).collect());
    let is_needed = |(name, version): &(&str, &str)| {
        versions.get(*name).is_some_and(|all| all.len() > 1 && all.iter().any(|v| matches(v, version)))
    };
    let stale = skipped.iter().filter(|skip| !is_needed(skip));
    fails_with("skipped without need", stale.map(|(name, version)| format!("{name}@{version}")).collect());
}

/// A crate's `rust-version` is a promise; with a part that needs a newer compiler it cannot be kept. What of the
/// standard library its own code uses is checked by clippy (`incompatible_msrv`).
#[test]
fn no_part_of_a_crate_needs_a_newer_compiler_than_it_says() {
    for graph in graphs() {
        for member in &graph.members {
            let Some(promised) = compiler(&graph.packages[member]) else { continue };
            let parts = graph.parts(member).into_iter().map(|id| &graph.packages[id]);
            let offenders = parts.filter(|part| compiler(part).is_some_and(|needed| needed > promised));
            let rule = format!("{} promises {promised:?}", name(&graph.packages[member]));
            fails_with(&rule, offenders.map(|part| format!("{} needs {:?}", name(part), compiler(part))).collect());
        }
    }
}
