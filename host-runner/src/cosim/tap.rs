//! `wormhole cosim tap`: a fabric between network interfaces, in real time.
//!
//! Simulated time is that of the clock on the wall, and never ahead of it. What comes in by an interface enters the
//! fabric at once; what leaves the fabric goes out when its time has come, or as soon after that as the machine can.

use super::bridge::{Bridge, Delivery};
use super::device::Device;
use super::lateness::Lateness;
use super::pacer::Pacer;
use super::{Break, CosimArgs, Fault, run};
use crate::ending::ExitStatus;
use crate::input::units;
use clap::{ArgGroup, Args};
use std::io::{self, Write};
use wormhole_kernel::{SimTime, Span};

/// Frames that are taken from an interface before others have their turn.
const ROUND: usize = 256;

/// If there is much to do, interfaces have their turn after so much simulated time.
const SLICE: Span = Span::from_us(100);

/// A simulation so far behind the clock takes no frames in: they wait, and at last are lost, in the system's queues.
const FAR_BEHIND: Span = Span::from_us(1_000_000);

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("devices").required(true).multiple(true).args(["tap", "interface"])))]
pub(crate) struct TapArgs {
    #[command(flatten)]
    pub(super) cosim: CosimArgs,
    /// A TAP device that is a host of the fabric; it is made if it is not there, and is gone in the end. May be given
    /// several times. Without =HOST the first device is host 0, the next host 1, and so on: TAP devices first, then
    /// interfaces.
    #[arg(long, value_name = "NAME[=HOST]", value_parser = place)]
    tap: Vec<Place>,
    /// An interface that is there, by a packet socket, such as an Ethernet card or an end of a veth pair.
    #[arg(long, value_name = "NAME[=HOST]", value_parser = place)]
    interface: Vec<Place>,
    /// End with exit code 13 if a frame is to go out later than this after its time, such as 500us. Without it, late
    /// frames go out as soon as possible.
    #[arg(long, value_name = "TIME", value_parser = span)]
    hard_limit: Option<Span>,
}

/// A device, and the host that it is.
#[derive(Clone, Debug)]
struct Place {
    name: String,
    host: Option<u32>,
}

fn place(text: &str) -> Result<Place, String> {
    let Some((name, host)) = text.split_once('=') else { return Ok(Place { name: text.to_owned(), host: None }) };
    let host = host.parse().map_err(|_| format!("`{host}` is not the number of a host"))?;
    Ok(Place { name: name.to_owned(), host: Some(host) })
}

fn span(text: &str) -> Result<Span, String> {
    units::time(text).map(Span)
}

/// A device and what has passed it.
struct Port {
    device: Device,
    host: u32,
    received: u64,
    sent: u64,
    /// Frames that the device did not take.
    refused: u64,
}

impl TapArgs {
    /// Runs until a signal, `--until`, the stop time of the scenario, or a fault.
    ///
    /// # Errors
    /// Those of files, and of standard output.
    pub(super) fn execute(&self) -> io::Result<ExitStatus> {
        let places = || self.tap.iter().chain(&self.interface).zip(0..);
        let hosts: Vec<u32> = places().map(|(place, index)| place.host.unwrap_or(index)).collect();
        let mut said = Ok(());
        let status = run(
            &self.cosim,
            &hosts,
            || self.open(&hosts),
            |ports, bridge| {
                let mut session = Session { bridge, ports, lateness: Lateness::new(), hard_limit: self.hard_limit };
                let ran = session.run();
                said = session.report();
                ran
            },
        )?;
        said.map(|()| status)
    }

    /// Opens the devices, which are these hosts.
    fn open(&self, hosts: &[u32]) -> Result<Vec<Port>, Fault> {
        let opener = |kind: &'static str, open: fn(&str) -> io::Result<Device>| {
            move |Place { name, .. }: &Place| open(name).map_err(|error| Fault::Io(format!("{kind} {name}"), error))
        };
        let taps = self.tap.iter().map(opener("TAP device", Device::tap));
        let devices = taps.chain(self.interface.iter().map(opener("interface", Device::interface)));
        let port = |device, host| Port { device, host, received: 0, sent: 0, refused: 0 };
        devices.zip(hosts).map(|(device, &host)| Ok(port(device?, host))).collect()
    }
}

/// A fabric between devices.
struct Session<'b, 's> {
    bridge: &'b mut Bridge<'s>,
    ports: Vec<Port>,
    lateness: Lateness,
    hard_limit: Option<Span>,
}

impl Session<'_, '_> {
    /// Runs the fabric by the clock.
    fn run(&mut self) -> Result<(), Break> {
        let of_clock = |error| Fault::Io("the clock".into(), error);
        let pacer = Pacer::start().map_err(of_clock)?;
        for Port { device, host, .. } in &self.ports {
            eprintln!("{} is host {host}", device.name());
        }
        eprintln!("running in real time; SIGINT or SIGTERM ends it");
        loop {
            let now = pacer.now().min(self.bridge.until());
            if now.since(self.bridge.now()) < FAR_BEHIND {
                self.receive(now)?;
            }
            let next = self.bridge.next_event_time();
            self.bridge.run_until(next.map_or(now, |next| now.min(next + SLICE)))?;
            self.send(&pacer)?;
            if self.bridge.now() >= self.bridge.until() {
                return Ok(());
            }
            // In the past if there is more to do: then it only looks for signals.
            let next = self.bridge.next_event_time().unwrap_or(SimTime::MAX).min(self.bridge.until());
            if pacer.wait(self.ports.iter().map(|port| &port.device), next).map_err(of_clock)? {
                return Ok(());
            }
        }
    }

    /// Takes in what has come.
    fn receive(&mut self, now: SimTime) -> Result<(), Fault> {
        for (index, Port { device, received, .. }) in self.ports.iter_mut().enumerate() {
            for _ in 0..ROUND {
                match device.receive() {
                    Ok(Some(frame)) => self.bridge.receive(now, index, frame.to_vec()),
                    Ok(None) => break,
                    Err(error) => return Err(Fault::Io(device.name().into(), error)),
                }
                *received += 1;
            }
        }
        Ok(())
    }

    /// Hands out what has arrived.
    fn send(&mut self, pacer: &Pacer) -> Result<(), Fault> {
        while let Some(Delivery { at, port, frame }) = self.bridge.poll() {
            let late = pacer.now().since(at);
            if let Some(limit) = self.hard_limit.filter(|&limit| late > limit) {
                return Err(Fault::Late { late, limit });
            }
            let Port { device, sent, refused, .. } = &mut self.ports[port];
            if device.send(&frame).map_err(|error| Fault::Io(device.name().into(), error))? {
                self.lateness.record(late);
                *sent += 1;
            } else {
                *refused += 1;
            }
        }
        Ok(())
    }

    /// Says what has passed the devices, and how late.
    fn report(&self) -> io::Result<()> {
        let mut out = io::stdout();
        writeln!(out, "{:<16} {:>6} {:>10} {:>10} {:>10}", "device", "host", "in", "out", "not taken")?;
        for Port { device, host, received, sent, refused } in &self.ports {
            writeln!(out, "{:<16} {host:>6} {received:>10} {sent:>10} {refused:>10}", device.name())?;
        }
        write!(out, "{}", self.lateness)
    }
}
