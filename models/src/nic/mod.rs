//! How a NIC port shares its link among queue pairs.

mod ns3_round_robin;
mod round_robin;

pub use ns3_round_robin::Ns3RoundRobin;
pub use round_robin::RoundRobin;
