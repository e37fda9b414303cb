//! Memory of a run. Alone in its file: a file of tests is a process, and tests side by side share its memory.

use wormhole::cpu::peak_rss_mb;
use wormhole_tests::{flawless, load_case, run};

/// Most memory for a star of 4001 hosts and one flow. A table of hosts by hosts takes more even at 16 bytes an entry.
const LIMIT_MB: f64 = 200.0;

/// Resident pages, from the kernel's own account.
fn resident_mb() -> f64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| {
        let resident = text.split_whitespace().nth(1)?;
        resident.parse::<f64>().ok()
    });
    pages.map_or(0.0, |pages| pages * 4_096.0 / 1e6)
}

#[test]
fn c30_star_4004_fits_in_little_memory() {
    let scenario = flawless(load_case("c30_star_4004"));
    let run = run(&scenario);
    run.assert_done(&scenario);
    let (resident, peak) = (resident_mb(), peak_rss_mb());
    println!("resident {resident:.0} MB, at most {peak:.0} MB");
    assert!(peak > 0.0 && peak < LIMIT_MB, "at most {peak} MB");
    assert!(resident < LIMIT_MB, "resident {resident} MB");
}
