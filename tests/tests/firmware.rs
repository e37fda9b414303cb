//! The microcontroller profile, run in QEMU: it fits, and gives what a host gives, to the last byte.

use defmt_decoder::{DecodeError, Table};
use object::{Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wormhole_firmware_scenario::{FLOWS, KERNEL_WORDS, LIMITS, Memory, Report, run};
use wormhole_kernel::accel::Tier;
use wormhole_memo_fmt::Reader;
use wormhole_tests::component::{is_there, starts};
use wormhole_tests::root;

const README: &str = include_str!("../../kernel/firmware/README.md");

/// Bytes, for 16 ports and 32 flows.
const FLASH_BUDGET: u64 = 128 << 10;
const RAM_BUDGET: u64 = 64 << 10;

/// The tiers the firmware runs, as it names them.
const RUNS: [(Tier, &str); 2] = [(Tier::Exact, "exact"), (Tier::Bounded, "bounded")];

struct Target {
    triple: &'static str,
    /// QEMU with the machine.
    machine: &'static [&'static str],
    /// The linker of a toolchain that brings none, and what it must be told.
    linker: &'static str,
    linker_flags: &'static str,
}

const CORTEX_M4F: Target = Target {
    triple: "thumbv7em-none-eabihf",
    machine: &["qemu-system-arm", "-machine", "mps2-an386"],
    linker: "arm-none-eabi-ld",
    linker_flags: "",
};
const RV32IMAC: Target = Target {
    triple: "riscv32imac-unknown-none-elf",
    machine: &["qemu-system-riscv32", "-machine", "virt", "-bios", "none"],
    linker: "riscv64-unknown-elf-ld",
    linker_flags: "-C link-arg=-melf32lriscv",
};

/// What can build for a target.
enum Toolchain {
    /// The one that builds this test, with the target added to it.
    Rustup,
    /// Debian's, which has the sources of the library instead of the targets.
    Debian,
}

const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust/library/core/Cargo.toml";

impl Toolchain {
    fn find(target: &Target) -> Option<Toolchain> {
        let libraries = Command::new("rustc").args(["--print", "target-libdir", "--target", target.triple]).output();
        let libraries = libraries.ok().and_then(|out| String::from_utf8(out.stdout).ok()).unwrap_or_default();
        let is_core = |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with("libcore");
        if fs::read_dir(libraries.trim()).is_ok_and(|entries| entries.flatten().any(is_core)) {
            return Some(Toolchain::Rustup);
        }
        let has_all = Path::new(DEBIAN_SOURCES).is_file() && starts(DEBIAN_CARGO, &["--version"]);
        (has_all && starts(target.linker, &["--version"])).then_some(Toolchain::Debian)
    }

    /// `cargo build`, but for what is built.
    fn cargo(&self, target: &Target) -> Command {
        match self {
            Toolchain::Rustup => Command::new(env!("CARGO")),
            Toolchain::Debian => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                let variable = |name| format!("CARGO_TARGET_{}_{name}", target.triple.to_uppercase().replace('-', "_"));
                cargo.env("PATH", "/usr/bin:/bin").env("RUSTC_BOOTSTRAP", "1").env("RUSTC", "/usr/bin/rustc");
                cargo.env(variable("LINKER"), target.linker).env(variable("RUSTFLAGS"), target.linker_flags);
                cargo.arg("-Zbuild-std=core");
                cargo
            }
        }
    }
}

/// Builds the firmware; gives its ELF file.
fn build(target: &Target, toolchain: &Toolchain) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firmware");
    let mut cargo = toolchain.cargo(target);
    cargo.args(["build", "--quiet", "--release", "--locked", "--target", target.triple, "--target-dir"]).arg(&folder);
    let status = cargo.current_dir(root().join("kernel/firmware")).status().expect("cargo runs");
    assert!(status.success(), "{}: {status}", target.triple);
    folder.join(target.triple).join("release/wormhole-firmware")
}

/// What the firmware has said.
struct Said {
    /// As text.
    text: String,
    /// By defmt.
    messages: Vec<String>,
    /// In memo files, one a run.
    memos: Vec<Vec<u8>>,
}

fn run_in_qemu(target: &Target, elf: &Path) -> Said {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("firmware-{}", target.triple));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder for memo files");
    // An instruction takes 8 ns there, whatever the load here.
    let quiet = ["-icount", "shift=3", "-nographic", "-monitor", "none", "-serial", "none"];
    let output = Command::new("timeout")
        .arg("120")
        .args(target.machine)
        .args(quiet)
        .args(["-semihosting-config", "enable=on,target=native", "-kernel"])
        .arg(elf)
        .current_dir(&folder)
        .output()
        .expect("QEMU runs");
    let text = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(0), "{}: {text}", target.triple);
    let memo = |(_, name)| fs::read(folder.join(format!("{name}.whm"))).expect("a memo file");
    Said { text, messages: decode(elf, &output.stdout), memos: RUNS.map(memo).into() }
}

fn decode(elf: &Path, frames: &[u8]) -> Vec<String> {
    let table =
        Table::parse(&fs::read(elf).expect("the firmware")).expect("a sound table").expect("a table of messages");
    let mut decoder = table.new_stream_decoder();
    decoder.received(frames);
    let mut messages = Vec::new();
    loop {
        match decoder.decode() {
            Ok(frame) => messages.push(frame.display_message().to_string()),
            Err(DecodeError::UnexpectedEof) => return messages,
            Err(DecodeError::Malformed) => panic!("damaged after {messages:?}"),
        }
    }
}

/// Text and memo of a run here, checked against one that simulates everything.
fn on_host(tier: Tier, name: &str) -> (String, Vec<u8>) {
    let (mut memory, mut plain_memory) = (Box::new(Memory::EMPTY), Box::new(Memory::EMPTY));
    let report = run(tier, &LIMITS, &mut memory).expect("it runs");
    let plain = run(Tier::Off, &LIMITS, &mut plain_memory).expect("it runs");
    let Report { done, memo, skipped, memoised, totals, .. } = &report;
    assert_eq!((done.len(), plain.done), (FLOWS, *done), "{name}");
    assert!(totals.ecn_marks > 0 && plain.skipped.events == 0);
    assert!(skipped.events > 0 && memoised.hits > 0, "{name}: {skipped:?} {memoised:?}");
    let mut records = Reader::new(memo).expect("a header");
    assert!(records.all(|record| record.is_ok()) && records.sound_len() == memo.len());
    (format!("tier {name}\n{report}"), memo.to_vec())
}

/// Bytes of flash and of static data.
fn sizes(elf: &Path) -> (u64, u64) {
    let bytes = fs::read(elf).expect("the firmware");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let is_loaded = |section: &object::Section<'_, '_>| {
        let SectionFlags::Elf { sh_flags } = section.flags() else { panic!("an ELF file has such flags") };
        sh_flags & u64::from(object::elf::SHF_ALLOC) != 0 && section.kind() != SectionKind::UninitializedData
    };
    let flash = elf.sections().filter(is_loaded).map(|section| section.size()).sum();
    let symbol = |name: &str| elf.symbol_by_name(name).unwrap_or_else(|| panic!("no {name}")).address();
    (flash, symbol("__euninit") - symbol("__sdata"))
}

/// The two numbers of the line `what: A of B ...`.
fn figures(text: &str, what: &str) -> (u64, u64) {
    let line = text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(": "));
    let line = line.unwrap_or_else(|| panic!("no `{what}` in {text}"));
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    let mut next = || numbers.next().unwrap_or_else(|| panic!("`{what}: {line}` has too few numbers"));
    (next(), next())
}

/// README's figures for a target are those of this build, within 5 %.
fn assert_readme_says(triple: &str, measured: &[u64]) {
    let row = README.lines().find(|line| line.starts_with(&format!("| `{triple}` |"))).expect("a row in README");
    let numbers = row.split('|').filter_map(|cell| cell.trim().replace(',', "").parse::<u64>().ok());
    let written: Vec<u64> = numbers.collect();
    assert_eq!(written.len(), measured.len(), "{row}");
    for (written, measured) in written.iter().zip(measured) {
        assert!(20 * written.abs_diff(*measured) <= *measured, "README: {row}\nmeasured: {measured} B");
    }
}

/// Builds and runs it, unless something is missing; gives its messages.
fn check(test: &str, target: &Target) {
    let toolchain = Toolchain::find(target);
    let what = format!("the target {} (or rust-web-src and {})", target.triple, target.linker);
    let qemu = target.machine[0];
    if !is_there(test, &what, toolchain.is_some()) || !is_there(test, qemu, starts(qemu, &["--version"])) {
        return;
    }
    let elf = build(target, &toolchain.expect("it is there"));
    let said = run_in_qemu(target, &elf);
    // First: static data that it has run into may be anything.
    let (stack, room) = figures(&said.text, "stack");
    assert!(stack < room, "the stack may have run into static data: {stack} B of {room}");

    let mut rest = said.text.as_str();
    for ((tier, name), memo) in RUNS.into_iter().zip(&said.memos) {
        let (text, bytes) = on_host(tier, name);
        let at = rest.find("tier ").unwrap_or_else(|| panic!("no more runs in {rest}"));
        assert!(rest[at..].starts_with(&text), "{}: {rest}\nhost: {text}", target.triple);
        assert!(*memo == bytes, "{}: {name}.whm is not the host's", target.triple);
        rest = &rest[at + text.len()..];
    }

    let count = |what: &str| said.messages.iter().filter(|message| message.contains(what)).count();
    let logged = ["tier ", "starts", "ends", "parks until", "wakes", "end of an episode"].map(count);
    assert_eq!(logged[..3], [RUNS.len(), RUNS.len() * FLOWS, RUNS.len() * FLOWS], "{:?}", said.messages);
    assert!(logged[3..].iter().all(|count| *count > 0), "{logged:?}");

    // No more than it needs is there for the kernel.
    let words = KERNEL_WORDS as u64;
    assert_eq!(figures(&said.text, "kernel"), (words, words));
    let (flash, data) = sizes(&elf);
    println!("{qemu}: {} messages; flash {flash} B; RAM {data} B and {stack} B of stack", said.messages.len());
    assert!(flash < FLASH_BUDGET && data + stack < RAM_BUDGET, "flash {flash} B, RAM {} B", data + stack);
    assert_readme_says(target.triple, &[flash, data, stack, data + stack]);
}

/// Completion times by flow.
fn fcts(report: &Report<'_>) -> [u64; FLOWS] {
    let mut fcts = [0; FLOWS];
    report.done.iter().for_each(|done| fcts[done.flow.index()] = done.fct.0);
    fcts
}

#[test]
fn little_memory_costs_time_and_changes_nothing() {
    let (mut memory, mut skipping) = (Box::new(Memory::EMPTY), 0);
    let plain = fcts(&run(Tier::Off, &LIMITS, &mut memory).expect("it runs"));
    for (tier, name) in RUNS {
        for outputs in 1..=LIMITS.outputs {
            for snapshot_words in (8..=LIMITS.snapshot_words).step_by(8) {
                let limits = wormhole_kernel::Limits { outputs, snapshot_words, ..LIMITS };
                let report = run(tier, &limits, &mut memory).unwrap_or_else(|e| panic!("{name}, {limits:?}: {e}"));
                skipping += usize::from(report.skipped.events > 0);
                for (flow, (a, b)) in fcts(&report).into_iter().zip(plain).enumerate() {
                    // The bounded tier may find steady states where there is no room to see that they repeat.
                    let bound = if tier == Tier::Bounded { b / 100 } else { 0 };
                    assert!(a.abs_diff(b) <= bound, "{name}, {limits:?}: flow {flow} takes {a} ps, not {b}");
                }
            }
        }
    }
    assert!(skipping > 100, "{skipping} runs skip anything");
}

#[test]
fn cortex_m4f_equals_the_host() {
    check("cortex_m4f_equals_the_host", &CORTEX_M4F);
}

#[test]
fn rv32imac_equals_the_host() {
    check("rv32imac_equals_the_host", &RV32IMAC);
}
