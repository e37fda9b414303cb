//! `fct.csv` and the rows of `fct.txt`.

use super::rows::{Cell, Kind, Rows};
use crate::input::fct::FctRow;
use crate::scenario::Scenario;
use crate::simulate::{FlowRecord, Outcome};
use std::io;
use wormhole_kernel::{FlowEnd, Span};

/// The table of `fct.csv`: a row per finished flow, in order of completion.
///
/// `ideal_ns` is the least FCT the path allows (the flow alone, at line rate, to the acknowledgement of its last
/// byte), so `slowdown` is at least 1; it differs from the last column of `fct.txt`, which is ns-3's estimate.
///
/// # Errors
/// Those of the file that flows are in.
pub fn fct_table<'o>(scenario: &Scenario, outcome: &'o Outcome) -> io::Result<Rows<'o>> {
    const COLUMNS: [(&str, Kind); 13] = [
        ("flow", Kind::Count),
        ("src", Kind::Count),
        ("dst", Kind::Count),
        ("src_port", Kind::Count),
        ("dst_port", Kind::Count),
        ("priority", Kind::Count),
        ("bytes", Kind::Count),
        ("start_ns", Kind::Number),
        ("fct_ns", Kind::Number),
        ("ideal_ns", Kind::Number),
        ("slowdown", Kind::Number),
        ("mean_rtt_ns", Kind::Number),
        ("end", Kind::Text),
    ];
    let row = |number: u32, record: &FlowRecord| {
        let done = &record.completion;
        let end = match done.end() {
            FlowEnd::Done => "done",
            FlowEnd::GaveUp => "gave_up",
        };
        vec![
            number.into(),
            record.src.0.into(),
            record.dst.0.into(),
            u32::from(record.src_port).into(),
            u32::from(record.dst_port).into(),
            u32::from(record.priority).into(),
            done.bytes.into(),
            Span(done.start.0).into(),
            done.fct.into(),
            record.ideal.into(),
            Cell::Number(done.fct.0 as f64 / record.ideal.0.max(1) as f64, 6),
            done.mean_rtt.into(),
            end.into(),
        ]
    };
    let numbers = outcome.flows.numbers(scenario.flows.len())?;
    let rows = numbers.into_iter().zip(outcome.flows.iter());
    Ok(Rows::read(&COLUMNS, rows.map(move |(number, record)| Ok(row(number, &record?)))))
}

/// The rows of `fct.txt`, in order of completion: the columns of ns-3, whole nanoseconds. Flows that were given up
/// have none.
///
/// # Errors
/// Those of the file that flows are in.
pub fn fct_rows(outcome: &Outcome) -> impl Iterator<Item = io::Result<FctRow>> + '_ {
    let row = |record: FlowRecord| {
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
    };
    let is_done = |record: &io::Result<FlowRecord>| {
        record.as_ref().map_or(true, |record| record.completion.end() == FlowEnd::Done)
    };
    outcome.flows.iter().filter(is_done).map(move |record| record.map(row))
}
