//! Style, checked over the repository's own files. Every rule lists all its offenders as `file:line`.

#[path = "tidy/public_api.rs"]
mod public_api;
#[path = "tidy/supply_chain.rs"]
mod supply_chain;

use std::fs;
use std::path::{Path, PathBuf};

/// What may lie at the top level, besides dot-files and git's and cargo's own directories.
const TOP_LEVEL: [&str; 11] = [
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "benches",
    "host-runner",
    "kernel",
    "memo-fmt",
    "models",
    "tests",
];

/// Where the code lies that others depend on.
const SOURCES: [&str; 5] = ["kernel/src", "kernel/capi/src", "models/src", "memo-fmt/src", "host-runner/src"];

/// Files that may hold `unsafe` code: foreign interfaces only, each block with its reason.
///
/// In the firmware: functions that start-up code and hardware call, and the memory of the stack.
const UNSAFE_ALLOWED: [&str; 17] = [
    "host-runner/examples/rtl_peer/verilated.rs",
    "host-runner/src/cosim/device.rs",
    "host-runner/src/cosim/simbricks/shm.rs",
    "host-runner/src/plugin/load.rs",
    "kernel/capi/src/exports.rs",
    "kernel/capi/src/handle.rs",
    "kernel/capi/src/pointers.rs",
    "kernel/capi/src/region.rs",
    "kernel/firmware/src/board.rs",
    "kernel/firmware/src/stack.rs",
    "models/src/plugin/abi.rs",
    "models/src/plugin/buffers.rs",
    "models/src/plugin/cca.rs",
    "models/src/plugin/descriptor.rs",
    "models/src/plugin/foreign.rs",
    "models/src/plugin/marker.rs",
    "models/src/plugin/tests.rs",
];

/// Columns in a line of code.
const MAX_COLUMNS: usize = 120;

/// The CI script has no extension, but is text like the others.
const CI_SCRIPT: &str = ".ci/run";

/// A text file: its path from the root, with forward slashes, and its contents.
struct Source {
    path: String,
    text: String,
}

impl Source {
    fn is(&self, extensions: &[&str]) -> bool {
        extensions.iter().any(|e| self.path.ends_with(&format!(".{e}")))
    }

    fn is_under(&self, folders: &[&str]) -> bool {
        folders.iter().any(|f| self.path.strip_prefix(f).is_some_and(|rest| rest.starts_with('/')))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All text files of the repository, sorted by path.
fn sources() -> Vec<Source> {
    fn walk(folder: &Path, prefix: &str, found: &mut Vec<Source>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().expect("file names are UTF-8");
            let path = format!("{prefix}{name}");
            if entry.file_type().unwrap().is_dir() {
                if name != "target" && name != ".git" {
                    walk(&entry.path(), &format!("{path}/"), found);
                }
            } else if [".rs", ".md", ".toml", ".sh"].iter().any(|e| name.ends_with(e)) || path == CI_SCRIPT {
                let text = fs::read_to_string(entry.path()).unwrap_or_else(|e| panic!("{path}: {e}"));
                found.push(Source { path, text });
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), "", &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 20, "only {} text files: is this the repository?", found.len());
    found
}

/// Fails with every line, of the files that `concerns` picks, on which `breaks` holds.
fn no_line(rule: &str, concerns: impl Fn(&Source) -> bool, breaks: impl Fn(&str) -> bool) {
    let sources = sources();
    let concerned: Vec<&Source> = sources.iter().filter(|s| concerns(s)).collect();
    assert!(!concerned.is_empty(), "{rule}: the rule concerns no file");
    let offenders: Vec<String> = concerned
        .iter()
        .flat_map(|s| s.text.lines().enumerate().map(move |(i, line)| (s, i + 1, line)))
        .filter(|(_, _, line)| breaks(line))
        .map(|(s, number, line)| format!("  {}:{number}: {}", s.path, line.trim()))
        .collect();
    assert!(offenders.is_empty(), "{rule}:\n{}", offenders.join("\n"));
}

/// The line without its `//` comment. Cuts a string with `//` short, too: that hides little.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or(line)
}

/// Identifiers, keywords and numbers of a line of code, each with the text after it.
fn words(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = code(line);
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_word(c));
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        rest = after;
        (!word.is_empty()).then_some((word, after))
    })
}

fn has_unsafe(line: &str) -> bool {
    words(line).any(|(word, _)| word == "unsafe")
}

/// A float type by name, or as the suffix of a number.
fn has_float_type(line: &str) -> bool {
    let is_float = |word: &str| {
        let number = word.starts_with(|c: char| c.is_ascii_digit()) && !word.starts_with("0x");
        ["f32", "f64"].iter().any(|t| word == *t || number && word.ends_with(t))
    };
    words(line).any(|(word, _)| is_float(word))
}

fn has_leftover_macro(line: &str) -> bool {
    words(line).any(|(word, after)| ["todo", "unimplemented", "dbg"].contains(&word) && after.starts_with('!'))
}

/// A path that exists on somebody's machine only.
fn has_machine_path(line: &str) -> bool {
    // Not written out, or this file would break its own rule.
    let folders = ["work", "root", "tmp", "home", "Users"].map(|f| format!("/{f}/"));
    folders.iter().any(|folder| {
        line.match_indices(folder.as_str()).any(|(at, _)| {
            // `docs/tmp/x` is a relative path, and part of an address is no path at all.
            !line[..at].ends_with(|c: char| c.is_alphanumeric() || "_-.~$})".contains(c))
        })
    })
}

fn is_too_wide(line: &str) -> bool {
    line.chars().count() > MAX_COLUMNS
}

#[test]
fn rules_see_what_they_forbid() {
    assert!(has_unsafe("    unsafe { f() }") && has_unsafe("unsafe fn f();") && has_unsafe("#[unsafe(no_mangle)]"));
    assert!(!has_unsafe("#![deny(unsafe_code)]") && !has_unsafe("x // not unsafe"));

    assert!(has_float_type("let x: f64;") && has_float_type("1f32 + 1.5_f64") && has_float_type("f64::NAN"));
    assert!(!has_float_type("let f64x = 0xf64;") && !has_float_type("/// as an f64"));

    let call = |name: &str| format!("    {name}!(x)");
    assert!(["todo", "unimplemented", "dbg"].iter().all(|name| has_leftover_macro(&call(name))));
    assert!(!has_leftover_macro(&call("my_todo")) && !has_leftover_macro("todo(x) != dbg"));

    let path = |before: &str, folder: &str| format!("{before}/{folder}/x");
    assert!(has_machine_path(&path("see ", "tmp")) && has_machine_path(&path("\"", "root")));
    assert!(!has_machine_path(&path("docs", "tmp")) && !has_machine_path(&path("$OUT", "work")));

    assert!(is_too_wide(&"é".repeat(MAX_COLUMNS + 1)) && !is_too_wide(&"é".repeat(MAX_COLUMNS)));
}

#[test]
fn top_level_holds_only_what_is_agreed() {
    let mut offenders: Vec<String> = fs::read_dir(root())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !TOP_LEVEL.contains(&name.as_str()) && !name.starts_with('.') && name != "target")
        .collect();
    offenders.sort();
    assert!(offenders.is_empty(), "not agreed at the top level: {offenders:?}");

    let missing: Vec<&str> = TOP_LEVEL.into_iter().filter(|name| !root().join(name).exists()).collect();
    assert!(missing.is_empty(), "missing at the top level: {missing:?}");
}

#[test]
fn every_source_file_says_what_it_is() {
    let offenders: Vec<String> = sources()
        .iter()
        .filter(|s| s.is(&["rs"]) && s.is_under(&SOURCES))
        .filter(|s| !s.text.starts_with("//!") && !s.text.starts_with("#!["))
        .map(|s| format!("  {}:1", s.path))
        .collect();
    assert!(offenders.is_empty(), "files that begin with neither `//!` nor `#![`:\n{}", offenders.join("\n"));
}

#[test]
fn no_unsafe_code() {
    let folders = ["kernel", "models", "memo-fmt", "host-runner"];
    let concerns = |s: &Source| s.is(&["rs"]) && s.is_under(&folders) && !UNSAFE_ALLOWED.contains(&s.path.as_str());
    no_line("unsafe code outside the foreign interfaces", concerns, has_unsafe);
}

#[test]
fn nothing_is_left_to_do() {
    no_line("macros of unfinished work", |s| s.is(&["rs"]), has_leftover_macro);
}

#[test]
fn lines_are_not_too_wide() {
    // Markdown is left out: a table row cannot be broken.
    let concerns = |s: &Source| s.is(&["rs", "toml", "sh"]) || s.path == CI_SCRIPT;
    no_line(&format!("lines over {MAX_COLUMNS} columns"), concerns, is_too_wide);
}

/// Floats round differently with the order of operations; what decides when things happen must not.
#[test]
fn the_kernel_has_no_floats() {
    no_line("float types in the kernel", |s| s.is(&["rs"]) && s.is_under(&["kernel/src"]), has_float_type);
}

#[test]
fn no_paths_of_one_machine() {
    no_line("paths of one machine", |_| true, has_machine_path);
}

/// A reader of the README and the CI run the same tests.
#[test]
fn ci_runs_the_readme_test_command() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    let block: Vec<&str> =
        readme.lines().skip_while(|l| !l.starts_with("```")).skip(1).take_while(|l| !l.starts_with("```")).collect();
    assert_eq!(
        block,
        ["cargo run --release -- demo", "cargo test --workspace --locked"],
        "the first block of README.md: how to run it, how to test it"
    );
    let ci = fs::read_to_string(root().join(CI_SCRIPT)).expect(CI_SCRIPT);
    let runs = ci.lines().any(|l| l.starts_with("step ") && l.ends_with(&format!(" {}", block[1])));
    assert!(runs, "{CI_SCRIPT} has no step that runs `{}`", block[1]);
}
