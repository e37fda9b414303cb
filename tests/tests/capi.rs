//! The C interface as C and C++ programs see it: the header is the one committed, the examples compile against both
//! libraries and print what the same scenarios give in Rust, and nothing a caller does wrong has worse than a status.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::{
    BitRate, ExternalFrame, FabricSize, FlowEnd, FlowSpec, Kernel, Limits, LinkId, LinkSpec, NodeId, NodeKind, PortId,
    SimTime,
};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, WindowRule,
};
use wormhole_models::ecn::Thresholds;
use wormhole_models::profile::{Ps, THRESHOLDS};
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_models::topology::{Clos, Dumbbell, FabricPlan, FatTree, Star};
use wormhole_tests::component::{is_there, starts};
use wormhole_tests::{Said, built, data, root};

/// Rewrites the header instead of comparing it.
const WRITE_HEADER: &str = "WORMHOLE_WRITE_HEADER";

/// What a Rust static library needs on Linux.
const SYSTEM_LIBRARIES: [&str; 3] = ["-lpthread", "-ldl", "-lm"];

fn capi() -> PathBuf {
    root().join("kernel/capi")
}

/// The folder with `libwormhole_capi.a` and `libwormhole_capi.so`, built once.
fn libraries() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| built("wormhole-capi"))
}

#[test]
fn header_is_what_the_source_says() {
    let config = cbindgen::Config::from_file(capi().join("cbindgen.toml")).expect("cbindgen.toml");
    // In the order the header shall have.
    let sources = ["constants", "status", "structs", "handle", "exports"];
    let builder = sources.iter().fold(cbindgen::Builder::new().with_config(config), |builder, module| {
        builder.with_src(capi().join(format!("src/{module}.rs")))
    });
    let mut made = Vec::new();
    builder.generate().expect("a header").write(&mut made);
    let made = String::from_utf8(made).expect("UTF-8");
    let file = capi().join("include/wormhole.h");
    if std::env::var_os(WRITE_HEADER).is_some() {
        fs::write(&file, &made).expect("the header can be written");
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == made, "include/wormhole.h is out of date: run the test with {WRITE_HEADER}=1");
    let exported = fs::read_to_string(capi().join("src/exports.rs")).expect("exports.rs");
    for name in exported.split("extern \"C\" fn ").skip(1).filter_map(|rest| rest.split('(').next()) {
        assert!(
            made.contains(&format!(" {name}(")) || made.contains(&format!("*{name}(")),
            "{name} is not in the header"
        );
    }
}

/// How a program gets at the library.
#[derive(Clone, Copy, Debug)]
enum Linkage {
    Static,
    Shared,
}

/// A compiler and its strictest language mode.
struct Language {
    compiler: &'static str,
    arguments: &'static [&'static str],
}

const C: Language = Language { compiler: "cc", arguments: &["-std=c11", "-pedantic"] };
const CPP: Language = Language { compiler: "c++", arguments: &["-std=c++17", "-pedantic"] };

/// Compiles a program against the library; gives where it is.
fn compile(language: &Language, sources: &[PathBuf], linkage: Linkage, more: &[String]) -> PathBuf {
    let stem = sources[0].file_stem().and_then(|stem| stem.to_str()).expect("a file name");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("capi-{stem}-{linkage:?}"));
    let mut command = Command::new(language.compiler);
    command.args(language.arguments).args(["-Wall", "-Wextra", "-Werror", "-O1", "-g"]);
    command.arg("-I").arg(capi().join("include")).arg("-I").arg(capi().join("examples"));
    command.arg("-o").arg(&program).args(sources);
    match linkage {
        Linkage::Static => command.arg(libraries().join("libwormhole_capi.a")).args(SYSTEM_LIBRARIES),
        Linkage::Shared => command
            .arg(libraries().join("libwormhole_capi.so"))
            .arg(format!("-Wl,-rpath,{}", libraries().display()))
            .arg("-lm"),
    };
    let said: Said = command.args(more).output().expect("a compiler").into();
    said.succeeds();
    program
}

/// What a program prints, and that it ends well.
fn run(program: &Path, arguments: &[&str]) -> Said {
    let said: Said = Command::new(program).args(arguments).output().expect("the program runs").into();
    said.succeeds()
}

/// Compiles an example against either library; both print the same, which is what they printed.
fn example(name: &str) -> Option<String> {
    let language = if name.ends_with(".cpp") { &CPP } else { &C };
    if !is_there(name, language.compiler, starts(language.compiler, &["--version"])) {
        return None;
    }
    let source = capi().join("examples").join(name);
    let printed = [Linkage::Static, Linkage::Shared]
        .map(|linkage| run(&compile(language, std::slice::from_ref(&source), linkage, &[]), &[]).out);
    let [with_static, with_shared] = printed;
    assert_eq!(with_static, with_shared, "{name}");
    println!("{name}: compiled against the static and the shared library, both ran");
    Some(with_static)
}

/// A fabric by its parameters, as nodes and links.
fn fabric(plan: &dyn FabricPlan) -> (Vec<NodeKind>, Vec<LinkSpec>) {
    let mut links = Vec::new();
    plan.each_link(&mut |link| links.push(link));
    ((0..plan.size().nodes as u32).map(|node| plan.node(NodeId(node))).collect(), links)
}

type World<'a> = Kernel<'a, Ps<'a, Ecmp>>;

/// The same kernel as an example has, in Rust.
fn with_kernel<R>(
    plan: &dyn FabricPlan,
    cca: AnyCca,
    thresholds: &[Thresholds],
    limits: &Limits,
    work: impl FnOnce(&mut World<'_>) -> R,
) -> R {
    let (nodes, links) = fabric(plan);
    let ccas = [cca];
    let mut models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    models.marker.thresholds = thresholds;
    let mut memory = vec![0; World::words(FabricSize::of(&nodes, &links), limits, &models)];
    work(&mut Kernel::new(&mut memory, &nodes, &links, models, limits, ()).expect("a kernel"))
}

#[test]
fn host_keeps_time() {
    let Some(printed) = example("host_keeps_time.c") else { return };
    let cca = AnyCca::Hpcc(Hpcc::new(HpccConfig::default()));
    let plan = Star { hosts: 4, ..Star::default() };
    let want = with_kernel(&plan, cca, &THRESHOLDS, &Limits::default(), |kernel| {
        // All at once here: that the host starts them one by one makes no difference.
        for host in 0..3 {
            let start = SimTime(u64::from(host) * 5_000_000);
            let flow = FlowSpec::new(NodeId(host), NodeId(3), 500_000, start);
            kernel.add_flow(&FlowSpec { token: 100 + u64::from(host), ..flow }).expect("a flow");
        }
        assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::Idle));
        completions(kernel, |text, done| {
            writeln!(text, "{} {} {}", done.token, done.start.0, done.fct.0).expect("a line");
        })
    });
    assert_eq!(printed, want);
    assert_eq!(printed.lines().count(), 3);
}

/// A line per flow that has ended.
fn completions(kernel: &mut World<'_>, line: impl Fn(&mut String, &wormhole_kernel::Completion)) -> String {
    let mut text = String::new();
    while let Some(done) = kernel.poll_completion() {
        assert_eq!(done.end(), FlowEnd::Done);
        line(&mut text, &done);
    }
    text
}

#[test]
fn kernel_keeps_time() {
    let Some(printed) = example("kernel_keeps_time.c") else { return };
    let cca = AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp)));
    // Plain, without acceleration: what is skipped and looked up in the example changes nothing.
    let (steps, sent) = with_kernel(&FatTree::default(), cca, &THRESHOLDS, &Limits::default(), |kernel| {
        let steps = [(); 4].map(|()| {
            for host in 0..16 {
                let flow = FlowSpec::new(NodeId(host), NodeId((host + 1) % 16), 400_000, kernel.now());
                kernel.add_flow(&FlowSpec { src_port: 10_000 + host as u16, ..flow }).expect("a flow");
            }
            let mut finished = 0;
            while finished < 16 {
                kernel.run_to_completion(SimTime::MAX, u64::MAX).expect("capacity");
                finished += completions(kernel, |text, _| text.push('\n')).len();
            }
            kernel.now().0
        });
        (steps, kernel.port_stats(PortId(0)).bytes)
    });
    let mut want: String = (0..).zip(steps).map(|(step, end)| format!("step {step} {end}\n")).collect();
    // Steps are alike, so the first kernel has records of its own already.
    for _ in 0..2 {
        writeln!(want, "end {} sent {sent} hits some", steps[3]).expect("a line");
    }
    assert_eq!(printed, want);
}

#[test]
fn external_ports() {
    let Some(printed) = example("external_ports.c") else { return };
    let cca = AnyCca::Dctcp(Dctcp::new(DctcpConfig::default()));
    let plan = Dumbbell { left: 2, right: 2, ..Dumbbell::default() };
    let thresholds = [Thresholds { kmin: 20_000, kmax: 20_000, ..THRESHOLDS[0] }];
    let want = with_kernel(&plan, cca, &thresholds, &Limits::default(), |kernel| {
        kernel.add_flow(&FlowSpec::new(NodeId(1), NodeId(3), 1_000_000, SimTime::ZERO)).expect("a flow");
        let mut left = [3; 4];
        for (token, bytes) in (0..).zip([64, 512, 1_500, 9_000]) {
            let frame = ExternalFrame::new(NodeId(0), NodeId(2), bytes, token);
            kernel.inject(SimTime(1_000_000 * token), &frame).expect("room");
        }
        let mut text = String::new();
        while let Some(next) = kernel.next_event_time() {
            kernel.run_until(next).expect("capacity");
            while let Some(frame) = kernel.poll_egress() {
                let ExternalFrame { token, bytes, at, marked, src, dst, .. } = frame;
                writeln!(text, "{token} {bytes} {} {marked}", at.0).expect("a line");
                if left[token as usize] > 0 {
                    left[token as usize] -= 1;
                    kernel.inject(at, &ExternalFrame::new(dst, src, bytes, token)).expect("room");
                }
            }
        }
        text + &completions(kernel, |text, done| writeln!(text, "flow {}", done.fct.0).expect("a line"))
    });
    assert_eq!(printed, want);
    assert_eq!(printed.lines().count(), 17, "sixteen trips and a flow");
    assert!(printed.lines().any(|line| line.ends_with(" 1")), "the flow's queue is seen: {printed}");
}

#[test]
fn raii() {
    let Some(printed) = example("raii.cpp") else { return };
    let cca = AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig { additive: BitRate(100_000_000), ..DcqcnConfig::default() }));
    let plan = Clos { leaves: 3, hosts_per_leaf: 4, spines: 2, ..Clos::default() };
    let want = with_kernel(&plan, cca, &THRESHOLDS, &Limits::default(), |kernel| {
        for src in 1..=10 {
            let flow = FlowSpec::new(NodeId(src), NodeId(0), 200_000, SimTime::ZERO);
            let flow = FlowSpec { src_port: 10_000 + src as u16, token: u64::from(src), ..flow };
            kernel.add_flow(&flow).expect("a flow");
        }
        for (at, up) in [(20_000_000, false), (500_000_000, true)] {
            kernel.set_link(SimTime(at), LinkId(12), up).expect("a link");
        }
        kernel.run_until(SimTime::MAX).expect("capacity");
        let flows = completions(kernel, |text, done| writeln!(text, "{} {}", done.token, done.fct.0).expect("a line"));
        let totals = kernel.totals();
        assert!(totals.drops > 0, "the link fails while frames are on it");
        format!("{flows}lost {} given up {}\n", totals.drops, totals.flows_given_up)
    });
    assert_eq!(printed, want);
    assert_eq!(printed.lines().count(), 11);
}

#[test]
fn nothing_a_caller_does_wrong_has_worse_than_a_status() {
    if !is_there("hostile.c", C.compiler, starts(C.compiler, &["--version"])) {
        return;
    }
    let sanitisers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"].map(String::from);
    let has_sanitisers = has_sanitisers(&sanitisers);
    let more = if has_sanitisers { &sanitisers[..] } else { &[] };
    let program = compile(&C, &[data("capi/hostile.c")], Linkage::Static, more);
    let said: Said = Command::new(program).output().expect("the program runs").into();
    println!("hostile.c, sanitisers: {has_sanitisers}: {}", said.out);
    let said = said.succeeds();
    assert!(said.out.ends_with(", 0 wrong\n"), "{said:#?}");
    // A panic would have been caught, and told here by the runtime.
    assert_eq!(said.errors, "");
}

/// Whether programs with sanitisers can be linked and run.
fn has_sanitisers(sanitisers: &[String]) -> bool {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join("capi-empty.c"), folder.join("capi-empty"));
    fs::write(&source, "int main(void) { return 0; }\n").expect("a file");
    let compiled = Command::new(C.compiler).args(sanitisers).arg("-o").arg(&program).arg(&source).output();
    compiled.is_ok_and(|output| output.status.success())
        && Command::new(&program).status().is_ok_and(|status| status.success())
}

/// The parts of ns-3 that its example needs.
const NS3: [&str; 5] = ["ns3-core", "ns3-network", "ns3-internet", "ns3-point-to-point", "ns3-applications"];

/// ns-3's applications over a fabric in the kernel receive the same bytes in the same nanoseconds as over ns-3's own
/// channels: a byte takes whole nanoseconds there, and no two frames want a port at once.
#[test]
fn ns3_is_a_host() {
    let arguments: Vec<&str> = ["--exists"].into_iter().chain(NS3).collect();
    if !is_there("ns3_is_a_host", "libns3-dev", starts("pkg-config", &arguments)) {
        return;
    }
    let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(NS3).output().expect("pkg-config runs");
    let flags = String::from_utf8(flags.stdout).expect("UTF-8");
    let flags: Vec<String> = flags.split_whitespace().map(|flag| flag.replace('\\', "")).collect();
    let sources = ["fabric.cc", "wormhole-channel.cc"].map(|file| capi().join("examples/ns-3").join(file));
    // Without -pedantic: ns-3's headers are not.
    let language = Language { compiler: CPP.compiler, arguments: &["-std=c++17"] };
    let program = compile(&language, &sources, Linkage::Static, &flags);
    let own = run(&program, &["--fabric=own"]).out;
    let wormhole = run(&program, &["--fabric=wormhole"]).out;
    println!("ns-3: {} receptions over its own channels and over the kernel", own.lines().count() - 2);
    assert_eq!(wormhole, own);
    assert!(own.ends_with("udp total 200000\ntcp total 2000000\n"), "{own}");
    let first = own.lines().find(|line| line.starts_with("udp")).expect("UDP arrives");
    // 1,030 bytes at 8 ns twice, 5 us twice; the application sends its first packet one packet's time after its start.
    assert_eq!(first, format!("udp {} 1000", 10_000 + 40_000 + 2 * (1_030 * 8 + 5_000)));
}

/// What the documentation shows in C is in an example, word for word.
#[test]
fn documentation_shows_what_is_compiled() {
    let text = fs::read_to_string(root().join("kernel/docs/embedding.md")).expect("the documentation");
    let program = fs::read_to_string(capi().join("examples/host_keeps_time.c")).expect("the example");
    let blocks: Vec<&str> = text.split("```c\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(blocks.len(), 1);
    assert!(program.contains(blocks[0]), "not in host_keeps_time.c:\n{}", blocks[0]);
    for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        assert!(root().join("kernel/docs").join(target).exists(), "embedding.md: {target} is not there");
    }
}
