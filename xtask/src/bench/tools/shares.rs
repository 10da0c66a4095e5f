//! Two senders through one bottleneck to one receiving process.

use std::fs::File;
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::shares::Arrivals;
use super::libudt::address;
use super::relay::Path;
use super::{OPENING, Tools};

/// Interval of the receiver's records, in seconds.
const INTERVAL: &str = "0.1";
/// Senders run this much longer than the measured time, and so does the receiver.
const REST: Duration = Duration::from_secs(1);
/// Seconds after which libudt's receivers and senders end by themselves.
const FORGOTTEN: u64 = 120;

/// Identifies a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Side {
    Farhaul,
    Libudt,
}

impl Side {
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Farhaul => "farhaul",
            Self::Libudt => "libudt",
        }
    }
}

impl Tools {
    /// The rates of two senders, bit/s, while both are active. The second starts once data of the first arrives.
    pub(in super::super) fn shares(
        &self,
        receivers: Side,
        senders: [Side; 2],
        seconds: u64,
        path: &Path,
    ) -> Result<[f64; 2]> {
        let mut receiver = self.receivers(receivers)?;
        let relay = self.relay(path, address(&receiver.wait_for_line("listening ", OPENING)?)?)?;
        let mut running = Vec::new();
        for (connection, side) in senders.into_iter().enumerate() {
            running.push(self.sender(side, relay.address())?);
            let first = format!("{{\"event\":\"interval\",\"connection\":{connection},");
            receiver.wait_for_line(&first, OPENING).with_context(|| format!("nothing of {} arrived", side.name()))?;
        }
        receiver.work(Duration::from_secs(seconds) + REST)?;
        // The relay stops first, because the end of a program would disturb the path's report.
        relay.stop()?;
        drop(running);
        let received = receiver.interrupt();
        Arrivals::read(&received.records()).shares(seconds as f64)
    }

    /// A process that accepts two connections and reports the data of each.
    fn receivers(&self, side: Side) -> Result<Process> {
        match side {
            Side::Farhaul => Process::start(self.example("sink").args(["127.0.0.1:0", "2", INTERVAL])),
            Side::Libudt => {
                let mut command = self.libudt_peer(&["listen", "127.0.0.1:0", "recv", "--unchecked"])?;
                command.args(["--sockets", "2", "--interval", INTERVAL, "--mss", &PACKET_SIZE.to_string()]);
                Process::start(command.args(["--timeout", &FORGOTTEN.to_string()]))
            }
        }
    }

    /// A process that sends until it is stopped.
    fn sender(&self, side: Side, to: SocketAddr) -> Result<Process> {
        let (to, packet_size) = (to.to_string(), PACKET_SIZE.to_string());
        match side {
            Side::Farhaul => {
                let mut command = self.measured(&self.farhaul_path());
                command.args(["pipe", "--plain", "--connect", &to, "--mtu", &packet_size]);
                let endless = File::open("/dev/zero").context("/dev/zero")?;
                Process::start_fed(&mut command, Stdio::from(endless))
            }
            Side::Libudt => {
                let mut command = self.libudt_peer(&["connect", &to, "send", "--mss", &packet_size])?;
                let forgotten = FORGOTTEN.to_string();
                command.args(["--seconds", &forgotten, "--timeout", &forgotten, "--linger", "0"]);
                Process::start(&mut command)
            }
        }
    }
}
