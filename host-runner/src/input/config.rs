//! `config.txt` of the HPCC simulator: a key and its values, over and over. Unknown keys are passed over with a
//! warning.

use super::diagnostics::Diagnostics;
use super::tokens::{Token, Tokens};
use super::units;
use std::collections::BTreeMap;

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

/// Keys that are legal, say something about outputs or monitors, and have one value that is not used here.
const IGNORED: [&str; 15] = [
    "USE_DYNAMIC_PFC_THRESHOLD",
    "PAUSE_TIME",
    "TOPOLOGY_FILE",
    "FLOW_FILE",
    "TRACE_FILE",
    "TRACE_OUTPUT_FILE",
    "FCT_OUTPUT_FILE",
    "PFC_OUTPUT_FILE",
    "ENABLE_TRACE",
    "QLEN_MON_FILE",
    "QLEN_MON_START",
    "QLEN_MON_END",
    "PINT_LOG_BASE",
    "PINT_PROB",
    "NVLS_ENABLE",
];

/// Reads a configuration; what is wrong with it goes to `found`.
pub fn parse(text: &str, found: &mut Diagnostics) -> Config {
    let mut config = Config::default();
    let mut tokens = Tokens::new(text);
    while let Some(key) = tokens.next() {
        entry(&mut config, &key, &mut tokens, found);
    }
    config
}

fn entry(config: &mut Config, key: &Token<'_>, tokens: &mut Tokens<'_>, found: &mut Diagnostics) {
    let mut value = || tokens.next().unwrap_or(Token { text: "", line: key.line });
    match key.text {
        "CC_MODE" => config.cc_mode = value().parse(cc_mode, found),
        "ENABLE_QCN" => config.enable_qcn = value().parse(flag, found),
        "PACKET_PAYLOAD_SIZE" => config.packet_payload_size = value().parse(payload, found),
        "SIMULATOR_STOP_TIME" => config.simulator_stop_time = stop_time(&value(), found),
        "ALPHA_RESUME_INTERVAL" => config.alpha_resume_interval = value().parse(whole_microseconds, found),
        "RATE_DECREASE_INTERVAL" => config.rate_decrease_interval = value().parse(whole_microseconds, found),
        "RP_TIMER" => config.rp_timer = value().parse(whole_microseconds, found),
        "CLAMP_TARGET_RATE" => config.clamp_target_rate = value().parse(flag, found),
        "EWMA_GAIN" => config.ewma_gain = value().parse(units::probability, found),
        "FAST_RECOVERY_TIMES" => config.fast_recovery_times = value().number(key.text, found),
        "RATE_AI" => config.rate_ai = value().parse(units::rate, found),
        "RATE_HAI" => config.rate_hai = value().parse(units::rate, found),
        "MIN_RATE" => config.min_rate = value().parse(units::rate, found),
        "DCTCP_RATE_AI" => config.dctcp_rate_ai = value().parse(units::rate, found),
        "ERROR_RATE_PER_LINK" => config.error_rate_per_link = value().parse(units::probability, found),
        "L2_CHUNK_SIZE" => config.l2_chunk_size = value().number(key.text, found),
        "L2_ACK_INTERVAL" => config.l2_ack_interval = value().number(key.text, found),
        "L2_BACK_TO_ZERO" => config.l2_back_to_zero = value().parse(flag, found),
        "HAS_WIN" => config.has_win = value().parse(flag, found),
        "GLOBAL_T" => config.global_t = value().parse(flag, found),
        "VAR_WIN" => config.var_win = value().parse(flag, found),
        "FAST_REACT" => config.fast_react = value().parse(flag, found),
        "U_TARGET" => config.u_target = value().parse(positive, found),
        "MI_THRESH" => config.mi_thresh = value().number(key.text, found),
        "INT_MULTI" => config.int_multi = value().number::<u64>(key.text, found).map(|m| m.max(1)),
        "MULTI_RATE" => config.multi_rate = value().parse(flag, found),
        "SAMPLE_FEEDBACK" => config.sample_feedback = value().parse(flag, found),
        "RATE_BOUND" => config.rate_bound = value().parse(flag, found),
        "ACK_HIGH_PRIO" => config.ack_high_prio = value().parse(flag, found),
        "LINK_DOWN" => config.link_down = link_down([value(), value(), value()], found),
        "KMIN_MAP" => config.kmin = map(tokens, found, |t, f| t.number("a threshold", f)),
        "KMAX_MAP" => config.kmax = map(tokens, found, |t, f| t.number("a threshold", f)),
        "PMAX_MAP" => config.pmax = map(tokens, found, |t, f| t.parse(units::probability, f)),
        "BUFFER_SIZE" => config.buffer_size = value().number(key.text, found),
        known if IGNORED.contains(&known) => {
            value();
        }
        _ => {
            found.warning(key.line, key.text, "unknown key; it and what follows on its line are not read");
            tokens.skip_line(key.line);
        }
    }
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

fn stop_time(token: &Token<'_>, found: &mut Diagnostics) -> Option<u64> {
    match units::time(token.text) {
        Ok(time) => Some(time),
        Err(_) if token.text.parse::<f64>().is_ok_and(|t| t > 1e6) => {
            found.warning(token.line, token.text, "later than simulated time can go; there is no stop time then");
            Some(u64::MAX)
        }
        Err(message) => {
            found.error(token.line, token.text, message);
            None
        }
    }
}

fn link_down([after, a, b]: [Token<'_>; 3], found: &mut Diagnostics) -> Option<LinkDown> {
    let down = LinkDown {
        after: after.parse(units::microseconds, found)?,
        a: a.number("a node", found)?,
        b: b.number("a node", found)?,
    };
    // `0 0 0` stands for none.
    (down.a != down.b).then_some(down)
}

fn map<T>(
    tokens: &mut Tokens<'_>,
    found: &mut Diagnostics,
    read: impl Fn(&Token<'_>, &mut Diagnostics) -> Option<T>,
) -> RateMap<T> {
    let mut map = RateMap::new();
    let Some(count) = tokens.next().and_then(|t| t.number::<usize>("the number of pairs", found)) else { return map };
    for _ in 0..count {
        let Some([rate, value]) = tokens.row::<2>("pair of rate and value", found) else { break };
        if let (Some(rate), Some(value)) = (rate.parse(units::rate, found), read(&value, found)) {
            map.insert(rate, value);
        }
    }
    map
}

#[cfg(test)]
mod tests {
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
        assert!(parsed("KMAX_MAP 3 1000").1[0].contains("inside a pair"));
        assert!(parsed("BUFFER_SIZE").1[0].contains("whole number"));
        assert_eq!(parsed("LINK_DOWN 500 2 3").0.link_down, Some(LinkDown { after: 500_000_000, a: 2, b: 3 }));
    }
}
