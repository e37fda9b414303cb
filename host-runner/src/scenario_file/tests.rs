//! What scenario files mean, and what is said of those that mean nothing.

use super::*;
use crate::cli::Cli;
use crate::load::{Files, Loaded, load_files};
use crate::scenario::Options;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::fs;
use wormhole_kernel::NodeKind;

/// Four hosts, two jobs on them, and something in every other table.
const WHOLE: &str = "\
[fabric]
kind = 'star'
hosts = 4
host-rate = '100Gbps'

[[job]]
kind = 'gpt'
name = 'first'
tp = 2
tp-traffic = true
placement = 'packed'

[[job]]
kind = 'gpt'
name = 'second'
dp = 2
overlap = true
placement = 'packed'

[models]
seed = 7
cca = 'hpcc'

[acceleration]
accel = 'exact'

[outputs]
out = 'results'

[config]
CC_MODE = 3
KMIN_MAP = [1, 100000000000, 400]
KMAX_MAP = [1, 100000000000, 1600]
PMAX_MAP = [1, 100000000000, 0.2]

[variant.more.fabric]
hosts = 8

[variant.more.models]
seed = 8

[variant.more.config]
CC_MODE = 1
BUFFER_SIZE = 16

[variant.pair.fabric]
kind = 'dumbbell'
left = 3
right = 2

[variant.quiet.job]
tp-traffic = false
overlap = false
iterations = 2

[variant.experts.job]
kind = 'moe'
";

/// The least of jobs.
const JOB: &str = "[[job]]\nkind = 'gpt'\nplacement = 'packed'\n";

/// The command whose options scenario files may name.
fn run() -> Command {
    Cli::command().find_subcommand("run").expect("a command").clone()
}

fn lines(found: &Diagnostics) -> Vec<String> {
    found.all().iter().map(ToString::to_string).collect()
}

/// What a text says, and what is found about it.
fn parse(text: &str, variant: Option<&str>) -> (Option<ScenarioFile>, Vec<String>) {
    let mut found = Diagnostics::of("s.toml");
    let file = ScenarioFile::parse("s.toml", text, Path::new("folder"), variant, &run(), &mut found);
    (file, lines(&found))
}

/// What a text without faults says.
#[track_caller]
fn good(text: &str, variant: Option<&str>) -> ScenarioFile {
    let (file, found) = parse(text, variant);
    assert!(found.is_empty(), "{found:#?}");
    file.expect("nothing is wrong with it")
}

/// What is wrong with a text.
#[track_caller]
fn faults(text: &str) -> Vec<String> {
    let (file, found) = parse(text, None);
    assert!(file.is_none(), "it is read: {file:#?}");
    found
}

/// The line that a finding names.
fn line_of(finding: &str) -> usize {
    finding.split(':').nth(1).and_then(|line| line.parse().ok()).unwrap_or_default()
}

/// The scenario of a file, without what it says of options.
fn loaded(file: &ScenarioFile) -> Loaded {
    let files = Files {
        topology: file.fabric.clone().expect("a fabric"),
        flows: None,
        config: file.config.clone(),
        link_events: None,
        jobs: file.jobs.clone(),
        is_open: false,
    };
    load_files(&files, &Options::PLAIN)
}

/// What the files of a scenario are taken for, line by line.
#[track_caller]
fn described(file: &ScenarioFile) -> Vec<String> {
    let loaded = loaded(file);
    assert!(loaded.scenario.is_some(), "{:#?}", lines(&loaded.found));
    loaded.description.lines().map(str::to_owned).collect()
}

fn text_of(source: &Option<Source>) -> (&str, &str) {
    match source {
        Some(Source::Text { name, text }) => (name, text),
        other => panic!("no text: {other:?}"),
    }
}

/// A folder for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("wormhole-scenario-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

// Scenarios of the program.

/// Asserts that a scenario is read and its jobs fit, without anything to find.
fn assert_flawless(name: &str, variant: Option<&str>) {
    let title = format!("{name}, variant {variant:?}");
    let mut found = Diagnostics::of(name);
    let file = ScenarioFile::load(name, variant, &run(), &mut found);
    assert!(lines(&found).is_empty(), "{title}: {:#?}", lines(&found));
    let file = file.expect(&title);
    let words = ["wormhole", "run", name].map(str::to_owned).into_iter().chain(file.arguments.clone());
    assert!(Cli::try_parse_from(words).is_ok(), "{title}: {:?}", file.arguments);
    let loaded = loaded(&file);
    assert!(lines(&loaded.found).is_empty(), "{title}: {:#?}", lines(&loaded.found));
    let scenario = loaded.scenario.expect(&title);
    let hosts = scenario.nodes.iter().filter(|node| **node == NodeKind::Host).count();
    let ranks: u32 = scenario.jobs.iter().map(|placed| placed.job.ranks()).sum();
    assert!(0 < ranks && ranks as usize <= hosts, "{title}: {ranks} ranks on {hosts} hosts");
    assert!(scenario.jobs.iter().all(|placed| placed.hosts.len() == placed.job.ranks() as usize), "{title}");
}

#[test]
fn every_embedded_scenario_is_flawless_in_every_variant() {
    assert!(embedded().count() > 0);
    for scenario in embedded() {
        assert!(scenario.text.starts_with("# ") && !scenario.title().is_empty(), "{}", scenario.name);
        assert_flawless(scenario.name, None);
        for variant in variants(scenario.text) {
            assert_flawless(scenario.name, Some(&variant));
        }
    }
}

#[test]
fn a_scenario_that_is_nowhere_is_told_with_one_that_is_meant() {
    let mut found = Diagnostics::of("gpt-7b-65");
    assert!(ScenarioFile::load("gpt-7b-65", None, &run(), &mut found).is_none());
    let [line] = &lines(&found)[..] else { panic!("{found:?}") };
    assert!(line.starts_with("gpt-7b-65: error: cannot be read: "), "{line}");
    assert!(line.ends_with("; no such embedded scenario; did you mean `gpt-7b-64`?"), "{line}");
}

// What is wrong.

#[test]
fn unknown_names_are_told_all_at_once() {
    let text = "\
[fabric]
kind = 'star'
host = 4
[[job]]
kind = 'gpt'
micro-batch = 2
[modles]
seed = 1
[models]
sed = 1
accel = 'off'
[acceleration]
detectr = 'paper'
[outputs]
put = 'x'
[variant.v.fabric]
hosts = 2
";
    let mut found = faults(text);
    found.sort_by_key(|finding| line_of(finding));
    let want = [
        "s.toml:3: error: no such key; did you mean `hosts`? (found `host`)",
        "s.toml:6: error: no such key; did you mean `micro-batches`? (found `micro-batch`)",
        "s.toml:7: error: no such table; did you mean `models`? (found `modles`)",
        "s.toml:10: error: no such key; did you mean `seed`? (found `sed`)",
    ];
    assert_eq!(found[..4], want);
    let accel = &found[4];
    assert!(accel.starts_with("s.toml:11: error: no such key") && accel.ends_with("(found `accel`)"), "{accel}");
    let want = [
        "s.toml:13: error: no such key; did you mean `detector`? (found `detectr`)",
        "s.toml:15: error: no such key; did you mean `out`? (found `put`)",
    ];
    assert_eq!(found[5..], want);
}

#[test]
fn names_unlike_any_are_told_with_all_there_are() {
    let keys = "hosts, host-rate, host-delay, kind";
    let star = "[fabric]\nkind = 'star'\nq = 1\n";
    assert_eq!(faults(star), [format!("s.toml:3: error: no such key; there are {keys} (found `q`)")]);
    let kind = "[fabric]\nkind = 'q'\n";
    let kinds = "fat-tree, clos, rail, dumbbell, star";
    assert_eq!(faults(kind), [format!("s.toml:2: error: no such kind; there are {kinds} (found `q`)")]);
}

#[test]
fn unknown_names_in_the_variant_that_is_chosen_are_faults() {
    let text = format!("{WHOLE}[variant.odd.fabric]\nhots = 3\n[variant.odd.acceleration]\nwindw = 3\n");
    let line = 1 + WHOLE.lines().count();
    let (file, found) = parse(&text, Some("odd"));
    assert!(file.is_none());
    let want = [
        format!("s.toml:{}: error: no such key; did you mean `hosts`? (found `hots`)", line + 1),
        format!("s.toml:{}: error: no such key; did you mean `window`? (found `windw`)", line + 3),
    ];
    assert_eq!(found, want);
    let (_, found) = parse("[variant.v.fabrik]\nk = 4\n", Some("v"));
    assert_eq!(found, ["s.toml:1: error: no such table; did you mean `fabric`? (found `fabrik`)"]);
    let (_, found) = parse("[variant.v.variant.w.models]\nseed = 4\n", Some("v"));
    assert!(found[0].starts_with("s.toml:1: error: no such table"), "{found:?}");
}

#[test]
fn wrong_values_are_told_with_their_lines() {
    let text = "\
[fabric]
kind = 'star'
hosts = 'many'
host-rate = ['100Gbps', 'fast']
[[job]]
kind = 'gpt'
tp = -1
placement = 'near'
[models]
seed = 1.5
routing = { by = 'hand' }
[acceleration]
accel = 'most'
";
    let mut found = faults(text);
    found.sort_by_key(|finding| line_of(finding));
    let want = [
        (3, "invalid value 'many' for '--hosts", "hosts"),
        (4, "invalid value 'fast' for '--host-rate", "host-rate"),
        (7, "invalid value '-1' for '--tp", "tp"),
        (8, "invalid value 'near' for '--placement", "placement"),
        (10, "invalid value '1.5' for '--seed", "seed"),
        (11, "expected a value, not a table", "routing"),
        (13, "invalid value 'most' for '--accel", "accel"),
    ];
    assert_eq!(found.len(), want.len(), "{found:#?}");
    for (line, (number, message, token)) in found.iter().zip(want) {
        assert!(line.starts_with(&format!("s.toml:{number}: error: {message}")), "{line}");
        assert!(line.ends_with(&format!("(found `{token}`)")), "{line}");
        assert!(!line.contains('\n'), "{line}");
    }
}

#[test]
fn flags_are_true_or_false() {
    let text = |value: &str| format!("[[job]]\nkind = 'gpt'\ntp-traffic = {value}\n");
    for value in ["'yes'", "1", "[true]"] {
        assert_eq!(faults(&text(value)), ["s.toml:3: error: expected true or false (found `tp-traffic`)"], "{value}");
    }
    for value in ["true", "false"] {
        let [job] = &good(&text(value), None).jobs[..] else { panic!("one job") };
        let told = format!("{:?}", job.kind).contains(&format!("tp_traffic: {value}"));
        assert!(told, "{value}: {job:?}");
    }
}

#[test]
fn faults_of_toml_are_told_with_their_lines() {
    let twice = "[fabric]\nkind = 'star'\nkind = 'clos'\n";
    for (text, line) in [("[fabric]\nkind = \n", 2), (twice, 3), ("\n\n[fabric\n", 3)] {
        let found = faults(text);
        assert!(found[0].starts_with(&format!("s.toml:{line}: error: ")), "{text}: {found:?}");
        assert!(!found[0].contains('\n'), "{found:?}");
    }
}

#[test]
fn tables_must_be_tables() {
    let want = ["s.toml:1: error: expected a table: [models] (found `models`)"];
    assert_eq!(faults("models = 3\n"), want);
    let want = ["s.toml:1: error: expected a list of tables: [[job]] (found `job`)"];
    assert_eq!(faults("[job]\nkind = 'gpt'\n"), want, "one job is a list of one");
    assert_eq!(faults("job = [3]\n"), ["s.toml:1: error: expected a table: [[job]] (found `job`)"]);
    let (file, found) = parse("[[variant.v.job]]\ntp = 2\n", Some("v"));
    assert!(file.is_none(), "it is read");
    assert_eq!(found, ["s.toml:1: error: expected a table: [job] (found `job`)"], "it is about all jobs");
}

#[test]
fn a_kind_must_be_there() {
    let kinds = "fat-tree, clos, rail, dumbbell, star";
    let want = format!("s.toml:2: error: a `kind` is missing: {kinds}");
    assert_eq!(faults("[fabric]\nhosts = 4\n"), [want]);
    assert_eq!(faults("[[job]]\ntp = 4\n"), ["s.toml:2: error: a `kind` is missing: gpt, moe, file"]);
    assert_eq!(faults("[fabric]\nkind = 4\n"), [format!("s.toml:2: error: expected one of {kinds} (found `kind`)")]);
    assert_eq!(faults("[fabric]\n"), [format!("s.toml: error: a `kind` is missing: {kinds}")]);
}

#[test]
fn impossible_fabrics_are_told_at_their_kind() {
    let found = faults("[fabric]\nhosts-per-leaf = 0\n\nkind = 'clos'\n");
    assert_eq!(found, ["s.toml:4: error: --hosts-per-leaf: hosts_per_leaf must not be 0"]);
}

#[test]
fn a_job_is_told_where_it_begins() {
    let text = "[fabric]\nkind = 'star'\n\n[[job]]\nkind = 'gpt'\ntp = 8\n\n[[job]]\nkind = 'gpt'\ntp = 2\ngpus = 5\n";
    let file = good(text, None);
    let places: Vec<(&str, usize)> = file.jobs.iter().map(|job| (job.file.as_str(), job.line)).collect();
    assert_eq!(places, [("s.toml", 5), ("s.toml", 9)]);
    let loaded = loaded(&file);
    assert!(loaded.scenario.is_none());
    assert_eq!(lines(&loaded.found), ["s.toml:9: error: gpus 5, but tp times pp times dp are 4"]);
}

#[test]
fn a_job_that_does_not_fit_is_told_where_it_begins() {
    let text = "[fabric]\nkind = 'star'\nhosts = 4\n[[job]]\nkind = 'gpt'\ndp = 6\nplacement = 'spread'\n";
    let found = lines(&loaded(&good(text, None)).found);
    assert_eq!(found, ["s.toml:5: error: the job has 6 ranks, but only 4 hosts left"]);
    let found = lines(&loaded(&good(&text.replace("placement = 'spread'", "hosts = '0-5'"), None)).found);
    assert_eq!(found, ["s.toml:5: error: node 4 is no host"]);
}

#[test]
fn hosts_and_placement_exclude_each_other() {
    let text = "[[job]]\nkind = 'gpt'\nhosts = [0, 2]\nplacement = 'packed'\n";
    let found = faults(text);
    assert!(found[0].starts_with("s.toml:2: error: the argument '--"), "{found:?}");
    assert!(found[0].contains("cannot be used with"), "{found:?}");
}

// What is right.

#[test]
fn a_file_is_a_scenario_and_options() {
    let file = good(WHOLE, None);
    let hpcc = "HPCC topology: 4 hosts, 1 switch, 4 links";
    let described = described(&file);
    assert_eq!(described[0], hpcc);
    assert!(described[1].starts_with("first: ") && described[1].contains("2 ranks"), "{described:?}");
    assert!(described[2].starts_with("second: ") && described[2].contains("2 ranks"), "{described:?}");
    let mut arguments = file.arguments;
    arguments.sort();
    assert_eq!(arguments, ["--accel=exact", "--cca=hpcc", "--out=results", "--seed=7"]);
}

#[test]
fn variants_are_listed() {
    assert_eq!(variants(WHOLE), ["experts", "more", "pair", "quiet"]);
    assert!(variants("[fabric]\n").is_empty() && variants("no TOML").is_empty());
}

#[test]
fn a_variant_must_be_one_of_the_file() {
    let fault = |text: &str, name: &str| {
        let (file, found) = parse(text, Some(name));
        assert!(file.is_none(), "{name} is read");
        found.join("; ")
    };
    assert_eq!(fault(WHOLE, "mor"), "s.toml: error: no such variant; did you mean `more`? (found `mor`)");
    assert_eq!(fault("[fabric]\nkind = 'star'\n", "v"), "s.toml: error: it has no variants (found `v`)");
}

#[test]
fn a_variant_replaces_keys_and_leaves_the_others() {
    let file = good(WHOLE, Some("more"));
    assert_eq!(described(&file)[0], "HPCC topology: 8 hosts, 1 switch, 8 links");
    let mut arguments = file.arguments.clone();
    arguments.sort();
    assert_eq!(arguments, ["--accel=exact", "--cca=hpcc", "--out=results", "--seed=8"]);
    let (_, config) = text_of(&file.config);
    let rows: Vec<&str> = config.lines().filter(|line| !line.is_empty()).collect();
    let maps = ["KMIN_MAP 1 100000000000 400", "KMAX_MAP 1 100000000000 1600", "PMAX_MAP 1 100000000000 0.2"];
    let want = [&maps[..], &["BUFFER_SIZE 16", "CC_MODE 1"]].concat();
    assert_eq!(rows.len(), want.len(), "{config}");
    assert!(want.iter().all(|row| rows.contains(row)), "{config}");
    assert_eq!(loaded(&file).scenario.expect("a scenario").cca_name(), "dcqcn");
}

#[test]
fn a_variant_with_a_kind_is_another_fabric() {
    let file = good(WHOLE, Some("pair"));
    assert_eq!(described(&file)[0], "HPCC topology: 5 hosts, 2 switches, 6 links");
}

#[test]
fn a_variant_is_about_every_job() {
    let kinds = |variant| good(WHOLE, variant).jobs.iter().map(|job| format!("{:?}", job.kind)).collect::<Vec<_>>();
    let [first, second] = &kinds(None)[..] else { panic!("two jobs") };
    assert!(first.contains("tp_traffic: true") && first.contains("overlap: false"), "{first}");
    assert!(second.contains("tp_traffic: false") && second.contains("overlap: true"), "{second}");
    for job in kinds(Some("quiet")) {
        let words = ["tp_traffic: false", "overlap: false", "iterations: 2"];
        assert!(words.iter().all(|word| job.contains(word)), "{job}");
    }
    assert!(kinds(Some("quiet"))[0].contains("\"first\""), "what it does not name stays");
    assert!(kinds(Some("experts")).iter().all(|job| job.starts_with("Moe(")), "also their kind");
}

#[test]
fn keys_of_a_configuration_are_those_of_hpcc_at_their_lines() {
    let text = "[fabric]\nkind = 'star'\n\n[config]\nBUFFER_SIZ = 16\nCC_MODE = 7\n\nHAS_WIN = 'no'\n";
    let loaded = loaded(&good(&format!("{text}{JOB}"), None));
    let want = [
        "s.toml:5: warning: unknown key; it and what follows on its line are not read; did you mean BUFFER_SIZE? \
         (found `BUFFER_SIZ`)",
        "s.toml:8: error: expected 0 or 1 (found `no`)",
    ];
    assert_eq!(lines(&loaded.found), want);
    let found = faults("[config]\nCC_MODE = { a = 1 }\n");
    assert_eq!(found, ["s.toml:2: error: expected a value, not a table (found `CC_MODE`)"]);
}

#[test]
fn a_configuration_on_one_line_is_read() {
    let text = "config = { HAS_WIN = 1, CC_MODE = 7 }\n[fabric]\nkind = 'star'\n";
    let file = good(&format!("{text}{JOB}"), None);
    assert_eq!(loaded(&file).scenario.expect("a scenario").cca_name(), "timely");
}

// Files.

#[test]
fn paths_are_relative_to_the_file() {
    let text = "\
[fabric]
file = 'fabric.txt'
[[job]]
kind = 'file'
file = 'job.goal'
groups = '/groups.json'
[models]
link-events = 'events.txt'
config = '/config.txt'
[acceleration]
memo = 'records.whm'
[outputs]
out = 'results'
";
    let file = good(text, None);
    assert!(matches!(&file.fabric, Some(Source::File(path)) if path == Path::new("folder/fabric.txt")), "{file:?}");
    let job = format!("{:?}", file.jobs[0].kind);
    assert!(job.contains("file: \"folder/job.goal\"") && job.contains("Some(\"/groups.json\")"), "{job}");
    let mut arguments = file.arguments;
    arguments.sort();
    // What is written goes where the user is.
    let inputs = ["--config=/config.txt", "--link-events=folder/events.txt"];
    assert_eq!(arguments, [inputs[0], inputs[1], "--memo=records.whm", "--out=results"]);
}

#[test]
fn a_fabric_may_be_in_a_file() {
    let folder = folder("fabric");
    fs::write(folder.join("fabric.txt"), "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n").expect("a topology");
    let text = "[fabric]\nfile = 'fabric.txt'\n[[job]]\nkind = 'gpt'\ntp = 2\n\
                [variant.star.fabric]\nkind = 'star'\nhosts = 2\n[variant.none.fabric]\nfile = 'none.txt'\n";
    let path = folder.join("s.toml");
    fs::write(&path, text).expect("a scenario");
    let load = |variant| {
        let mut found = Diagnostics::of("s.toml");
        let file = ScenarioFile::load(path.to_str().expect("UTF-8"), variant, &run(), &mut found);
        file.unwrap_or_else(|| panic!("{found:?}"))
    };
    assert_eq!(described(&load(None))[0], "HPCC topology: 2 hosts, 1 switch, 2 links");
    assert_eq!(described(&load(Some("star")))[0], "HPCC topology: 2 hosts, 1 switch, 2 links");
    let found = lines(&loaded(&load(Some("none"))).found);
    assert!(found[0].contains("none.txt: error: cannot be read"), "{found:?}");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_fabric_in_a_file_has_no_other_keys() {
    let found = faults("[fabric]\nfile = 'f'\nhosts = 4\n");
    assert_eq!(found, ["s.toml:3: error: no such key; there are file (found `hosts`)"]);
    let found = faults("[fabric]\nfile = 3\n");
    assert_eq!(found, ["s.toml:2: error: expected the path of a topology file (found `file`)"]);
}

// The command line.

fn command_line(words: &str, path: &Path) -> Result<Cli, std::process::ExitCode> {
    let words = words.split_whitespace().map(|word| if word == "FILE" { path.into() } else { OsString::from(word) });
    Cli::from_arguments(words.collect())
}

#[test]
fn what_is_typed_replaces_what_the_file_says() {
    let folder = folder("typed");
    let path = folder.join("s.toml");
    fs::write(&path, WHOLE).expect("a scenario");
    let told = |words: &str| {
        let cli = command_line(words, &path).unwrap_or_else(|code| panic!("{words}: {code:?}"));
        let text = format!("{cli:?}");
        let words = ["seed: ", "accel: ", "cca: ", "out: "].map(|key| {
            let (_, value) = text.rsplit_once(key).unwrap_or_else(|| panic!("no {key}: {text}"));
            value.split([',', ' ']).next().unwrap_or_default().to_owned()
        });
        words.join(" ")
    };
    assert_eq!(told("wormhole run FILE"), "7 Exact Some(Hpcc) \"results\"");
    assert_eq!(told("wormhole run FILE --seed 9 --accel off"), "9 Off Some(Hpcc) \"results\"");
    assert_eq!(told("wormhole run --seed 9 --out=o FILE --cca dctcp"), "9 Exact Some(Dctcp) \"o\"");
    assert_eq!(told("wormhole run FILE --variant more"), "8 Exact Some(Hpcc) \"results\"");
    assert_eq!(told("wormhole verify FILE --variant more --seed 3"), "3 Exact Some(Hpcc) \"results\"");
    let _ = fs::remove_dir_all(folder);
}

#[test]
fn a_command_takes_the_options_that_it_has() {
    let folder = folder("taken");
    let path = folder.join("s.toml");
    fs::write(&path, format!("{WHOLE}[variant.trace.outputs]\nevents = 'events.csv'\n")).expect("a scenario");
    assert!(command_line("wormhole run FILE --variant trace", &path).is_ok());
    assert!(command_line("wormhole verify FILE --variant trace", &path).is_ok(), "it writes no trace");
    assert!(command_line("wormhole fcg FILE --at 5us --variant trace", &path).is_ok(), "it does not accelerate");
    assert!(command_line("wormhole run FILE --variant none", &path).is_err());
    let _ = fs::remove_dir_all(folder);
}
