//! The reference library, through our peer program (interop/README.md).

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::super::machine::PACKET_SIZE;
use super::super::process::Process;
use super::super::quantity::Quantity;
use super::super::samples::Measured;
use super::relay::{Path, Relay};
use super::{Amount, OPENING, Tools, cpu_per_gb, needed, number, patience, retransmitted};

/// Buffers on loopback, where the BDP is negligible: the largest with which the library works well.
const LOOPBACK_BUFFER: u64 = 64_000_000;
/// Buffers on a path, in BDP, as its users are advised.
const BUFFER_BDP: u64 = 2;
/// Time that one side waits for the other's close at the end.
const CLOSE_DELAY: Duration = Duration::from_secs(60);

impl Tools {
    /// One transfer, directly over loopback or through a relay that emulates `path`.
    pub(in super::super) fn libudt_transfer(&self, amount: Amount, path: Option<&Path>) -> Result<Measured> {
        let time = patience(amount);
        let mut options = options(path.map_or(LOOPBACK_BUFFER, |path| BUFFER_BDP * path.bdp_bytes()));
        options.extend(["--timeout".into(), time.as_secs().to_string()]);
        // The receiver closes after the last byte, and the sender waits for that. This is the application's
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
        let address = address(&server.wait_for_line("listening ", OPENING)?)?;
        let relay = path.map(|path| self.relay(path, address)).transpose()?;
        let to = relay.as_ref().map_or(address, Relay::address).to_string();
        let mut client = self.libudt_peer(&["connect", &to, "send", "--unchecked"])?;
        let sent = Process::start(client.args(&options).args(&send))?.finish(time)?.record("sent_bytes")?;
        let received = server.finish(time)?.record("received_bytes")?;
        relay.map_or(Ok(()), Relay::stop)?;
        figures(&sent, &received)
    }
}

/// `listening 127.0.0.1:4711`
pub(super) fn address(line: &str) -> Result<SocketAddr> {
    line.trim_start_matches("listening ").trim().parse().context("its address")
}

fn figures(sent: &Value, received: &Value) -> Result<Measured> {
    let bytes = needed(received, &["received_bytes"])?;
    ensure!(bytes > 0.0, "nothing was transferred");
    let cpu = |record| -> Result<f64> { Ok(needed(record, &["cpu_user_s"])? + needed(record, &["cpu_system_s"])?) };
    let memory = |record| number(record, &["max_rss_kb"]).map(|kibibytes| kibibytes * 1_024.0);
    let figures = [
        number(received, &["goodput_bps"]).map(|rate| (Quantity::Goodput, rate)),
        number(sent, &["peer_closed_s"]).map(|seconds| (Quantity::Completion, seconds)),
        Some(cpu_per_gb(cpu(sent)? + cpu(received)?, bytes)),
        number(sent, &["packets_retransmitted"])
            .zip(number(sent, &["packets_sent"]))
            .map(|(again, sent)| retransmitted(again, sent)),
        memory(sent).map(|bytes| (Quantity::SenderMemory, bytes)),
        memory(received).map(|bytes| (Quantity::ReceiverMemory, bytes)),
    ];
    let notes = [("sending", sent), ("receiving", received)].into_iter().filter_map(|(side, record)| {
        let bytes = |name| {
            number(record, &[name]).map(|bytes| if bytes < 1e6 { (bytes / 1e3, "kB") } else { (bytes / 1e6, "MB") })
        };
        let ((recv, of), (send, its)) = bytes("udp_recv_buffer_bytes").zip(bytes("udp_send_buffer_bytes"))?;
        Some(format!("{side}: socket got {recv:.1} {of} to receive, {send:.1} {its} to send"))
    });
    Ok(Measured { figures: figures.into_iter().flatten().collect(), notes: notes.collect() })
}

/// Packet size and buffers. The flow window must cover the buffer.
fn options(buffer: u64) -> Vec<String> {
    let packets = buffer / u64::from(PACKET_SIZE - 28) + 1;
    [("--mss", u64::from(PACKET_SIZE)), ("--fc", packets.max(32)), ("--sndbuf", buffer), ("--rcvbuf", buffer)]
        .into_iter()
        .flat_map(|(name, value)| [name.to_owned(), value.to_string()])
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_peers_records_become_figures_of_both_sides() {
        let side = |more: Value| {
            let mut record = json!({ "cpu_user_s": 1.0, "cpu_system_s": 0.5, "max_rss_kb": 1024,
                "udp_recv_buffer_bytes": 212_992, "udp_send_buffer_bytes": 65_536 });
            record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            record
        };
        let sent =
            side(json!({ "sent_bytes": 5, "packets_sent": 200, "packets_retransmitted": 1, "peer_closed_s": 3.5 }));
        let received = side(json!({ "received_bytes": 2_000_000_000_u64, "goodput_bps": 8e8 }));
        let measured = figures(&sent, &received).unwrap();
        for (quantity, value) in [
            (Quantity::Goodput, 8e8),
            (Quantity::Completion, 3.5),
            (Quantity::CpuPerGb, 1.5),
            (Quantity::Retransmitted, 0.005),
            (Quantity::SenderMemory, 1_048_576.0),
        ] {
            assert_eq!(measured.figure(quantity), Some(value), "{}", quantity.name());
        }
        assert!(measured.notes[0].contains("213.0 kB to receive"), "{:?}", measured.notes);
    }
}
