//! README.md and the manual tell the truth: their commands run, the example compiles and gives what it
//! says, links lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use wormhole_tests::{README, manual, manual_names, root, wormhole_binary};

/// A fenced block, and the last line of text before it.
struct Block<'t> {
    language: &'t str,
    before: &'t str,
    lines: Vec<&'t str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let (mut blocks, mut before, mut lines) = (Vec::new(), "", text.lines());
    while let Some(line) = lines.next() {
        if let Some(language) = line.strip_prefix("```") {
            let inside = lines.by_ref().take_while(|l| *l != "```").collect();
            blocks.push(Block { language, before, lines: inside });
        } else if !line.is_empty() {
            before = line;
        }
    }
    blocks
}

/// An empty folder for this test alone.
fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for outputs");
    folder
}

/// Runs the arguments in `folder`; paths below `tests/` are the repository's.
///
/// Of the reference runs only a short one is made here: `reference.rs` makes them all.
fn run(binary: &Path, arguments: &str, folder: &Path) -> Output {
    let place = |word: &str| match word {
        "tests/data/reference" => root().join(word).join("a0_single_hpcc"),
        _ if word.starts_with("tests/") => root().join(word),
        _ => PathBuf::from(word),
    };
    let words = arguments.split_whitespace().map(place);
    Command::new(binary).args(words).current_dir(folder).output().expect("wormhole runs")
}

fn contains_all(text: &str, words: &[&str], command: &str) {
    for word in words {
        assert!(text.contains(word), "`{command}` does not say `{word}`:\n{text}");
    }
}

/// Checks one command's results.
fn check(arguments: &str, output: &Output, folder: &Path) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "`{arguments}`:\n{text}\n{errors}");
    match arguments.split_whitespace().next() {
        Some("demo") => contains_all(&text, &["20 flows", "FCT us", "slowdown", "20 of 20"], arguments),
        Some("reference") => {
            contains_all(&text, &["packet-hops", "equal", "runs equal ns-3"], arguments);
            let runs = text.lines().count() - 1;
            assert!(text.ends_with(&format!("{runs} of {runs} runs equal ns-3\n")) && runs > 0, "{text}");
        }
        Some("scenarios") => contains_all(&text, &["gpt-13b-128", "moe-32x22b-1024", "variants: "], arguments),
        Some("topo") => contains_all(&errors, &["16 ", "bisection "], arguments),
        Some("workload") => contains_all(&text, &["8 ep of 8", "AllToAll"], arguments),
        Some("run") if arguments.ends_with("--out exchange") => {
            contains_all(&text, &["exchange: iteration ", "another: iteration ", "results are in exchange"], arguments);
        }
        Some("run") if !arguments.contains("--flows") => {
            contains_all(&text, &["iteration ", "all_reduce", "busbw", "results are in "], arguments);
            let out = arguments.rsplit(' ').next().expect("--out FOLDER comes last");
            check_job_outputs(&folder.join(out));
        }
        Some("verify") if arguments.contains(".toml") => {
            contains_all(&text, &["compared: ", "iteration, error", "checked/verify.json"], arguments);
        }
        Some("run") => {
            contains_all(&text, &["2 of 2", "results are in out"], arguments);
            check_outputs(&folder.join("out"));
        }
        Some("verify") => {
            contains_all(&text, &["2 of 2 flows", "event ratio", "3 runs", "checked/verify.json"], arguments);
        }
        Some("sweep") => check_sweep(arguments, &text, folder),
        Some("memo") => check_memo(arguments, &text),
        Some("fcg") => assert!(manual().iter().any(|(_, page)| page.contains(&*text)), "`{arguments}`:\n{text}"),
        Some("check") => contains_all(&text, &["it can be run"], arguments),
        other => panic!("do not know how to check {other:?}"),
    }
}

/// Checks the tables of a sweep, or of a part of one, or of parts that are joined.
fn check_sweep(arguments: &str, text: &str, folder: &Path) {
    let (out, points) = match arguments.split_whitespace().collect::<Vec<_>>()[..] {
        ["sweep", "join", out, ..] => (out, 7),
        ["sweep", _, "--shard", "1/2", "--out", out] => (out, 4),
        ["sweep", _, "--shard", "2/2", "--out", out] => (out, 3),
        [.., "--out", out] => (out, 7),
        _ => panic!("do not know how to check {arguments}"),
    };
    contains_all(text, &[&format!("{points} points"), &format!("the tables are in {out}")], arguments);
    let read = |name: &str| fs::read_to_string(folder.join(out).join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    contains_all(&read("sweep.csv"), &["point,models.cca,fabric.nic-rate,variant,config.BUFFER_SIZE,ending"], out);
    let rows = ["sweep.csv", "costs.csv"].map(|name| read(name).lines().count() - 1);
    assert_eq!(rows, [points, points], "`{arguments}`");
    assert!(!read("sweep.csv").contains("refused"), "{}", read("sweep.csv"));
    assert!(folder.join(out).join("sweep.parquet").exists(), "`{arguments}`");
}

/// Checks what a command about memo files says.
fn check_memo(arguments: &str, text: &str) {
    let words: &[&str] = match arguments.split_whitespace().nth(1) {
        Some("info") => &["records.whm", "models", "distinct keys"],
        Some("verify") => &["records.whm: ", "all sound"],
        Some("merge") => &["all.whm: ", " bytes"],
        Some("gc") => &["all.whm: ", "bytes before"],
        other => panic!("do not know how to check memo {other:?}"),
    };
    contains_all(text, words, arguments);
}

/// Every file and every key that the manual lists is there, and no others.
fn check_outputs(folder: &Path) {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder of outputs")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, listed("| file | content |"));
    contains_all(&read("fct.csv"), &["fct_ns", "ideal_ns", "slowdown"], "fct.csv");
    assert_eq!((read("fct.csv").lines().count(), read("fct.txt").lines().count()), (3, 2));
    assert_eq!(read("links.csv").lines().count(), 1 + 2 * 3, "a heading, and a row per link and direction");
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    let mut keys: Vec<&str> = summary.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort();
    assert_eq!(keys, listed("| keys of `summary.json` | meaning |"));
    assert_eq!((&summary["ending"], &summary["flows_finished"]), (&"done".into(), &2.into()));
}

/// A run with jobs leaves their files, too.
fn check_job_outputs(folder: &Path) {
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    contains_all(&read("collectives.csv"), &["job,group,ranks", "algbw,busbw", "all_reduce"], "collectives.csv");
    contains_all(&read("ranks.csv"), &["computing_ns,overlapped_ns,exposed_ns,idle_ns"], "ranks.csv");
    let summary: serde_json::Value = serde_json::from_str(&read("summary.json")).expect("JSON");
    assert!(summary["jobs"][0]["iteration_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{summary}");
}

/// The names in a table's first column, sorted.
fn listed(heading: &str) -> Vec<String> {
    let mut names = manual_names(heading);
    names.sort();
    names
}

/// Writes the files that a page shows: blocks under a line like "`topology.txt`: nodes, switches, links".
fn write_inputs(blocks: &[Block<'_>], folder: &Path) {
    for block in blocks.iter().filter(|b| b.language == "text") {
        let name = block.before.strip_prefix('`').and_then(|b| b.split_once('`')).map(|(name, _)| name);
        if let Some(name) = name.filter(|name| name.contains('.')) {
            fs::write(folder.join(name), block.lines.join("\n") + "\n").expect("an input file");
        }
    }
}

/// What the commands of a page need is on that page, or in `files.md`.
#[test]
fn every_command_works() {
    let binary = wormhole_binary();
    let pages = manual();
    let files = pages.iter().find(|(name, _)| name == "files.md").map(|(_, text)| blocks(text)).expect("files.md");
    let mut commands = 0;
    for (page, text) in &pages {
        let folder = empty_folder(&format!("manual/{page}"));
        write_inputs(&files, &folder);
        let blocks = blocks(text);
        write_inputs(&blocks, &folder);
        for line in blocks.iter().filter(|b| b.language == "sh").flat_map(|b| &b.lines) {
            let arguments = line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("wormhole "));
            if let Some(arguments) = arguments {
                check(arguments, &run(&binary, arguments, &folder), &folder);
                commands += 1;
            } else {
                let known = ["cargo test ", "cargo bench "].iter().any(|start| line.starts_with(start));
                assert!(known, "{page} has a command that no test checks: {line}");
            }
        }
    }
    println!("{commands} commands of the manual run");
    assert!(commands >= 30, "only {commands} commands");
}

/// The examples that `wormhole help COMMAND` ends with.
#[test]
fn examples_of_the_help_work() {
    let binary = wormhole_binary();
    let folder = empty_folder("help");
    let pages = manual();
    let files = pages.iter().find(|(name, _)| name == "files.md").map(|(_, text)| blocks(text)).expect("files.md");
    write_inputs(&files, &folder);
    let said = |arguments: &str| {
        let output = run(&binary, arguments, &folder);
        assert!(output.status.success(), "`{arguments}`: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let help = said("help");
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let mut examples = 0;
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let help = said(&format!("help {command}"));
        for arguments in help.lines().filter_map(|line| line.strip_prefix("  wormhole ")) {
            assert!(!said(arguments).is_empty(), "`{arguments}` says nothing");
            examples += 1;
        }
    }
    println!("{examples} examples of the help run");
    assert!(examples >= 8, "only {examples} examples");
}

/// Every page of the book is in its summary, and every entry of the summary is a page.
#[test]
fn the_book_has_the_pages_that_it_lists() {
    let pages = manual();
    let summary =
        pages.iter().find(|(name, _)| name == "SUMMARY.md").map(|(_, text)| text.as_str()).expect("a summary");
    let mut listed: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    listed.sort();
    let others = ["README.md", "SUMMARY.md"];
    let there: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).filter(|name| !others.contains(name)).collect();
    assert_eq!(listed, there);
}

/// `cargo run` finds the binary from the root: there is no other one in the workspace.
#[test]
fn cargo_run_needs_no_package_name() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--locked"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let targets = packages.iter().flat_map(|p| p["targets"].as_array().expect("targets"));
    let binaries: Vec<&str> = targets
        .filter(|t| t["kind"].as_array().is_some_and(|kinds| kinds.contains(&"bin".into())))
        .filter_map(|t| t["name"].as_str())
        .collect();
    assert_eq!(binaries, ["wormhole"]);
}

#[test]
fn links_lead_somewhere() {
    let readmes = ["", "kernel/", "models/", "host-runner/", "memo-fmt/", "benches/"];
    let readmes = readmes.map(|folder| format!("{folder}README.md"));
    let pages = manual().into_iter().map(|(name, _)| name).filter(|name| name != "README.md");
    for file in readmes.into_iter().chain(pages.map(|page| format!("host-runner/book/src/{page}"))) {
        let path = root().join(&file);
        let folder = path.parent().expect("a folder");
        let text = fs::read_to_string(&path).expect(&file);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            // What rustdoc resolves is rustdoc's to check.
            if link.contains("://") || link.contains("::") {
                continue;
            }
            let (target, section) = link.split_once('#').unwrap_or((link, ""));
            let target = if target.is_empty() { path.clone() } else { folder.join(target) };
            assert!(target.exists(), "{file}: {link} is not there");
            let has_section = || anchors(&fs::read_to_string(&target).expect(link)).any(|anchor| anchor == section);
            assert!(section.is_empty() || has_section(), "{file}: {link} is not there");
        }
    }
}

/// What links call the sections of a document.
fn anchors(text: &str) -> impl Iterator<Item = String> + '_ {
    let headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || [' ', '-', '_'].contains(c);
        words.chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// README shows the body of this function, word for word.
fn example() -> Result<Vec<u64>, Box<dyn std::error::Error>> {
    // README: begin
    use wormhole_kernel::*;
    use wormhole_models::{cca::*, profile::Ps, router::*};

    // Hosts 0, 1 and 2 around switch 3.
    let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Host, NodeKind::Switch];
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1, 2].map(|host| LinkSpec { a: NodeId(host), b: NodeId(3), rate, delay, loss: 0 });

    let ccas = [AnyCca::Hpcc(Hpcc::new(HpccConfig::default()))];
    let models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let limits = Limits::default();
    let mut memory = vec![0; Kernel::<Ps<Ecmp>>::words(FabricSize::of(&nodes, &links), &limits, &models)];
    let mut kernel = Kernel::new(&mut memory, &nodes, &links, models, &limits, ())?;
    for src in [0, 1] {
        kernel.add_flow(&FlowSpec::new(NodeId(src), NodeId(2), 1_000_000, SimTime::ZERO))?;
    }
    let mut fcts = Vec::new();
    while let Some(now) = kernel.next_event_time() {
        kernel.run_until(now + Span::from_us(50))?;
        while let Some(done) = kernel.poll_completion() {
            fcts.push(done.fct.as_ns());
        }
    }
    // README: end
    Ok(fcts)
}

#[test]
fn example_runs_and_is_the_one_shown() {
    // 2 MB through one port at 100 Gb/s, with headers: 174 us; HPCC aims at 95 %.
    let fcts = example().expect("the example runs");
    assert!(fcts.iter().all(|fct| (174_000..210_000).contains(fct)), "{fcts:?}");

    let here: Vec<&str> = include_str!("readme.rs")
        .lines()
        .skip_while(|l| *l != "    // README: begin")
        .skip(1)
        .take_while(|l| *l != "    // README: end")
        .map(|l| l.strip_prefix("    ").unwrap_or(l))
        .collect();
    let blocks = blocks(README);
    let shown: Vec<&Block<'_>> = blocks.iter().filter(|b| b.language == "rust").collect();
    assert_eq!(shown.len(), 1, "blocks of Rust in README.md");
    assert!(shown[0].lines == here, "README.md shall show this:\n\n{}", here.join("\n"));
}
