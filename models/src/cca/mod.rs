//! Congestion control, one algorithm a file.
//!
//! | model | signal | source | equal to ns-3 | left out |
//! |---|---|---|---|---|
//! | [`Hpcc`] | telemetry of every hop | SIGCOMM 2019; `RdmaHw::UpdateRateHp` | yes | PINT |
//! | [`Dcqcn`] | ECN marks | SIGCOMM 2015; `RdmaHw::cnp_received_mlx` | yes | byte counter; CNPs of their own |
//! | [`Timely`] | gradient of the round-trip time | SIGCOMM 2015; `RdmaHw::UpdateRateTimely` | yes | - |
//! | [`Dctcp`] | share of ECN marks | SIGCOMM 2010, RFC 8257; `RdmaHw::HandleAckDctcp` | yes | slow start |
//! | [`Swift`] | delay against a target | SIGCOMM 2020 | not in it | endpoint window, hop count, fast recovery |
//! | [`FixedWindow`] | none | - | as `HAS_WIN` with a rate that stays | everything |
//!
//! "ns-3" is the RDMA fork of the HPCC paper; its functions are cited where they are reproduced.
//!
//! Rates are whole bits per second, as in ns-3 (`DataRate`): a product with a float is truncated. Floats are doubles,
//! evaluated from left to right; only `+ - * /`, square roots and comparisons touch them, all of which IEEE 754
//! rounds in one way, so every target computes the same bits.

mod any;
mod dcqcn;
mod dctcp;
mod fixed;
mod hpcc;
#[cfg(test)]
mod kit;
mod round_trips;
mod swift;
mod timely;
mod window;

pub use any::{AnyCca, AnyCcaState};
pub use dcqcn::{Dcqcn, DcqcnConfig};
pub use dctcp::{Dctcp, DctcpConfig};
pub use fixed::{FixedWindow, FixedWindowConfig};
pub use hpcc::{Hpcc, HpccConfig};
pub use swift::{Swift, SwiftConfig};
pub use timely::{Timely, TimelyConfig};
pub use window::WindowRule;

use wormhole_kernel::units::{BitRate, PS_PER_NS, Span};

/// The distance of a position that is not set yet: no flow is that long.
const UNSET: u64 = 1 << 63;

/// A byte position as a distance from `acked`. 0, which stands for "not set yet", is nowhere.
fn distance(position: u64, acked: u64) -> u64 {
    if position == 0 { UNSET } else { position.wrapping_sub(acked) }
}

/// The inverse of [`distance`].
fn position(distance: u64, acked: u64) -> u64 {
    if distance == UNSET { 0 } else { distance.wrapping_add(acked) }
}

/// `value` after so many steps; few are taken once it stands still.
fn repeated(mut value: f64, steps: u64, step: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..steps {
        let next = step(value);
        if next.to_bits() == value.to_bits() {
            break;
        }
        value = next;
    }
    value
}

/// A span in nanoseconds, as a float: exact for whole nanoseconds, which is all that profile `ns3` knows.
fn nanoseconds(span: Span) -> f64 {
    if span.0.is_multiple_of(PS_PER_NS) { (span.0 / PS_PER_NS) as f64 } else { span.0 as f64 / PS_PER_NS as f64 }
}

/// `rate * factor` as ns-3 has it (`DataRate::operator*`): truncated to whole bits per second.
fn scaled(rate: BitRate, factor: f64) -> BitRate {
    BitRate((rate.0 as f64 * factor) as u64)
}
