//! What this machine can carry, found out before anybody relies on it.

use std::io;
use std::net::UdpSocket;

use farhaul_netem::PathSpec;
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant, Rate};

use crate::emulation::Emulation;
use crate::error::EmulateError;
use crate::flaw::MAX_BUSY;
use crate::network::NetworkSpec;

/// How long is tried.
const TRIAL: Duration = Duration::from_millis(100);
/// How long is waited for a datagram that may have been lost.
const PATIENCE: Duration = Duration::from_millis(10);
/// Bytes that are sent at a time: a receiver's buffer, 208 KiB by default, counts up to twice the length of a packet.
const BURST: usize = 64 << 10;
/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// The rate, in packets of `mtu` bytes one by one, at which an emulator of two hosts would have no reserve on this machine, as
/// far as its own work goes: what sends and receives needs processors too. Takes a tenth of a second.
///
/// # Errors
/// As [`Emulation::start`].
pub fn capacity(mtu: u32) -> Result<Rate, EmulateError> {
    let (network, [near, far]) = NetworkSpec::pair(&PathSpec::default(), &PathSpec::default(), mtu);
    let emulation = Emulation::start(&network)?;
    let bind = || UdpSocket::bind("0.0.0.0:7000");
    let sockets = || -> io::Result<_> {
        let (sender, receiver) = (emulation.enter(near, bind)?, emulation.enter(far, bind)?);
        sender.connect((emulation.ipv4(far), 7_000))?;
        receiver.set_read_timeout(Some(PATIENCE))?;
        let datagram = vec![0; mtu.saturating_sub(HEADERS) as usize];
        let mut into = vec![0; datagram.len()];
        let burst = (BURST / datagram.len().max(1)).max(1);
        let clock = Clock::start();
        while clock.now() < Instant::ZERO + TRIAL {
            let sent = (0..burst).filter(|_| sender.send(&datagram).is_ok()).count();
            // Some may have been lost for want of room; what counts is the work that they made.
            for _ in 0..sent {
                if receiver.recv(&mut into).is_err() {
                    break;
                }
            }
        }
        Ok(())
    };
    sockets().map_err(EmulateError::system("finding out what this machine can carry"))?;
    let report = emulation.stop()?;
    let carried: u64 = report.links().iter().map(|link| link.delivered.bytes).sum();
    let seconds = report.cpu.as_secs_f64().max(1e-6);
    let bits = carried as f64 * 8.0 / seconds * f64::from(MAX_BUSY) / 100.0;
    Ok(Rate::from_bits_per_second(bits as u64))
}
