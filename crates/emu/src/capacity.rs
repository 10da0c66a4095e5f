//! Measures the rate that this machine can emulate.

use std::io;
use std::net::UdpSocket;

use farhaul_netem::PathSpec;
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant, Rate};

use crate::emulation::Emulation;
use crate::error::EmulateError;
use crate::flaw::MAX_BUSY;
use crate::network::NetworkSpec;

/// Length of the measurement.
const TRIAL: Duration = Duration::from_millis(100);
/// How long to wait for a datagram that may have been lost.
const PATIENCE: Duration = Duration::from_millis(10);
/// Bytes sent at a time. A receive buffer, 208 KiB by default, charges up to twice the length of a packet.
const BURST: usize = 64 << 10;
/// Bytes of IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// The rate at which an emulator of two hosts would have no processor time in reserve on this machine.
///
/// The rate applies to packets of `mtu` bytes, handled one by one. It covers the emulator's work alone: the sending and
/// receiving programs need processors too. The measurement takes a tenth of a second.
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
            // Lost datagrams do not matter, because the emulator's work is measured.
            for _ in 0..sent {
                if receiver.recv(&mut into).is_err() {
                    break;
                }
            }
        }
        Ok(())
    };
    sockets().map_err(EmulateError::system("measuring what this machine can carry"))?;
    let report = emulation.stop()?;
    let carried: u64 = report.links.iter().map(|link| link.delivered.bytes).sum();
    let seconds = report.cpu.as_secs_f64().max(1e-6);
    let bits = carried as f64 * 8.0 / seconds * f64::from(MAX_BUSY) / 100.0;
    Ok(Rate::from_bits_per_second(bits as u64))
}
