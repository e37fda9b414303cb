//! Runs of the real ns-3, repeated in profile `ns3`: every completion to the nanosecond, every PFC frame.

use std::fs;
use std::path::{Path, PathBuf};
use wormhole::memo::{Memo, MemoOptions};
use wormhole::reference::{Comparison, NS3, Verdict, compare, compare_with, find_runs};
use wormhole::scenario::Options;
use wormhole::simulate::{FlowRecord, Outcome, simulate, simulate_memoised};
use wormhole_kernel::accel::{Acceleration, Tier};
use wormhole_tests::data;

/// Folder of the long runs; they are not part of the repository.
const LONG: &str = "WORMHOLE_LONG_REFERENCE";

/// As [`NS3`], but what repeats is skipped.
const ACCELERATED: Options = Options { acceleration: Acceleration { tier: Tier::Exact, ..NS3.acceleration }, ..NS3 };

/// Compares all runs: plain, with exact acceleration, and twice with a memo besides, which the second of these has from
/// the first. Prints a line for each, and fails with the lines of those that differ.
fn all_equal(runs: &[PathBuf]) {
    let comparisons = runs.iter().flat_map(|run| {
        let mut order = Vec::new();
        let plain = compare_with(run, &NS3, &mut |scenario| {
            let outcome = simulate(scenario, &mut ())?;
            order = outcome.flows.in_memory().iter().map(|record| record.completion.token).collect();
            Ok(outcome)
        });
        let [first, second] = compare_memoised(run, &order);
        [plain, compare(run, &ACCELERATED), first, second]
    });
    let mut bad = Vec::new();
    for comparison in comparisons {
        println!("{comparison}");
        if comparison.verdict != Verdict::Equal {
            bad.push(comparison.to_string());
        }
    }
    assert!(bad.is_empty(), "{} of {} runs are not equal:\n{}", bad.len(), 4 * runs.len(), bad.join("\n"));
}

/// Puts flows that end in one instant into this order of tokens: records tell of instants.
fn sort_instants(outcome: &mut Outcome, order: &[u64]) {
    let mut ranks = vec![0; order.len()];
    order.iter().enumerate().for_each(|(rank, token)| ranks[*token as usize] = rank);
    outcome.flows.in_memory_mut().sort_by_key(|FlowRecord { completion, .. }| {
        (completion.start + completion.fct, ranks[completion.token as usize])
    });
}

/// A run with a new memo file, and again with what is in it by then.
fn compare_memoised(run: &Path, order: &[u64]) -> [Comparison; 2] {
    let name = run.file_name().expect("a folder").to_string_lossy();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.whm", std::process::id()));
    let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 22 };
    let comparisons = ["new memo", "old memo"].map(|which| {
        let (memo, found) = Memo::open(options, Some(&file), Tier::Exact);
        let mut memo = memo.unwrap_or_else(|| panic!("{found:?}"));
        let mut comparison = compare_with(run, &ACCELERATED, &mut |scenario| {
            let mut outcome = simulate_memoised(scenario, &mut memo, &mut ())?;
            sort_instants(&mut outcome, order);
            Ok(outcome)
        });
        let found = memo.finish().expect("the file is written");
        assert!(found.all().is_empty(), "{name}: {found:?}");
        comparison.name += &format!(", {which}");
        comparison
    });
    // What is left behind lies in cargo's own folder and does no harm.
    let _ = fs::remove_file(file);
    comparisons
}

/// Compares the runs whose names begin with `letter`; a lost data file must not go unnoticed, so their number is
/// given, too.
fn family(letter: char, size: usize) {
    let mut runs = find_runs(&data("reference")).unwrap();
    runs.retain(|run| run.file_name().unwrap().to_string_lossy().starts_with(letter));
    assert_eq!(runs.len(), size, "runs of family {letter}");
    all_equal(&runs);
}

#[test]
fn family_a_one_flow_and_two() {
    family('a', 15);
}

#[test]
fn family_b_incast() {
    family('b', 4);
}

#[test]
fn family_c_fat_tree_16() {
    family('c', 11);
}

#[test]
fn family_d_fat_tree_128() {
    family('d', 7);
}

#[test]
fn family_e_pfc() {
    family('e', 7);
}

#[test]
fn family_f_loss() {
    family('f', 3);
}

#[test]
fn family_g_mixed() {
    family('g', 3);
}

#[test]
fn family_h_simai() {
    family('h', 2);
}

#[test]
#[ignore = "takes long; set WORMHOLE_LONG_REFERENCE to the folder of the long runs"]
fn long_runs() {
    let Some(folder) = std::env::var_os(LONG) else {
        println!("SKIPPED: {LONG} is not set; it names the folder of the long reference runs");
        return;
    };
    let runs = find_runs(Path::new(&folder)).unwrap_or_else(|error| panic!("{LONG} = {folder:?}: {error}"));
    assert!(!runs.is_empty(), "no reference runs in {folder:?}");
    all_equal(&runs);
}

/// A copy of a reference run that a test may spoil; the folder is removed at the end.
struct Copy(PathBuf);

impl Copy {
    fn of(run: &str, name: &str) -> Copy {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for file in fs::read_dir(data("reference").join(run)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        Copy(folder)
    }

    fn edit(&self, file: &str, change: impl Fn(&str) -> String) {
        let path = self.0.join(file);
        let before = fs::read_to_string(&path).unwrap();
        let after = change(&before);
        assert_ne!(before, after, "the edit must change {file}");
        fs::write(path, after).unwrap();
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What is left behind lies in cargo's own folder and does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Adds `by` to a column of the first row.
fn add_to_first_row(text: &str, column: usize, by: u64) -> String {
    let (first, rest) = text.split_once('\n').unwrap();
    let mut fields: Vec<String> = first.split_whitespace().map(str::to_owned).collect();
    fields[column] = (fields[column].parse::<u64>().unwrap() + by).to_string();
    format!("{}\n{rest}", fields.join(" "))
}

#[test]
fn one_nanosecond_makes_a_difference() {
    let run = Copy::of("a1_dumbbell_sim_dcqcn", "wrong-fct");
    assert_eq!(compare(&run.0, &NS3).verdict, Verdict::Equal, "the copy itself");
    run.edit("fct.txt", |text| add_to_first_row(text, 6, 1));
    let verdict = compare(&run.0, &NS3).verdict;
    assert!(matches!(&verdict, Verdict::Differs(how) if how.starts_with("row 1:")), "{verdict:?}");
}

#[test]
fn a_missing_flow_makes_a_difference() {
    let run = Copy::of("a1_dumbbell_sim_dcqcn", "short-fct");
    run.edit("fct.txt", |text| text.split_inclusive('\n').take(1).collect());
    let verdict = compare(&run.0, &NS3).verdict;
    assert!(matches!(&verdict, Verdict::Differs(how) if how.contains("finished 1 flows")), "{verdict:?}");
}

#[test]
fn a_pause_at_another_time_makes_a_difference() {
    let run = Copy::of("e1_pfc_incast16_dcqcn", "wrong-pfc");
    run.edit("pfc.txt", |text| add_to_first_row(text, 0, 1));
    assert_eq!(compare(&run.0, &NS3).verdict, Verdict::Differs("pfc.txt, line 1".into()));
}
