//! What this machine can carry, found out before anybody relies on it.

use std::io;
use std::net::UdpSocket;

use farhaul_netem::PathSpec;
use farhaul_units::{Duration, Rate};

use crate::emulation::Emulation;
use crate::error::EmulateError;
use crate::flaw::MAX_BUSY;
use crate::network::NetworkSpec;

/// Datagrams that are sent to find out. They take some ten milliseconds.
const DATAGRAMS: u32 = 8_000;
/// So many at a time, so that the interface's queue holds them.
const BURST: u32 = 64;
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
        receiver.set_read_timeout(Some(Duration::from_millis(100)))?;
        let datagram = vec![0; mtu.saturating_sub(HEADERS) as usize];
        let mut into = vec![0; datagram.len()];
        for _ in 0..DATAGRAMS / BURST {
            let sent = (0..BURST).filter(|_| sender.send(&datagram).is_ok()).count();
            // The socket's buffer may have no room for all of them; what counts is the work that they made.
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
