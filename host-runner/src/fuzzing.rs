//! What fuzz targets call of this crate's inside (`tests/fuzz`). It is there only in their builds.

use crate::cli::{run_command, scenario_arguments};
use crate::cosim::frame;
pub use crate::cosim::simbricks::fuzzing::{simbricks_intro, simbricks_ring};
use crate::input::diagnostics::Diagnostics;
use crate::jobs::JobKind;
use crate::load::{Source, load_files};
use crate::memo::records::{Records, file_bytes, latest};
use crate::scenario::Scenario;
use crate::scenario_file::{ScenarioFile, ScenarioText, explain, variants};
use crate::sweep::plan::PlanText;
use std::path::PathBuf;

/// Variants of a scenario that are looked at.
const MOST_VARIANTS: usize = 4;

/// Points of a sweep that are looked at.
const MOST_POINTS: usize = 1_000;

/// Reads the text of a scenario file, and its variants. Those that name no other file are loaded; gives the last.
pub fn scenario(text: &str, found: &mut Diagnostics) -> Option<Scenario> {
    let source = ScenarioText { name: "scenario".into(), text: text.into(), folder: PathBuf::new() };
    let names = variants(text);
    let all = std::iter::once(None).chain(names.iter().take(MOST_VARIANTS).map(|name| Some(name.as_str())));
    all.filter_map(|variant| {
        let file = ScenarioFile::parse(&source, variant, None, &run_command(), found)?;
        let is_alone = !matches!(file.fabric, Some(Source::File(_)))
            && !file.jobs.iter().any(|job| matches!(job.kind, JobKind::File(_)))
            && !file.arguments.iter().any(|argument| {
                ["--flows", "--config", "--link-events", "--plugin", "--memo="].iter().any(|o| argument.starts_with(o))
            });
        let mut fault = |error| found.error(0, "", explain(&error));
        let args = scenario_arguments(file, &[]).map_err(&mut fault).ok()?;
        if !is_alone {
            return None;
        }
        let loaded = load_files(&args.input.files(), &args.options());
        found.extend(loaded.found);
        loaded.scenario
    })
    .last()
}

/// Reads the file of a sweep, and loads its first point. False if the file is refused.
///
/// # Panics
/// If a point lacks a key.
pub fn sweep(text: &str, found: &mut Diagnostics) -> bool {
    let plan = PlanText::of("sweep", text);
    let Some(plan) = plan.plan(found) else { return false };
    assert!(!plan.points.is_empty() && plan.batch > 0);
    for point in (0..plan.points.len()).take(MOST_POINTS) {
        assert!(plan.values(point).keys().all(|key| plan.keys.contains(key)));
    }
    let (loaded, faults) = plan.load(0, &[]);
    assert_ne!(loaded.is_some(), faults.has_errors(), "{:?}", faults.all());
    true
}

/// Reads a memo file as `wormhole memo` does.
///
/// # Panics
/// If what is kept of it is not a sound file of the same records.
pub fn memo(bytes: &[u8]) {
    let Ok(mut records) = Records::of(bytes) else { return };
    let (header, all) = (records.header(), records.by_ref().collect::<Vec<_>>());
    assert!(records.sound_len() <= bytes.len());
    assert_eq!(records.fault().is_none(), records.sound_len() == bytes.len());
    let kept = latest(&all, usize::MAX);
    let file = file_bytes(&header, &kept);
    let mut again = Records::of(&file).expect("a sound header");
    let same: Vec<_> = again.by_ref().collect();
    assert_eq!((again.fault(), again.sound_len()), (None, file.len()));
    assert_eq!(latest(&same, usize::MAX), kept, "each key once, and all of them");
}

/// Looks at a frame from outside, and marks it.
///
/// # Panics
/// If the mark changes what it must not.
pub fn frame(bytes: &[u8]) {
    let is_frame = frame::addresses(bytes).is_some();
    assert_eq!(is_frame, bytes.len() >= frame::HEADER);
    assert!(frame::wire_bytes(bytes) > bytes.len());
    let mut marked = bytes.to_vec();
    frame::mark_congestion(&mut marked);
    let changed: Vec<usize> = (0..bytes.len()).filter(|&at| marked[at] != bytes[at]).collect();
    assert!(changed.iter().all(|at| [15, 24, 25].contains(at)), "{changed:?}");
    assert_eq!(frame::ports(&marked), frame::ports(bytes));
    // A sum of one's complement does not tell 0 from all ones.
    let sum = |frame: &[u8]| {
        let words = frame[frame::HEADER..].chunks_exact(2).take(10);
        words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() % 0xffff
    };
    if is_frame && bytes[12..14] == [0x08, 0x00] {
        assert_eq!(sum(&marked), sum(bytes), "the checksum follows the mark");
    }
    let once = marked.clone();
    frame::mark_congestion(&mut marked);
    assert_eq!(marked, once, "who is marked stays as he is");
    if let Ok(address) = String::from_utf8_lossy(bytes).parse::<frame::Mac>() {
        assert_eq!(address.to_string().parse(), Ok(address));
    }
}
