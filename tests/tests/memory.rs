//! Memory of a run. Alone in its file: a file of tests is a process, and tests side by side share its memory.

use std::fs::{self, File};
use std::path::Path;
use wormhole::cpu::peak_rss_mb;
use wormhole::simulate::{Ending, Watch, simulate_memoised};
use wormhole::workload::collective::{AllReduce, AllToAll, CollectiveOptions};
use wormhole::workload::engine::{Engine, PlacedJob};
use wormhole::workload::training::{ModelShape, Training};
use wormhole_kernel::{FabricSize, Kernel, Limits, NodeId, SimTime};
use wormhole_models::cca::{AnyCca, Dcqcn, DcqcnConfig, Hpcc, HpccConfig};
use wormhole_models::ecn::Ns3Coins;
use wormhole_models::profile::{Ns3, Ps};
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_tests::counting::{Allocated, Counting, allocated};
use wormhole_tests::{empty_folder, flawless, load_case, root, run};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Most memory for a star of 4001 hosts and one flow. A table of hosts by hosts takes more even at 16 bytes an entry.
const LIMIT_MB: f64 = 200.0;

/// Resident pages, from the kernel's own account.
fn resident_mb() -> f64 {
    let pages = fs::read_to_string("/proc/self/statm").ok().and_then(|text| {
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

/// So many things more than as many.
const MANY: usize = 1 << 12;

/// [`Kernel::words`] of some models.
type Words<'w> = &'w dyn Fn(FabricSize, &Limits) -> usize;

/// Bytes of a kernel for one thing more, where `more` adds that many: without and with acceleration.
fn bytes(words: Words<'_>, more: impl Fn(&mut FabricSize, &mut Limits, usize)) -> [usize; 2] {
    [false, true].map(|accelerated| {
        let words = |count| {
            let mut size = FabricSize { nodes: 1, links: MANY };
            let snapshot_words = usize::from(accelerated);
            let mut limits =
                Limits { queued_flows: 0, active_flows: MANY, packets: 0, outputs: 0, inputs: 0, snapshot_words };
            more(&mut size, &mut limits, count);
            words(size, &limits)
        };
        // Tables are rounded to cache lines, all of them together.
        (8 * (words(2 * MANY) - words(MANY)) + MANY / 2) / MANY
    })
}

/// A row of a table.
fn row(what: &str, [plain, accelerated]: [usize; 2]) -> String {
    format!("| {what} | {plain} | {accelerated} |")
}

/// What a frame takes, as a row of this name.
fn frame(what: &str, words: Words<'_>) -> String {
    row(what, bytes(words, |_, limits, n| limits.packets = n))
}

/// The rows of a table, of models without telemetry.
fn table(words: Words<'_>) -> Vec<String> {
    let add = |what: &str, more: fn(&mut FabricSize, &mut Limits, usize)| row(what, bytes(words, more));
    vec![
        add("port, with its half of a link", |size, _, n| size.links = n / 2),
        add("node", |size, _, n| size.nodes = n),
        add("flow under way", |_, limits, n| limits.active_flows = n),
        add("flow that waits for its start", |_, limits, n| limits.queued_flows = n),
        frame("frame", words),
        add("output that nobody has asked for yet", |_, limits, n| limits.outputs = n),
        add("input that waits for its time", |_, limits, n| limits.inputs = n),
    ]
}

/// Asserts that a text has all rows.
fn assert_rows(path: &str, rows: &[String]) {
    let readme = fs::read_to_string(root().join(path)).expect("a text");
    println!("{path}\n{}", rows.join("\n"));
    for row in rows {
        assert!(readme.contains(row), "{path} lacks:\n{row}");
    }
}

#[test]
fn a_kernel_takes_what_the_table_says() {
    let dcqcn = [AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default()))];
    let hpcc = [AnyCca::Hpcc(Hpcc::new(HpccConfig::default()))];
    let router = || Ecmp::new(EcmpHash::Salted(1));
    let ps = |ccas| {
        let models = Ps::models(ccas, router(), 1);
        move |size, limits: &Limits| Kernel::<Ps<'_, Ecmp>>::words(size, limits, &models)
    };
    let ns3 = Ns3::models(&hpcc, router(), Ns3Coins::after_setup(1, 0));
    let mut rows = table(&ps(&dcqcn));
    rows.push(frame("frame with telemetry", &ps(&hpcc)));
    rows.push(frame("frame with telemetry, profile `ns3`", &|size, limits| {
        Kernel::<Ns3<_>>::words(size, limits, &ns3)
    }));
    assert_rows("benches/README.md", &rows);
}

#[test]
fn a_kernel_of_a_microcontroller_takes_what_its_table_says() {
    assert_rows("kernel/firmware/README.md", &table(&wormhole_firmware_scenario::words_for));
}

/// What the ranks of a training job take that has begun, in bytes a rank.
fn bytes_a_rank() -> f64 {
    let live = |dp: u32| {
        let shape = ModelShape::find("1t").expect("a model");
        let training = Training { tp: 8, pp: 64, dp, micro_batches: 64, ..Training::new(shape) };
        let hosts = (0..training.ranks()).map(NodeId).collect();
        let (all_reduce, all_to_all) = (AllReduce::Ring, AllToAll::Direct);
        let collectives = CollectiveOptions { all_reduce, all_to_all, channels: 1, chunk_bytes: u64::MAX };
        let (_engine, Allocated { live, .. }) = allocated(|| {
            let job = PlacedJob { name: "job".into(), job: training.job(), hosts, start: SimTime::ZERO, collectives };
            let mut engine = Engine::new(std::slice::from_ref(&job));
            engine.advance(SimTime::ZERO, &[]).expect("ranks agree");
            (job, engine)
        });
        (live as f64, f64::from(training.ranks()))
    };
    let ((few, few_ranks), (many, many_ranks)) = (live(2), live(4));
    (many - few) / (many_ranks - few_ranks)
}

/// The figure in benches/README.md that follows these words.
fn stated(words: &str) -> f64 {
    let readme = fs::read_to_string(root().join("benches/README.md")).expect("a text");
    let (_, after) = readme.split_once(words).unwrap_or_else(|| panic!("benches/README.md lacks `{words}`"));
    let figure = after.split_whitespace().next().unwrap_or_default().replace(',', "");
    figure.parse().unwrap_or_else(|_| panic!("`{words}`: `{figure}`"))
}

#[test]
fn a_rank_takes_what_is_stated() {
    let (measured, stated) = (bytes_a_rank(), stated("A rank of a training job takes at most "));
    println!("{measured:.0} bytes a rank");
    assert!(measured <= stated && 4.0 * measured > stated, "{measured} bytes, stated are {stated}");
}

/// Gives a run a file for its flows.
struct Filed(Option<File>);

impl Watch for Filed {
    fn flows_file(&mut self) -> Option<File> {
        self.0.take()
    }
}

/// Memory does not grow with the number of flows that have ended, if there is a file for them.
#[test]
fn flows_that_have_ended_take_no_memory() {
    let folder = empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended-flows"));
    let peak = |iterations: u32, filed: bool| {
        let text = format!(
            "[fabric]\nkind = 'rail'\nservers = 8\n[[job]]\nkind = 'gpt'\nmodel = '7b'\ntp = 8\npp = 4\ndp = 2\n\
             iterations = {iterations}\n[models]\ncca = 'dcqcn'\n"
        );
        let path = folder.join("job.toml");
        fs::write(&path, text).expect("a file");
        let (scenario, mut memo) = wormhole::cli::open_run(&[path.to_str().expect("UTF-8")]).expect("a scenario");
        let new = |name| File::options().read(true).write(true).create_new(true).open(folder.join(name));
        let file = filed.then(|| new(format!("flows-{iterations}")).expect("a file"));
        let (outcome, Allocated { peak, .. }) =
            allocated(|| simulate_memoised(&scenario, &mut memo, &mut Filed(file)).expect("it can be run"));
        assert_eq!(outcome.ending, Ending::Done);
        (peak as f64, outcome.flows.len() as f64)
    };
    let growth = |filed| {
        let ((few, few_flows), (many, many_flows)) = (peak(40, filed), peak(100, filed));
        (many - few) / (many_flows - few_flows)
    };
    let (in_memory, in_file) = (growth(false), growth(true));
    println!("{in_memory:.1} bytes a flow that has ended, {in_file:.1} with a file");
    // Collectives are kept, of which there is one for every 16 flows here.
    assert!(in_memory > 40.0 && in_file < 8.0, "{in_memory} and {in_file} bytes a flow");
}
