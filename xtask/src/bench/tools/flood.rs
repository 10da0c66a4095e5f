//! An encrypted transfer while its listener is flooded with callers, by the initial_flood example of crates/farhaul.

use std::net::SocketAddr;

use anyhow::{Context, Result};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::farhaul::END;
use super::{Amount, OPENING, Tools, needed, patience};

/// The beginning of the listener's records of an interval.
const INTERVAL: &str = "{\"event\":\"interval\"";
/// The rate of the transfer: it leaves processors to the flood.
const RATE: &str = "1gbit";

impl Tools {
    /// A transfer at 1 Gbit/s over loopback for `seconds`, beside `flood` first packets of callers per second.
    pub(in super::super) fn flooded(&self, seconds: u64, flood: u64) -> Result<Measured> {
        let mut listener = Process::start(self.bench(None).args(["--listen", "127.0.0.1:0", "--interval", "0.25"]))?;
        let address: SocketAddr = listener.wait_for_text("local", OPENING)?.parse().context("its address")?;
        let to = address.to_string();
        let mtu = PACKET_SIZE.to_string();
        let time = seconds.to_string();
        let mut client = self.bench(None);
        client.args(["--connect", &to, "--mtu", &mtu, "--seconds", &time, "--rate", RATE]);
        let amount = Amount::Seconds(seconds);
        let sending = Process::start(&mut client)?;
        // The flow exists when its first interval is over.
        listener.wait_for_line(INTERVAL, OPENING)?;
        let flood_arguments = [&to, &flood.to_string(), &time];
        let flooding = (flood > 0).then(|| Process::start(self.example("initial_flood").args(flood_arguments)));
        let sending = sending.finish(patience(amount))?;
        let mut notes = Vec::new();
        if let Some(flooding) = flooding.transpose()? {
            let sent = needed(&flooding.finish(patience(amount))?.record("sent")?, &["sent"])?;
            notes.push(format!("the flood sent {:.0} packets/s", sent / seconds as f64));
        }
        let receiving = listener.interrupt();
        let mut figures = vec![(Quantity::Goodput, needed(&sending.record(END)?, &["goodput_bps"])?)];
        figures.extend(receiving.peak_memory.map(|bytes| (Quantity::ReceiverMemory, bytes)));
        Ok(Measured { figures, notes })
    }
}
