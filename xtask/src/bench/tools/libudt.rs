//! The reference library, through our peer program on it (interop/README.md).

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::samples::{Figures, Quantity};
use super::relay::{Path, Relay};
use super::{Amount, Tools, cpu_per_gb, figures, needed, number, patience, retransmitted};

/// Buffers on loopback, where there is no bandwidth-delay product to speak of: as large as the library works well with.
const LOOPBACK_BUFFER: u64 = 64_000_000;
/// On a path, buffers are this many bandwidth-delay products: what its users are told to set.
const BUFFER_BDP: u64 = 2;
/// What one side waits for the other's close at the end.
const CLOSE_DELAY: Duration = Duration::from_secs(60);

impl Tools {
    /// One transfer, straight over loopback or through a relay that behaves like `path`.
    pub(in super::super) fn libudt_transfer(&self, amount: Amount, path: Option<&Path>) -> Result<Figures> {
        let time = patience(amount);
        let mut options = options(path.map_or(LOOPBACK_BUFFER, |path| BUFFER_BDP * path.bdp_bytes()));
        options.extend(["--timeout".into(), time.as_secs().to_string()]);
        // The receiver closes as soon as it has everything, and the sender waits for that: the application's
        // confirmation, like ours.
        let (recv, send) = match amount {
            Amount::Bytes(bytes) => (
                vec!["--expect".into(), bytes.to_string(), "--close-delay".into(), "0".into()],
                vec!["--bytes".into(), bytes.to_string(), "--close-delay".into(), CLOSE_DELAY.as_millis().to_string()],
            ),
            Amount::Seconds(seconds) => (vec![], vec!["--seconds".into(), seconds.to_string()]),
        };
        let mut server = self.libudt_peer(&["listen", "127.0.0.1:0", "recv", "--unchecked"])?;
        let mut server = Process::start(server.args(&options).args(&recv))?;
        let line = server.wait_for_line("listening ", Duration::from_secs(10))?;
        let address: SocketAddr = line.trim_start_matches("listening ").trim().parse().context("its address")?;
        let relay = path.map(|path| self.relay(path, address)).transpose()?;
        let to = relay.as_ref().map_or(address, Relay::address).to_string();
        let mut client = self.libudt_peer(&["connect", &to, "send", "--unchecked"])?;
        let sent = Process::start(client.args(&options).args(&send))?.record("sent_bytes", time)?;
        let received = server.record("received_bytes", time)?;
        relay.map_or(Ok(()), Relay::stop)?;
        let bytes = needed(&received, &["received_bytes"])?;
        ensure!(bytes > 0.0, "nothing was transferred");
        let cpu = |record, part| needed(record, &[part]);
        let seconds = cpu(&sent, "cpu_user_s")?
            + cpu(&sent, "cpu_system_s")?
            + cpu(&received, "cpu_user_s")?
            + cpu(&received, "cpu_system_s")?;
        Ok(figures([
            number(&received, &["goodput_bps"]).map(|rate| (Quantity::Goodput, rate)),
            number(&sent, &["peer_closed_s"]).map(|seconds| (Quantity::Completion, seconds)),
            Some(cpu_per_gb(seconds, bytes)),
            number(&sent, &["packets_retransmitted"])
                .zip(number(&sent, &["packets_sent"]))
                .map(|(again, sent)| retransmitted(again, sent)),
        ]))
    }

    fn libudt_peer(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(self.libudt()?);
        command.args(arguments);
        Ok(command)
    }
}

/// Packet size and buffers; the flow window must hold the buffer.
fn options(buffer: u64) -> Vec<String> {
    let packets = buffer / u64::from(PACKET_SIZE - 28) + 1;
    [("--mss", u64::from(PACKET_SIZE)), ("--fc", packets.max(32)), ("--sndbuf", buffer), ("--rcvbuf", buffer)]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
}
