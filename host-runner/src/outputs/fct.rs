//! `fct.csv` and the rows of `fct.txt`.

use crate::input::fct::FctRow;
use crate::simulate::Outcome;
use std::io::{self, Write};
use wormhole_kernel::units::PS_PER_NS;
use wormhole_kernel::{FlowEnd, Span};

/// Writes `fct.csv`: a row per finished flow, in order of completion.
///
/// `ideal_ns` is the least FCT the path allows (the flow alone, at line rate, to the acknowledgement of its last
/// byte), so `slowdown` is at least 1; it differs from the last column of `fct.txt`, which is ns-3's estimate.
///
/// # Errors
/// Those of `out`.
pub fn write_fct_csv(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "flow,src,dst,src_port,dst_port,priority,bytes,start_ns,fct_ns,ideal_ns,slowdown,mean_rtt_ns,end")?;
    for record in &outcome.flows {
        let done = &record.completion;
        let end = match done.end() {
            FlowEnd::Done => "done",
            FlowEnd::GaveUp => "gave_up",
        };
        writeln!(
            out,
            "{},{},{},{},{},{},{},{},{},{},{:.6},{},{end}",
            record.number,
            record.src.0,
            record.dst.0,
            record.src_port,
            record.dst_port,
            record.priority,
            done.bytes,
            nanoseconds(Span(done.start.0)),
            nanoseconds(done.fct),
            nanoseconds(record.ideal),
            done.fct.0 as f64 / record.ideal.0.max(1) as f64,
            nanoseconds(done.mean_rtt),
        )?;
    }
    Ok(())
}

/// Nanoseconds with as many decimals as picoseconds need.
pub(super) fn nanoseconds(span: Span) -> String {
    let (whole, rest) = (span.0 / PS_PER_NS, span.0 % PS_PER_NS);
    if rest == 0 { whole.to_string() } else { format!("{whole}.{rest:03}") }
}

/// The rows of `fct.txt`, in order of completion: the columns of ns-3, whole nanoseconds. Flows that were given up
/// have none.
pub fn fct_rows(outcome: &Outcome) -> impl Iterator<Item = FctRow> + '_ {
    outcome.flows.iter().filter(|r| r.completion.end() == FlowEnd::Done).map(|record| {
        let done = &record.completion;
        FctRow {
            src: record.src.0,
            dst: record.dst.0,
            src_port: record.src_port,
            dst_port: record.dst_port,
            bytes: done.bytes,
            start_ns: done.start.as_ns(),
            fct_ns: done.fct.as_ns(),
            ideal_ns: record.ns3_ideal_ns,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_become_decimals() {
        assert_eq!(nanoseconds(Span(2_000)), "2");
        assert_eq!(nanoseconds(Span(2_040)), "2.040");
    }
}
