//! The conformance kit on each congestion control through [`AnyCca`], and that nothing is lost on the way through it.

use super::*;
use crate::kit::cca::{Drive, HERE, Place};
use crate::kit::{CcaKit, Verdict, assert_passed};
use bytemuck::Pod;
use wormhole_kernel::cca::CongestionControl;

const TIME_MODULUS: Span = Span::from_ns(1 << 24);
const BYTE_MODULUS: u64 = 1 << 29;
const STEPS: usize = 10_000;

fn hpcc(config: HpccConfig) -> AnyCca {
    AnyCca::Hpcc(Hpcc::new(config))
}

/// Every model, each of them in several configurations.
fn models() -> [AnyCca; 14] {
    let d = HpccConfig::default();
    [
        hpcc(d),
        hpcc(HpccConfig { time_modulus: TIME_MODULUS, byte_modulus: BYTE_MODULUS, max_stage: 5, ..d }),
        hpcc(HpccConfig { multi_rate: true, sample_feedback: true, ..d }),
        hpcc(HpccConfig { multi_rate: true, rate_quantum: 10_000_000, window: WindowRule::Unlimited, ..d }),
        hpcc(HpccConfig { fast_react: false, sample_feedback: true, min_rate: BitRate(0), rate_quantum: 1 << 40, ..d }),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default())),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig {
            clamp_target: true,
            min_rate: BitRate(0),
            window: WindowRule::BdpAtRate,
            ..DcqcnConfig::default()
        })),
        AnyCca::Timely(Timely::new(TimelyConfig::default())),
        AnyCca::Timely(Timely::new(TimelyConfig {
            min_rate: BitRate(0),
            window: WindowRule::BdpAtRate,
            ..TimelyConfig::default()
        })),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig::default())),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig {
            min_rate: BitRate(0),
            additive: BitRate(0),
            window: WindowRule::Bdp,
            ..DctcpConfig::default()
        })),
        AnyCca::Swift(Swift::new(SwiftConfig::default())),
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Bytes(9_000))),
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::BdpPercent(150))),
    ]
}

/// What the telemetry of a model wraps at, if it does.
fn modulus(model: &AnyCca) -> Option<(Span, u64)> {
    (model.id() == models()[1].id()).then_some((TIME_MODULUS, BYTE_MODULUS))
}

fn for_each(test: impl Fn(&AnyCca)) {
    for model in models() {
        test(&model);
    }
}

#[test]
fn every_model_passes_the_kit() {
    for_each(|model| {
        let kit = CcaKit::new(model);
        let checks = match modulus(model) {
            Some((time, bytes)) => kit.with_wrapping_telemetry(time, bytes).checks(),
            None => kit.checks(),
        };
        assert_passed(&checks);
        let passed = checks.iter().filter(|check| check.verdict == Verdict::Passed).count();
        assert_eq!(passed, checks.len() - 1, "all but what only foreign code can do: {checks:?}");
    });
}

/// Whether two states, which may be the wrapped and the bare one, are equal bit for bit.
fn are_equal<A: Pod, B: Pod>(one: &A, other: &B) -> bool {
    let (one, other) = (bytemuck::bytes_of(one), bytemuck::bytes_of(other));
    let common = one.len().min(other.len());
    one[..common] == other[..common] && one[common..].iter().chain(&other[common..]).all(|byte| *byte == 0)
}

#[test]
fn positions_not_yet_set_stay_so() {
    assert_eq!(position(distance(0, 7_000), 9_000), 0);
    assert_eq!(position(distance(7_000, 7_000), 9_000), 9_000);
    assert_eq!(position(distance(6_000, 7_000), 9_000), 8_000);
    assert_eq!(distance(0, 7_000), distance(0, 9_000));
}

#[test]
fn spans_are_nanoseconds_with_their_fraction() {
    assert_eq!([0, 2_000, 2_500].map(|ps| nanoseconds(Span(ps))), [0.0, 2.0, 2.5]);
}

#[test]
fn repeated_steps_end_where_nothing_changes() {
    let steps = core::cell::Cell::new(0);
    let halved = |value: f64| {
        steps.set(steps.get() + 1);
        (value / 2.0).max(1.0)
    };
    assert_eq!((repeated(12.0, 2, halved), steps.take()), (3.0, 2));
    assert_eq!((repeated(12.0, 1_000, halved), steps.take()), (1.0, 5), "the last finds that it stays");
}

/// The state three rounds like that since `before` later, and whether it counts as the present one.
fn coasted<C: CongestionControl>(model: &C, drive: &Drive<'_, C>, before: &C::State) -> (bool, C::State) {
    let now = relative(drive);
    let mut later = now;
    model.coast(&mut later, before, 3);
    (model.repeats(&now, &later), later)
}

fn relative<C: CongestionControl>(drive: &Drive<'_, C>) -> C::State {
    drive.relative().expect("every model here has one")
}

#[test]
fn every_call_arrives_through_the_wrapper() {
    fn compare<C: CongestionControl>(bare: C, any: AnyCca) {
        assert_eq!((bare.id(), bare.needs()), (any.id(), any.needs()));
        let (model, wrapped, modulus) = (bare, any, modulus(&any));
        let (mut bare, mut any) = (Drive::new(&model, modulus, 4, HERE), Drive::new(&wrapped, modulus, 4, HERE));
        let mut before = (relative(&bare), relative(&any));
        for step in 0..STEPS {
            if step % 1_000 == 999 {
                let place = Place { time: Span(step as u64), bytes: step as u64, sent: step as u64 };
                bare.move_to(place);
                any.move_to(place);
            }
            assert_eq!(bare.step(), any.step(), "step {step}");
            let (repeats, state) = coasted(&model, &bare, &before.0);
            let (any_repeats, any_state) = coasted(&wrapped, &any, &before.1);
            assert!(repeats == any_repeats && are_equal(&state, &any_state), "step {step}");
            if step % 3 == 0 {
                before = (relative(&bare), relative(&any));
            }
        }
    }
    for_each(|model| match *model {
        AnyCca::Hpcc(bare) => compare(bare, *model),
        AnyCca::Dcqcn(bare) => compare(bare, *model),
        AnyCca::Timely(bare) => compare(bare, *model),
        AnyCca::Dctcp(bare) => compare(bare, *model),
        AnyCca::Swift(bare) => compare(bare, *model),
        AnyCca::FixedWindow(bare) => compare(bare, *model),
        // That calls arrive in a plugin, tests/tests/plugins.rs shows.
        #[cfg(feature = "plugin")]
        AnyCca::ForeignCca(_) => {}
    });
}

#[test]
fn configurations_have_different_ids() {
    let models = models();
    for (i, one) in models.iter().enumerate() {
        for other in &models[..i] {
            assert_ne!(one.id(), other.id());
        }
    }
}

#[test]
fn headers_are_those_of_ns3() {
    let bytes = |model: &AnyCca| (model.needs().header_bytes, model.needs().telemetry);
    for_each(|model| match model {
        AnyCca::Hpcc(_) => assert_eq!(bytes(model), (42, true)),
        AnyCca::Timely(_) | AnyCca::Swift(_) => assert_eq!(bytes(model), (8, false)),
        _ => assert_eq!(bytes(model), (0, false)),
    });
}

#[test]
fn states_stay_small() {
    assert_eq!(size_of::<AnyCcaState>(), 256);
}
