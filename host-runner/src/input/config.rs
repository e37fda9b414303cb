//! `config.txt` of the HPCC simulator: a key and its values on a line, over and over; `#` begins a comment. Unknown
//! keys are passed over with a warning.

use super::counted;
use super::diagnostics::Diagnostics;
use super::tokens::{Token, Tokens};
use super::units;
use std::collections::BTreeMap;
use wormhole_kernel::units::PS_PER_S;

/// Congestion controls by `CC_MODE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CcMode {
    /// 1.
    Dcqcn,
    /// 3.
    Hpcc,
    /// 7.
    Timely,
    /// 8.
    Dctcp,
    /// 0 here: none, a fixed window at line rate. Not a mode of ns-3.
    Fixed,
    /// 9 here: Swift. Not a mode of ns-3.
    Swift,
}

/// The link that `LINK_DOWN` takes down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkDown {
    /// Picoseconds after 2 s, where ns-3's flows begin.
    pub after: u64,
    /// One end.
    pub a: u32,
    /// The other end.
    pub b: u32,
}

/// Which thresholds, by port rate (bit/s).
pub type RateMap<T> = BTreeMap<u64, T>;

/// A configuration. `None`: the file does not say. Rates are in bit/s.
#[derive(Clone, PartialEq, Debug, Default)]
#[allow(missing_docs)] // The fields are the keys of the file; `FORMATS` and the README explain those that matter.
pub struct Config {
    pub cc_mode: Option<CcMode>,
    pub enable_qcn: Option<bool>,
    /// Bytes.
    pub packet_payload_size: Option<u32>,
    /// Picoseconds; saturated at 2^63 ns.
    pub simulator_stop_time: Option<u64>,
    /// Microseconds, truncated to whole ones as ns-3 does.
    pub alpha_resume_interval: Option<u64>,
    pub rate_decrease_interval: Option<u64>,
    pub rp_timer: Option<u64>,
    pub clamp_target_rate: Option<bool>,
    pub ewma_gain: Option<f64>,
    pub fast_recovery_times: Option<u32>,
    pub rate_ai: Option<u64>,
    pub rate_hai: Option<u64>,
    pub min_rate: Option<u64>,
    pub dctcp_rate_ai: Option<u64>,
    pub error_rate_per_link: Option<f64>,
    /// Bytes.
    pub l2_chunk_size: Option<u64>,
    pub l2_ack_interval: Option<u64>,
    pub l2_back_to_zero: Option<bool>,
    pub has_win: Option<bool>,
    pub global_t: Option<bool>,
    pub var_win: Option<bool>,
    pub fast_react: Option<bool>,
    pub u_target: Option<f64>,
    pub mi_thresh: Option<u32>,
    pub int_multi: Option<u64>,
    pub multi_rate: Option<bool>,
    pub sample_feedback: Option<bool>,
    pub rate_bound: Option<bool>,
    pub ack_high_prio: Option<bool>,
    pub link_down: Option<LinkDown>,
    /// Thresholds in units of 1000 bytes.
    pub kmin: RateMap<u64>,
    pub kmax: RateMap<u64>,
    pub pmax: RateMap<f64>,
    /// MiB per switch.
    pub buffer_size: Option<u64>,
}

/// Sets what one key is about.
type Setter = fn(&mut Config, &mut Entry<'_, '_>);

/// All keys. Those that say something about outputs or monitors are passed over.
const KEYS: &[(&str, Setter)] = &[
    ("CC_MODE", |c, e| c.cc_mode = e.value(cc_mode)),
    ("ENABLE_QCN", |c, e| c.enable_qcn = e.value(flag)),
    ("PACKET_PAYLOAD_SIZE", |c, e| c.packet_payload_size = e.value(payload)),
    ("SIMULATOR_STOP_TIME", |c, e| c.simulator_stop_time = stop_time(e)),
    ("ALPHA_RESUME_INTERVAL", |c, e| c.alpha_resume_interval = e.value(whole_microseconds)),
    ("RATE_DECREASE_INTERVAL", |c, e| c.rate_decrease_interval = e.value(whole_microseconds)),
    ("RP_TIMER", |c, e| c.rp_timer = e.value(whole_microseconds)),
    ("CLAMP_TARGET_RATE", |c, e| c.clamp_target_rate = e.value(flag)),
    ("EWMA_GAIN", |c, e| c.ewma_gain = e.value(units::probability)),
    ("FAST_RECOVERY_TIMES", |c, e| c.fast_recovery_times = e.value(number)),
    // A sender that does not increase its rate is a fair experiment.
    ("RATE_AI", |c, e| c.rate_ai = e.value(units::rate_or_zero)),
    ("RATE_HAI", |c, e| c.rate_hai = e.value(units::rate_or_zero)),
    ("MIN_RATE", |c, e| c.min_rate = e.value(units::rate)),
    ("DCTCP_RATE_AI", |c, e| c.dctcp_rate_ai = e.value(units::rate_or_zero)),
    ("ERROR_RATE_PER_LINK", |c, e| c.error_rate_per_link = e.value(units::probability)),
    ("L2_CHUNK_SIZE", |c, e| c.l2_chunk_size = e.value(number)),
    ("L2_ACK_INTERVAL", |c, e| c.l2_ack_interval = e.value(number)),
    ("L2_BACK_TO_ZERO", |c, e| c.l2_back_to_zero = e.value(flag)),
    ("HAS_WIN", |c, e| c.has_win = e.value(flag)),
    ("GLOBAL_T", |c, e| c.global_t = e.value(flag)),
    ("VAR_WIN", |c, e| c.var_win = e.value(flag)),
    ("FAST_REACT", |c, e| c.fast_react = e.value(flag)),
    ("U_TARGET", |c, e| c.u_target = e.value(positive)),
    ("MI_THRESH", |c, e| c.mi_thresh = e.value(number)),
    // 32 bits, as in ns-3: more could overflow the counters it scales.
    ("INT_MULTI", |c, e| c.int_multi = e.value(number::<u32>).map(|m| m.max(1).into())),
    ("MULTI_RATE", |c, e| c.multi_rate = e.value(flag)),
    ("SAMPLE_FEEDBACK", |c, e| c.sample_feedback = e.value(flag)),
    ("RATE_BOUND", |c, e| c.rate_bound = e.value(flag)),
    ("ACK_HIGH_PRIO", |c, e| c.ack_high_prio = e.value(flag)),
    ("LINK_DOWN", |c, e| c.link_down = link_down(e)),
    // A map that is given again adds to the first, as in ns-3.
    ("KMIN_MAP", |c, e| c.kmin.extend(e.map(threshold))),
    ("KMAX_MAP", |c, e| c.kmax.extend(e.map(threshold))),
    ("PMAX_MAP", |c, e| c.pmax.extend(e.map(units::probability))),
    ("BUFFER_SIZE", |c, e| c.buffer_size = e.value(buffer_size)),
    ("USE_DYNAMIC_PFC_THRESHOLD", |_, e| e.pass_over()),
    ("PAUSE_TIME", |_, e| e.pass_over()),
    ("TOPOLOGY_FILE", |_, e| e.pass_over()),
    ("FLOW_FILE", |_, e| e.pass_over()),
    ("TRACE_FILE", |_, e| e.pass_over()),
    ("TRACE_OUTPUT_FILE", |_, e| e.pass_over()),
    ("FCT_OUTPUT_FILE", |_, e| e.pass_over()),
    ("PFC_OUTPUT_FILE", |_, e| e.pass_over()),
    ("ENABLE_TRACE", |_, e| e.pass_over()),
    ("QLEN_MON_START", |_, e| e.pass_over()),
    ("QLEN_MON_END", |_, e| e.pass_over()),
    ("PINT_LOG_BASE", |_, e| e.pass_over()),
    ("PINT_PROB", |_, e| e.pass_over()),
    ("NVLS_ENABLE", |_, e| e.pass_over()),
    // SimAI's monitors.
    ("BW_MON_FILE", |_, e| e.skip()),
    ("RATE_MON_FILE", |_, e| e.skip()),
    ("CNP_MON_FILE", |_, e| e.skip()),
    ("QLEN_MON_FILE", |_, e| e.skip()),
    ("MON_START", |_, e| e.skip()),
    ("MON_END", |_, e| e.skip()),
];

/// Where each key stands that was met.
type Lines = BTreeMap<&'static str, usize>;

/// Reads a configuration; what is wrong with it goes to `found`.
pub fn parse(text: &str, found: &mut Diagnostics) -> Config {
    let mut config = Config::default();
    let mut lines = Lines::new();
    let mut tokens = Tokens::new(text);
    while let Some(key) = tokens.next() {
        let mut entry = Entry { key, line: key.line, tokens: &mut tokens, found };
        match KEYS.iter().find(|(name, _)| *name == key.text) {
            Some((name, set)) => {
                if let Some(before) = lines.insert(name, key.line) {
                    let message = format!("also given on line {before}; the later value counts");
                    entry.found.warning(key.line, key.text, message);
                }
                set(&mut config, &mut entry);
                entry.end_line();
            }
            None => entry.unknown(),
        }
    }
    check_thresholds(&config, &lines, found);
    config
}

/// A key and what follows it.
struct Entry<'e, 't> {
    key: Token<'t>,
    /// Of the last token taken; only maps wrap.
    line: usize,
    tokens: &'e mut Tokens<'t>,
    found: &'e mut Diagnostics,
}

impl<'t> Entry<'_, 't> {
    /// The next token on the line of the key that is no comment.
    fn next(&mut self) -> Option<Token<'t>> {
        self.tokens.peek().filter(|t| !t.text.starts_with('#'))?;
        self.tokens.next_on(self.line)
    }

    /// `N` values, if there are as many.
    fn values<const N: usize>(&mut self) -> Option<[Token<'t>; N]> {
        let mut values = [self.key; N];
        for value in &mut values {
            let Some(token) = self.next() else {
                let needs = counted(N, "value");
                self.found.error(self.key.line, self.key.text, format!("this key needs {needs} on its line"));
                return None;
            };
            *value = token;
        }
        Some(values)
    }

    fn value<T>(&mut self, parse: impl Fn(&str) -> Result<T, String>) -> Option<T> {
        let [value] = self.values()?;
        value.parse(parse, self.found)
    }

    /// A value that is not used.
    fn pass_over(&mut self) {
        self.values::<1>();
    }

    /// What is on the line, whatever it is.
    fn skip(&mut self) {
        self.tokens.skip_line(self.line);
    }

    /// `n rate value rate value ...`, in which lines may end where numbers follow.
    fn map<T>(&mut self, parse: impl Fn(&str) -> Result<T, String>) -> RateMap<T> {
        let mut map = RateMap::new();
        let Some(declared) = self.value(number::<usize>) else {
            self.skip();
            return map;
        };
        for count in 0..declared {
            let (Some(rate), Some(value)) = (self.next_number(), self.next_number()) else {
                let pairs = counted(declared, "pair");
                let message = format!("{pairs} of rate and value declared, {count} found");
                self.found.error(self.key.line, self.key.text, message);
                break;
            };
            if let (Some(rate), Some(value)) = (rate.parse(units::rate, self.found), value.parse(&parse, self.found)) {
                map.insert(rate, value);
            }
        }
        map
    }

    /// The next token on the line, or the first of the next line if it begins like a number.
    fn next_number(&mut self) -> Option<Token<'t>> {
        let next = self.tokens.peek()?;
        if next.line != self.line && next.text.starts_with(|c: char| c.is_ascii_digit()) {
            self.line = next.line;
        }
        self.next()
    }

    /// ns-3 lets another key follow on the same line. Anything else there is not read.
    fn end_line(&mut self) {
        let Some(next) = self.tokens.peek().filter(|t| t.line == self.line) else { return };
        if !next.text.starts_with('#') {
            if KEYS.iter().any(|(name, _)| *name == next.text) {
                return;
            }
            self.found.warning(next.line, next.text, format!("not read: {} has no more values", self.key.text));
        }
        self.skip();
    }

    /// Passes over a comment or a key that is not known, with all of its line.
    fn unknown(&mut self) {
        let key = self.key.text;
        self.skip();
        let meant = nearest(key);
        if key.starts_with('#') || key.ends_with("_INTERVAL") && meant.is_none() {
            return;
        }
        let hint = meant.map_or_else(String::new, |name| format!("; did you mean {name}?"));
        let message = format!("unknown key; it and what follows on its line are not read{hint}");
        self.found.warning(self.key.line, key, message);
    }
}

/// The key that is spelled almost like this.
fn nearest(key: &str) -> Option<&'static str> {
    // One letter wrong in four.
    const NEAR: f64 = 0.75;
    // Longer than any key can be near, and the comparison takes time with the square of the length.
    if key.len() > 40 {
        return None;
    }
    let key = key.to_ascii_uppercase();
    let distances = KEYS.iter().map(|(name, _)| (strsim::normalized_damerau_levenshtein(&key, name), *name));
    let (near, name) = distances.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (near >= NEAR).then_some(name)
}

/// Between kmin and kmax the marking probability rises; it cannot if they are the wrong way round.
fn check_thresholds(config: &Config, lines: &Lines, found: &mut Diagnostics) {
    let line = ["KMIN_MAP", "KMAX_MAP"].iter().filter_map(|key| lines.get(key)).max();
    for (rate, kmin) in &config.kmin {
        if let Some(kmax) = config.kmax.get(rate).filter(|kmax| *kmax < kmin) {
            let message = format!("at {rate} bit/s kmin is {kmin}, above kmax, which is {kmax}");
            found.error(line.copied().unwrap_or(0), "", message);
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "expected a whole number".into())
}

/// In units of 1000 bytes; below 2^32, so that no sum of bytes overflows.
fn threshold(text: &str) -> Result<u64, String> {
    text.parse::<u32>().map(u64::from).map_err(|_| "a threshold must be a whole number of KB below 2^32".into())
}

fn buffer_size(text: &str) -> Result<u64, String> {
    let mebibytes = text.parse().ok().filter(|size| (1..=4_095).contains(size));
    mebibytes.ok_or_else(|| "a switch has a buffer of 1 to 4095 MiB".into())
}

fn cc_mode(text: &str) -> Result<CcMode, String> {
    match text {
        "0" => Ok(CcMode::Fixed),
        "1" => Ok(CcMode::Dcqcn),
        "3" => Ok(CcMode::Hpcc),
        "7" => Ok(CcMode::Timely),
        "8" => Ok(CcMode::Dctcp),
        "9" => Ok(CcMode::Swift),
        "10" => Err("HPCC-PINT (10) is not supported; modes are 1 DCQCN, 3 HPCC, 7 TIMELY, 8 DCTCP".into()),
        _ => Err("CC_MODE is 0 (none), 1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 9 (Swift)".into()),
    }
}

fn flag(text: &str) -> Result<bool, String> {
    match text {
        "0" => Ok(false),
        "1" => Ok(true),
        _ => Err("expected 0 or 1".into()),
    }
}

fn payload(text: &str) -> Result<u32, String> {
    let bytes = text.parse::<u32>().ok().filter(|bytes| (1..=1 << 20).contains(bytes));
    bytes.ok_or_else(|| "a payload is 1 to 1048576 bytes".into())
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite());
    number.ok_or_else(|| "expected a number above 0".into())
}

/// ns-3 hands these to a function of whole microseconds, which drops the fraction.
fn whole_microseconds(text: &str) -> Result<u64, String> {
    const PS_PER_US: u64 = 1_000_000;
    units::microseconds(text).map(|ps| ps / PS_PER_US)
}

fn stop_time(entry: &mut Entry<'_, '_>) -> Option<u64> {
    let [value] = entry.values()?;
    let is_late = |text: &str| text.parse::<f64>().is_ok_and(|t| t > 1e6 && t.is_finite());
    if units::time(value.text).is_err() && is_late(value.text) {
        let message = "later than simulated time can go; there is no stop time then";
        entry.found.warning(value.line, value.text, message);
        return Some(u64::MAX);
    }
    value.parse(units::time, entry.found)
}

/// `time_us a b`; at time 0 ns-3 takes nothing down.
fn link_down(entry: &mut Entry<'_, '_>) -> Option<LinkDown> {
    let [after, a, b] = entry.values()?;
    let from_the_start = |text: &str| {
        let after = units::microseconds(text)?;
        if after > u64::MAX - 2 * PS_PER_S { Err("later than simulated time can go".into()) } else { Ok(after) }
    };
    let found = &mut *entry.found;
    let after = after.parse(from_the_start, found);
    let (na, nb) = (a.number("a node", found), b.number("a node", found));
    let down = LinkDown { after: after?, a: na?, b: nb? };
    if down.after == 0 {
        return None;
    }
    if down.a == down.b {
        found.error(b.line, b.text, "a link has two different ends");
        return None;
    }
    Some(down)
}

#[cfg(test)]
mod tests {
    use super::super::mistreat;
    use super::*;

    fn parsed(text: &str) -> (Config, Vec<String>) {
        let mut found = Diagnostics::of("c");
        let config = parse(text, &mut found);
        (config, found.all().iter().map(|d| d.to_string()).collect())
    }

    #[test]
    fn keys_of_the_reference_runs() {
        let text = "ENABLE_QCN 1\nCC_MODE 3\n\nRP_TIMER 300.7\nRATE_AI 50Mb/s\nLINK_DOWN 0 0 0\n\
                    KMAX_MAP 2 25000000000 400 100000000000 1600\nPMAX_MAP 1 100000000000 0.2\nBUFFER_SIZE 32\n\
                    SIMULATOR_STOP_TIME 2.50\nPINT_PROB 1.0\n";
        let (config, found) = parsed(text);
        assert_eq!(found, Vec::<String>::new());
        assert_eq!((config.cc_mode, config.rp_timer), (Some(CcMode::Hpcc), Some(300)));
        assert_eq!((config.rate_ai, config.link_down), (Some(50_000_000), None));
        assert_eq!((config.kmax[&25_000_000_000], config.pmax[&100_000_000_000]), (400, 0.2));
        assert_eq!((config.buffer_size, config.simulator_stop_time), (Some(32), Some(2_500_000_000_000)));
    }

    #[test]
    fn strange_values_are_named() {
        let (config, found) = parsed("SIMULATOR_STOP_TIME 40000000000000.00\nNO_SUCH_KEY 7 8\nGLOBAL_T 0");
        assert_eq!((config.simulator_stop_time, config.global_t), (Some(u64::MAX), Some(false)));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|f| f.contains("warning")), "{found:?}");
        assert!(parsed("CC_MODE 10").1[0].contains("HPCC-PINT"));
        assert!(parsed("LINK_DOWN 500 2 x").1[0].contains("error"));
        assert!(parsed("SIMULATOR_STOP_TIME inf").1[0].contains("c:1: error"));
        assert!(parsed("SIMULATOR_STOP_TIME 1e30").1[0].contains("warning"));
        assert_eq!(parsed("LINK_DOWN 500 2 3").0.link_down, Some(LinkDown { after: 500_000_000, a: 2, b: 3 }));
    }

    #[test]
    fn values_stand_on_the_line_of_their_key() {
        let (config, found) = parsed("FLOW_FILE\nCC_MODE 3\nGLOBAL_T\nRP_TIMER # 300\nLINK_DOWN 500 2\nHAS_WIN 1");
        let want = [
            "c:1: error: this key needs 1 value on its line (found `FLOW_FILE`)",
            "c:3: error: this key needs 1 value on its line (found `GLOBAL_T`)",
            "c:4: error: this key needs 1 value on its line (found `RP_TIMER`)",
            "c:5: error: this key needs 3 values on its line (found `LINK_DOWN`)",
        ];
        assert_eq!(found, want);
        assert_eq!((config.cc_mode, config.has_win), (Some(CcMode::Hpcc), Some(true)));
        let (config, found) = parsed("CC_MODE 3 GLOBAL_T 0 # both\nHAS_WIN 1 or so\n");
        assert_eq!((config.global_t, config.has_win), (Some(false), Some(true)));
        assert_eq!(found, ["c:2: warning: not read: HAS_WIN has no more values (found `or`)"]);
    }

    #[test]
    fn maps_wrap_only_into_numbers() {
        let (config, found) = parsed("KMAX_MAP 3 1000 400\n2000\n800 3000 # slow\nCC_MODE 3\n");
        assert_eq!(config.cc_mode, Some(CcMode::Hpcc));
        assert_eq!(found, ["c:1: error: 3 pairs of rate and value declared, 2 found (found `KMAX_MAP`)"]);
        let (config, found) = parsed("KMAX_MAP 2 1000 400\n2000 800\nCC_MODE 3\n");
        assert_eq!((config.kmax.len(), config.cc_mode, found.len()), (2, Some(CcMode::Hpcc), 0));
        let (config, found) = parsed("KMAX_MAP 18446744073709551615 1000 4294967296\nPMAX_MAP x 1 2\nPMAX_MAP 1 1");
        assert!(config.kmax.is_empty());
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[4].contains("1 pair of rate and value declared, 0 found"), "{found:?}");
    }

    #[test]
    fn a_link_goes_down_after_a_time() {
        let down = |text: &str| parsed(&format!("LINK_DOWN {text}"));
        assert_eq!(down("0 2 3"), (Config::default(), Vec::new()));
        assert_eq!(down("500 2 2").1, ["c:1: error: a link has two different ends (found `2`)"]);
        assert!(down("18446744073708 2 3").1[0].contains("later than simulated time"));
    }

    #[test]
    fn limits() {
        let (config, found) = parsed("RATE_AI 0Mb/s\nRATE_HAI 0\nDCTCP_RATE_AI 0bps\n");
        assert_eq!((config.rate_ai, config.rate_hai, config.dctcp_rate_ai), (Some(0), Some(0), Some(0)));
        assert!(found.is_empty());
        let buffers = ["BUFFER_SIZE 0", "BUFFER_SIZE 4096", "BUFFER_SIZE 18446744073709551615"];
        for text in buffers.into_iter().chain(["MIN_RATE 0", "INT_MULTI 4294967296"]) {
            let (config, found) = parsed(text);
            assert_eq!((config, found.len()), (Config::default(), 1), "{text}");
            assert!(found[0].starts_with("c:1: error"), "{found:?}");
        }
        assert_eq!(parsed("BUFFER_SIZE 4095").0.buffer_size, Some(4_095));
        let (_, found) = parsed("KMIN_MAP 2 1000 7 2000 9\n\nKMAX_MAP 2 1000 7 2000 8\n");
        assert_eq!(found, ["c:3: error: at 2000 bit/s kmin is 9, above kmax, which is 8"]);
    }

    #[test]
    fn a_key_that_is_given_twice_is_pointed_out() {
        let (config, found) = parsed("CC_MODE 1\nCC_MODE 3\n");
        assert_eq!(config.cc_mode, Some(CcMode::Hpcc));
        assert_eq!(found, ["c:2: warning: also given on line 1; the later value counts (found `CC_MODE`)"]);
    }

    #[test]
    fn comments_and_monitors_are_passed_over() {
        let text = "# CC_MODE 7\n#CC_MODE 7\nBW_MON_FILE bw.txt\nRATE_MON_FILE\nCNP_MON_FILE x\nQLEN_MON_FILE x\n\
                    MON_START 0\nMON_END 1\nQP_MON_INTERVAL 100\nBW_MON_INTERVAL 1 2\nQLEN_MON_INTERVAL 5\n";
        assert_eq!(parsed(text), (Config::default(), Vec::new()));
    }

    #[test]
    fn misspelled_keys_are_recognised() {
        let unknown = "unknown key; it and what follows on its line are not read";
        for (key, meant) in [
            ("GLOBAL_TT", "GLOBAL_T"),
            ("cc_mode", "CC_MODE"),
            ("KMAXMAP", "KMAX_MAP"),
            ("ALPHA_RESUM_INTERVAL", "ALPHA_RESUME_INTERVAL"),
        ] {
            let (_, found) = parsed(&format!("{key} 1"));
            assert_eq!(found, [format!("c:1: warning: {unknown}; did you mean {meant}? (found `{key}`)")]);
        }
        assert_eq!(parsed("NO_SUCH_KEY 7 8").1, [format!("c:1: warning: {unknown} (found `NO_SUCH_KEY`)")]);
        assert_eq!(parsed(&"x".repeat(100_000)).1.len(), 1);
    }

    #[test]
    fn no_text_is_too_broken() {
        let text = "CC_MODE 3\nKMAX_MAP 2 25000000000 400 100000000000 1600\nLINK_DOWN 500 2 3\nRATE_AI 50Mb/s\n\
                    SIMULATOR_STOP_TIME 2.5e3\nBUFFER_SIZE 32\n";
        mistreat(text, |text| {
            parsed(text);
        });
    }
}
