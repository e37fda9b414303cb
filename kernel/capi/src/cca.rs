//! Congestion controls from structs: parameters by name, with their ranges.

use crate::constants::{WH_CCA_VALUES, WhCcaKind};
use crate::status::WhStatus;
use crate::structs::WhCca;
use core::ffi::CStr;
use core::ops::RangeInclusive;
use wormhole_kernel::units::PS_PER_NS;
use wormhole_kernel::{BitRate, Span};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};

/// Whole numbers up to here are exact in a float.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;
/// No rate is higher, bit/s.
const MOST_RATE: f64 = 1e15;
/// A share of 1.
const SHARE: RangeInclusive<f64> = 0.0..=1.0;
/// A share of 1 that something is divided by.
const PART: RangeInclusive<f64> = 1e-6..=1.0;

/// Where a parameter lives, and what it may be.
enum Field<'c> {
    Real(&'c mut f64, RangeInclusive<f64>),
    Count(&'c mut u32),
    Bytes(&'c mut u64),
    /// Bits per second.
    Rate(&'c mut BitRate),
    /// Picoseconds, and the least of them.
    Time(&'c mut Span, u64),
    Flag(&'c mut bool),
    /// 0: unlimited; 1: bandwidth-delay product; 2: that at the present rate.
    Window(&'c mut WindowRule),
}
use Field::{Bytes, Count, Flag, Rate, Real, Time, Window};

impl Field<'_> {
    fn get(&self) -> f64 {
        match self {
            Real(value, _) => **value,
            Count(value) => f64::from(**value),
            Bytes(value) => **value as f64,
            Rate(value) => value.0 as f64,
            Time(value, _) => value.0 as f64,
            Flag(value) => f64::from(u8::from(**value)),
            Window(rule) => f64::from(**rule as u8),
        }
    }

    /// Sets the parameter, unless it may not have this value.
    fn set(&mut self, value: f64) -> Result<(), WhStatus> {
        let range = match self {
            Real(_, range) => range.clone(),
            Count(_) => 0.0..=f64::from(u32::MAX),
            Bytes(_) => 0.0..=MOST_WHOLE,
            Rate(_) => 0.0..=MOST_RATE,
            Time(_, least) => *least as f64..=MOST_WHOLE,
            Flag(_) => 0.0..=1.0,
            Window(_) => 0.0..=2.0,
        };
        let is_whole = matches!(self, Real(..)) || (value as u64) as f64 == value;
        // No range holds what is not a number.
        if !range.contains(&value) || !is_whole {
            return Err(WhStatus::BadParameter);
        }
        match self {
            Real(field, _) => **field = value,
            Count(field) => **field = value as u32,
            Bytes(field) => **field = value as u64,
            Rate(field) => **field = BitRate(value as u64),
            Time(field, _) => **field = Span(value as u64),
            Flag(field) => **field = value != 0.0,
            Window(field) => **field = [WindowRule::Unlimited, WindowRule::Bdp, WindowRule::BdpAtRate][value as usize],
        }
        Ok(())
    }
}

/// Parameters of [`FixedWindow`], of which the first that is not 0 counts.
struct FixedParameters {
    bytes: u64,
    bdp_percent: u64,
    window: WindowRule,
}

/// The configuration of one congestion control.
enum Config {
    Hpcc(HpccConfig),
    Dcqcn(DcqcnConfig),
    Timely(TimelyConfig),
    Dctcp(DctcpConfig),
    Swift(SwiftConfig),
    Fixed(FixedParameters),
}

impl Config {
    fn defaults(kind: WhCcaKind) -> Config {
        match kind {
            WhCcaKind::Hpcc => Config::Hpcc(HpccConfig::default()),
            WhCcaKind::Dcqcn => Config::Dcqcn(DcqcnConfig::default()),
            WhCcaKind::Timely => Config::Timely(TimelyConfig::default()),
            WhCcaKind::Dctcp => Config::Dctcp(DctcpConfig::default()),
            WhCcaKind::Swift => Config::Swift(SwiftConfig::default()),
            WhCcaKind::Fixed => Config::Fixed(FixedParameters { bytes: 0, bdp_percent: 0, window: WindowRule::Bdp }),
        }
    }

    /// Calls `each` with every parameter, in the order of [`WhCca::values`], which only grows at its end.
    fn each(&mut self, mut each: impl FnMut(&'static CStr, Field<'_>)) {
        match self {
            Config::Hpcc(c) => {
                each(c"target", Real(&mut c.target, PART));
                each(c"max_stage", Count(&mut c.max_stage));
                each(c"additive_bps", Rate(&mut c.additive));
                each(c"min_rate_bps", Rate(&mut c.min_rate));
                each(c"fast_react", Flag(&mut c.fast_react));
                each(c"multi_rate", Flag(&mut c.multi_rate));
                each(c"sample_feedback", Flag(&mut c.sample_feedback));
                each(c"window", Window(&mut c.window));
                each(c"time_modulus_ps", Time(&mut c.time_modulus, 0));
                each(c"byte_modulus", Bytes(&mut c.byte_modulus));
                each(c"rate_quantum_bps", Bytes(&mut c.rate_quantum));
            }
            Config::Dcqcn(c) => {
                each(c"gain", Real(&mut c.gain, SHARE));
                // Timers of no time would go off for ever in one instant.
                each(c"alpha_interval_ps", Time(&mut c.alpha_interval, PS_PER_NS));
                each(c"decrease_interval_ps", Time(&mut c.decrease_interval, PS_PER_NS));
                each(c"increase_interval_ps", Time(&mut c.increase_interval, PS_PER_NS));
                each(c"fast_recovery", Count(&mut c.fast_recovery));
                each(c"additive_bps", Rate(&mut c.additive));
                each(c"hyper_bps", Rate(&mut c.hyper));
                each(c"min_rate_bps", Rate(&mut c.min_rate));
                each(c"clamp_target", Flag(&mut c.clamp_target));
                each(c"window", Window(&mut c.window));
            }
            Config::Timely(c) => {
                each(c"alpha", Real(&mut c.alpha, SHARE));
                each(c"beta", Real(&mut c.beta, SHARE));
                each(c"low_ps", Time(&mut c.low, 0));
                each(c"high_ps", Time(&mut c.high, PS_PER_NS));
                each(c"min_rtt_ps", Time(&mut c.min_rtt, PS_PER_NS));
                each(c"additive_bps", Rate(&mut c.additive));
                each(c"hyper_bps", Rate(&mut c.hyper));
                each(c"min_rate_bps", Rate(&mut c.min_rate));
                each(c"window", Window(&mut c.window));
            }
            Config::Dctcp(c) => {
                each(c"gain", Real(&mut c.gain, SHARE));
                each(c"additive_bps", Rate(&mut c.additive));
                each(c"min_rate_bps", Rate(&mut c.min_rate));
                each(c"window", Window(&mut c.window));
            }
            Config::Swift(c) => {
                each(c"margin_ps", Time(&mut c.margin, 0));
                each(c"additive_packets", Real(&mut c.additive, 0.0..=1e6));
                each(c"beta", Real(&mut c.beta, SHARE));
                each(c"max_decrease", Real(&mut c.max_decrease, 0.0..=0.999));
                each(c"scaling_range_ps", Time(&mut c.scaling_range, 0));
                each(c"scaling_max_packets", Real(&mut c.scaling_max, 1e-3..=1e9));
                each(c"scaling_min_packets", Real(&mut c.scaling_min, 1e-6..=1e6));
                each(c"min_window_packets", Real(&mut c.min_window, PART));
            }
            Config::Fixed(c) => {
                each(c"bytes", Bytes(&mut c.bytes));
                each(c"bdp_percent", Bytes(&mut c.bdp_percent));
                each(c"window", Window(&mut c.window));
            }
        }
    }

    fn model(self) -> Result<AnyCca, WhStatus> {
        Ok(match self {
            Config::Hpcc(config) => AnyCca::Hpcc(Hpcc::new(config)),
            Config::Dcqcn(config) => AnyCca::Dcqcn(Dcqcn::new(config)),
            Config::Timely(config) => AnyCca::Timely(Timely::new(config)),
            Config::Dctcp(config) => AnyCca::Dctcp(Dctcp::new(config)),
            Config::Swift(config) if config.scaling_min >= config.scaling_max => return Err(WhStatus::BadParameter),
            Config::Swift(config) => AnyCca::Swift(Swift::new(config)),
            Config::Fixed(parameters) => AnyCca::FixedWindow(FixedWindow::new(match parameters {
                FixedParameters { bytes: 1.., .. } => FixedWindowConfig::Bytes(parameters.bytes),
                FixedParameters { bdp_percent: 1.., .. } => FixedWindowConfig::BdpPercent(parameters.bdp_percent),
                FixedParameters { window, .. } => FixedWindowConfig::Rule(window),
            })),
        })
    }
}

/// A congestion control with its defaults.
pub(crate) fn defaults(kind: WhCcaKind, struct_size: u32) -> WhCca {
    let (mut values, mut at) = ([0.0; WH_CCA_VALUES], 0);
    Config::defaults(kind).each(|_, field| {
        values[at] = field.get();
        at += 1;
    });
    WhCca { struct_size, kind: kind as u32, values }
}

/// The name of parameter `index`, if there are so many.
pub(crate) fn parameter(kind: WhCcaKind, index: usize) -> Option<&'static CStr> {
    let (mut found, mut at) = (None, 0);
    Config::defaults(kind).each(|name, _| {
        if at == index {
            found = Some(name);
        }
        at += 1;
    });
    found
}

/// The index of the parameter of this name.
///
/// # Errors
/// [`WhStatus::BadConstant`] for a kind that does not exist, [`WhStatus::UnknownName`].
pub(crate) fn index_of(cca: &WhCca, name: &CStr) -> Result<usize, WhStatus> {
    let kind = WhCcaKind::of(cca.kind)?;
    let known = (0..).map_while(|index| parameter(kind, index));
    known.into_iter().position(|known| known == name).ok_or(WhStatus::UnknownName)
}

/// The congestion control of a struct.
///
/// # Errors
/// [`WhStatus::BadConstant`] for a kind that does not exist; [`WhStatus::BadParameter`].
pub(crate) fn model(cca: &WhCca) -> Result<AnyCca, WhStatus> {
    let mut config = Config::defaults(WhCcaKind::of(cca.kind)?);
    let (mut result, mut at) = (Ok(()), 0);
    config.each(|_, mut field| {
        result = result.and(field.set(cca.values[at]));
        at += 1;
    });
    if cca.values[at..].iter().any(|value| *value != 0.0) {
        return Err(WhStatus::BadParameter);
    }
    result.and_then(|()| config.model())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::cca::CongestionControl;

    const KINDS: [WhCcaKind; 6] =
        [WhCcaKind::Hpcc, WhCcaKind::Dcqcn, WhCcaKind::Timely, WhCcaKind::Dctcp, WhCcaKind::Swift, WhCcaKind::Fixed];

    #[test]
    fn defaults_are_those_of_the_models() {
        let models = [
            AnyCca::Hpcc(Hpcc::new(HpccConfig::default())),
            AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default())),
            AnyCca::Timely(Timely::new(TimelyConfig::default())),
            AnyCca::Dctcp(Dctcp::new(DctcpConfig::default())),
            AnyCca::Swift(Swift::new(SwiftConfig::default())),
            AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp))),
        ];
        for (kind, want) in KINDS.into_iter().zip(models) {
            assert_eq!(model(&defaults(kind, 0)).map(|cca| cca.id()), Ok(want.id()), "{kind:?}");
        }
    }

    /// The identity of a model holds all of its parameters: each must change it, and take no nonsense.
    #[test]
    fn every_parameter_has_its_own_effect_and_a_range() {
        for kind in KINDS {
            let before = defaults(kind, 0);
            for index in (0..).take_while(|&index| parameter(kind, index).is_some()) {
                let name = parameter(kind, index).expect("a name");
                assert_eq!(index_of(&before, name), Ok(index));
                let with = |value: f64| {
                    let mut cca = before;
                    cca.values[index] = value;
                    model(&cca).map(|cca| cca.id())
                };
                let other = if before.values[index] == 1.0 { 0.0 } else { 1.0 };
                let changed = [other, 0.25, 2_000.0].into_iter().filter_map(|value| with(value).ok());
                assert!(changed.into_iter().any(|id| Ok(id) != with(before.values[index])), "{kind:?} {name:?}");
                for nonsense in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
                    assert_eq!(with(nonsense), Err(WhStatus::BadParameter), "{kind:?} {name:?} {nonsense}");
                }
            }
        }
    }

    #[test]
    fn what_is_no_parameter_is_refused() {
        let mut cca = defaults(WhCcaKind::Swift, 0);
        assert_eq!(index_of(&cca, c"gain"), Err(WhStatus::UnknownName));
        cca.values[15] = 1.0;
        assert_eq!(model(&cca).err(), Some(WhStatus::BadParameter));
        cca = defaults(WhCcaKind::Swift, 0);
        cca.values[6] = 1e6;
        assert_eq!(model(&cca).err(), Some(WhStatus::BadParameter));
        cca.kind = 99;
        assert_eq!(model(&cca).err(), Some(WhStatus::BadConstant));
    }
}
