//! `report.html` in a real browser: it renders without a complaint, its figures are those of `summary.json`, every
//! picture has a table, and it fits wide and narrow screens, light and dark. Screenshots are left for people to look
//! at.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wormhole_tests::{Said, WORMHOLE, component, data, wormhole_in};

const BROWSER: &str = "chromium";

/// Widths of screens: a laptop's and a telephone's.
const WIDTHS: [u32; 2] = [1_280, 390];
const THEMES: [&str; 2] = ["light", "dark"];

/// No report is larger, whatever it is of.
const MOST_BYTES: u64 = 2_000_000;

/// A name that must not become a part of the page.
const NAME: &str = "<b>first</b> & \"last\"";

/// The folder of a test's report, and of all screenshots.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn wormhole(folder: &Path, arguments: &str) -> Said {
    let said: Said = wormhole_in(folder, arguments).output().expect("wormhole runs").into();
    said.succeeds()
}

/// Runs with their results in `out` of their folders.
fn run_with_jobs() -> PathBuf {
    let place = folder("report-jobs");
    let description = wormhole(&place, "scenarios gpt-7b-64").out;
    let scenario = description.replace("name = \"gpt-7b-64\"", &format!("name = {}", Value::from(NAME)));
    assert!(scenario.contains("first"), "the job is named otherwise: {description}");
    fs::write(place.join("scenario.toml"), scenario).expect("a scenario");
    wormhole(&place, "run scenario.toml --out out");
    place
}

fn inputs_of_reference(run: &str) -> String {
    let file = |name: &str| data("reference").join(run).join(name).display().to_string();
    let (topology, flows, config) = (file("topology.txt"), file("flow.txt"), file("config.txt"));
    format!("--topology {topology} --flows {flows} --config {config}")
}

fn run_with_flows() -> PathBuf {
    let place = folder("report-flows");
    wormhole(&place, &format!("run {} --accel exact --out out", inputs_of_reference("c2_a2a16_dctcp")));
    place
}

fn verification() -> PathBuf {
    let place = folder("report-verify");
    let inputs = inputs_of_reference("a1_dumbbell_sim_hpcc");
    wormhole(&place, &format!("verify {inputs} --ensemble 2 --out out"));
    place
}

fn has_browser(test: &str) -> bool {
    component::is_there(test, BROWSER, component::starts(BROWSER, &["--version"]))
}

/// What the browser prints, and what it complains of, about a page. Nothing may come from a network.
fn browse(page: &Path, options: &[String]) -> (String, Vec<String>) {
    let profile = page.with_extension("profile");
    let mut command = Command::new(BROWSER);
    command
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--allow-file-access-from-files",
        ])
        .args(["--enable-logging=stderr", "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .args(options)
        .arg(format!("file://{}", page.display()));
    let said: Said = command.output().expect("the browser starts").into();
    let _ = fs::remove_dir_all(profile);
    let complaints = said.errors.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned).collect();
    (said.succeeds().out, complaints)
}

/// A page as the browser has understood it.
fn dom(report: &Path) -> String {
    let (dom, complaints) = browse(report, &["--dump-dom".into()]);
    assert!(complaints.is_empty(), "{complaints:#?}");
    dom
}

/// What a page measures in a window of this width: (width, height, whether it is dark).
fn measure(report: &Path, width: u32, theme: &str) -> (u32, u32, bool) {
    // A frame, because browsers do not make their windows as narrow as telephones.
    let page = wrapper(report, width, 800, theme, true);
    let (dom, complaints) = browse(&page, &["--dump-dom".into()]);
    assert!(complaints.is_empty(), "{complaints:#?}");
    let told = dom.split("<p id=\"measured\">").nth(1).and_then(|rest| rest.split("</p>").next());
    let figures: Vec<&str> = told.unwrap_or_else(|| panic!("nothing was measured: {dom}")).split(' ').collect();
    let [width, height, dark] = figures[..] else { panic!("{figures:?}") };
    (width.parse().expect("a width"), height.parse().expect("a height"), dark == "true")
}

/// A page that shows the report in a frame, in a theme.
fn wrapper(report: &Path, width: u32, height: u32, theme: &str, measures: bool) -> PathBuf {
    let script = "<script>const frame = document.querySelector('iframe'); frame.onload = () => {\
                  const page = frame.contentDocument.documentElement, told = document.createElement('p');\
                  const dark = frame.contentWindow.matchMedia('(prefers-color-scheme: dark)').matches;\
                  told.id = 'measured'; told.textContent = [page.scrollWidth, page.scrollHeight, dark].join(' ');\
                  document.body.append(told); };</script>";
    let text = format!(
        "<!doctype html><meta charset=utf-8><body style=\"margin:0\"><iframe src=\"{}\" style=\"border:0;display:block;\
         width:{width}px;height:{height}px;color-scheme:{theme}\"></iframe>{}",
        report.file_name().and_then(|name| name.to_str()).expect("a name"),
        if measures { script } else { "" }
    );
    let page = report.with_file_name(format!("{width}-{theme}.html"));
    fs::write(&page, text).expect("a page");
    page
}

/// Takes a picture of a whole page, and checks that it fits.
fn screenshot(report: &Path, name: &str, width: u32, theme: &str) {
    let (page_width, height, is_dark) = measure(report, width, theme);
    assert!(page_width <= width, "{name}: at {width} pixels the page is {page_width} wide");
    assert_eq!(is_dark, theme == "dark", "{name}: the theme does not arrive");
    let picture = folder("report-screenshots").join(format!("{name}-{width}-{theme}.png"));
    let _ = fs::remove_file(&picture);
    let page = wrapper(report, width, height, theme, false);
    let options = [format!("--screenshot={}", picture.display()), format!("--window-size={width},{height}")].to_vec();
    browse(&page, &options);
    let bytes = fs::read(&picture).unwrap_or_else(|e| panic!("{}: {e}", picture.display()));
    assert!(bytes.starts_with(b"\x89PNG") && bytes.len() > 10_000, "{}: no picture", picture.display());
    println!("{}", picture.display());
}

/// Parts of a page that begin with `<section`.
fn sections(dom: &str) -> impl Iterator<Item = &str> {
    dom.split("<section").skip(1).map(|rest| rest.split("</section>").next().unwrap_or(rest))
}

fn assert_pictures_have_tables(dom: &str) {
    let mut pictures = 0;
    for section in sections(dom) {
        let here = section.matches("role=\"img\"").count();
        let head = section.chars().take(80).collect::<String>();
        assert!(here == 0 || section.contains("<table"), "no table beside the pictures of {head}");
        let told = section.matches("-title\">").count().min(section.matches("-desc\">").count());
        assert_eq!(told, here, "titles and descriptions of the pictures of {head}");
        pictures += here;
    }
    assert!(pictures >= 4, "only {pictures} pictures");
    let tables = dom.matches("<table").count();
    let captions = dom.matches("<caption").count();
    assert_eq!(tables, captions, "every table has a caption");
    assert!(dom.matches("scope=\"col\"").count() >= 2 * tables, "tables have headings");
}

/// Every number and word of `summary.json` is in the page, but how long it took to write the page.
fn assert_figures_are_those_of_the_summary(dom: &str, out: &Path) {
    let text = fs::read_to_string(out.join("summary.json")).expect("summary.json");
    let summary: Value = serde_json::from_str(&text).expect("JSON");
    let keys = summary.as_object().expect("an object").iter().filter(|(_, value)| !value.is_array());
    let keys = keys.filter(|(key, _)| *key != "outputs_s");
    let mut count = 0;
    for (key, value) in keys {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let row = format!("<th scope=\"row\">{key}</th><td class=\"number\">{value}</td>");
        assert!(dom.contains(&row), "the page has no row {row}");
        count += 1;
    }
    assert!(count > 30, "only {count} figures");
}

fn assert_needs_nothing(report: &Path) {
    let text = fs::read_to_string(report).expect("report.html");
    assert!(!text.contains("<script") && !text.contains(" src=") && !text.contains("url("), "it needs something");
    assert!((text.len() as u64) < MOST_BYTES, "{} bytes", text.len());
    println!("{}: {} kB", report.display(), text.len() / 1_000);
}

#[test]
fn a_run_with_jobs() {
    let report = run_with_jobs().join("out/report.html");
    assert_needs_nothing(&report);
    if !has_browser("a_run_with_jobs") {
        return;
    }
    let dom = dom(&report);
    assert_figures_are_those_of_the_summary(&dom, report.parent().expect("a folder"));
    assert_pictures_have_tables(&dom);
    for id in ["timeline-0", "fct-cdf", "slowdown-cdf", "utilisation-map", "queue-map", "skipped-over-time", "work"] {
        assert!(dom.contains(&format!("<svg id=\"{id}\"")), "no picture {id}");
    }
    assert!(!dom.contains("<b>first") && dom.contains("&lt;b&gt;first&lt;/b&gt; &amp;"), "a name became a part of it");
    for (width, theme) in WIDTHS.into_iter().flat_map(|width| THEMES.map(|theme| (width, theme))) {
        screenshot(&report, "jobs", width, theme);
    }
}

#[test]
fn a_run_with_listed_flows() {
    let report = run_with_flows().join("out/report.html");
    assert_needs_nothing(&report);
    if !has_browser("a_run_with_listed_flows") {
        return;
    }
    let dom = dom(&report);
    assert_figures_are_those_of_the_summary(&dom, report.parent().expect("a folder"));
    assert_pictures_have_tables(&dom);
    assert!(!dom.contains("timeline-0"), "there are no jobs");
    for (width, theme) in WIDTHS.into_iter().flat_map(|width| THEMES.map(|theme| (width, theme))) {
        screenshot(&report, "flows", width, theme);
    }
}

#[test]
fn a_verification() {
    let report = verification().join("out/report.html");
    assert_needs_nothing(&report);
    if !has_browser("a_verification") {
        return;
    }
    let dom = dom(&report);
    assert_pictures_have_tables(&dom);
    let text = fs::read_to_string(report.with_file_name("verify.json")).expect("verify.json");
    let verified: Value = serde_json::from_str(&text).expect("JSON");
    for tier in verified["tiers"].as_array().expect("tiers") {
        let error = format!(">{:.4}</td>", tier["fct_error_mean"].as_f64().expect("an error") * 100.0);
        assert!(dom.contains(&error), "the page has no error {error}");
    }
    for (width, theme) in WIDTHS.into_iter().flat_map(|width| THEMES.map(|theme| (width, theme))) {
        screenshot(&report, "verify", width, theme);
    }
}

/// A report does not grow with the fabric or the flows.
#[test]
fn a_thousand_gpus_fit() {
    let place = folder("report-large");
    // A permutation: everyone sends to the host half a fabric further, and to its neighbour.
    let pairs =
        |shift: u32| (0..1_024).map(move |host| format!("{host}->{} start 0 size 40000\n", (host + shift) % 1_024));
    let connections: String = pairs(512).chain(pairs(1)).collect();
    fs::write(place.join("pairs.cm"), format!("Nodes 1024\nConnections 2048\n{connections}")).expect("a workload");
    let scenario = "[fabric]\nkind = \"rail\"\nservers = 128\n\n[[job]]\nname = \"pairs\"\nkind = \"file\"\n\
                    file = \"pairs.cm\"\n";
    fs::write(place.join("scenario.toml"), scenario).expect("a scenario");
    wormhole(&place, "run scenario.toml --accel off --out out");
    let report = place.join("out/report.html");
    assert_needs_nothing(&report);
    if has_browser("a_thousand_gpus_fit") {
        assert_pictures_have_tables(&dom(&report));
        screenshot(&report, "large", WIDTHS[0], THEMES[0]);
    }
}

/// A run that is broken off has a report, too; results on the way have none.
#[test]
fn a_run_that_did_not_end_says_why() {
    let place = folder("report-stalled");
    let topology = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n";
    fs::write(place.join("topology.txt"), topology).expect("a topology");
    fs::write(place.join("flows.txt"), "1\n0 2 3 100 1000 0\n").expect("flows");
    fs::write(place.join("events.txt"), "2 down 2 3\n4 up 2 3\n").expect("events");
    let arguments = "run --topology topology.txt --flows flows.txt --link-events events.txt --profile ns3 --out out";
    let mut command = Command::new(&*WORMHOLE);
    command.args(arguments.split_whitespace()).current_dir(&place).stdin(Stdio::null());
    let said: Said = command.output().expect("wormhole runs").into();
    assert_eq!(said.code, Some(4), "{said:#?}");
    let report = fs::read_to_string(place.join("out/report.html")).expect("report.html");
    assert!(report.contains("host 0 waits for host 2: 0 of 1000 bytes acknowledged"), "{report}");
}
