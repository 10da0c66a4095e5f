//! The kernel's TCP on the same path, with the same file: what Farhaul is compared with.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_emu::{Emulation, HostId};
use farhaul_units::{ByteSize, Instant, Rate};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::testbed::Carrier;
use crate::cmd::Context;
use crate::exit::{Code, Fault};
use crate::output::json::goodput;
use crate::output::{Output, progress};

/// How often is looked how much has arrived.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a call on a socket may wait before it looks whether it should.
const CALL: Duration = Duration::from_millis(200);
/// Bytes per call: that of `iperf3`.
const BLOCK: usize = 128 << 10;
/// Buffers of both ends, in bandwidth-delay products: a receiver counts the memory of a packet, some of which is not data, and a sender
/// holds what is under way and as much again during a recovery.
const BUFFERS: u64 = 4;
/// The least largest buffers, as Linux has them by default.
const LEAST_BUFFER: u64 = 6 << 20;

/// What was measured.
pub(super) struct Tcp {
    /// The congestion control, as the kernel calls it.
    pub(super) controller: String,
    /// What arrived.
    pub(super) bytes: u64,
    /// Whether that is the whole file.
    pub(super) complete: bool,
    /// From connecting to the receiver's confirmation, or to the end of patience.
    pub(super) seconds: f64,
    /// From the receiver's first byte to its last.
    pub(super) goodput: Option<u64>,
    /// Goodput of each interval, bits per second.
    pub(super) curve: Vec<u64>,
    /// Segments sent again, and all.
    pub(super) segments: (u64, u64),
    /// How large a buffer of either end may become at least, if that could be seen to.
    pub(super) buffer: Option<ByteSize>,
    pub(super) carrier: Carrier,
}

/// What both threads and their watcher know.
struct Progress<'a> {
    context: &'a Context,
    arrived: AtomicU64,
    over: AtomicBool,
}

/// Sends `file` from `near` to `far`, where it becomes `target`, for no longer than `patience`.
pub(super) fn run(
    context: &Context,
    output: &Output,
    (emulation, near, far): (Emulation, HostId, HostId),
    (file, target): (&Path, &Path),
    (size, bdp, patience): (u64, u64, Duration),
) -> Result<Tcp, Fault> {
    let wanted = (bdp * BUFFERS).clamp(LEAST_BUFFER, i32::MAX as u64);
    let buffers = [near, far].map(|host| emulation.enter(host, || raise_buffers(wanted)));
    let controller = emulation.enter(near, || fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"))?;
    let listener = emulation.enter(far, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    let address = (emulation.ipv4(far), listener.local_addr()?.port());
    let began = context.clock.now();
    let progress = Progress { context, arrived: AtomicU64::new(0), over: AtomicBool::new(false) };
    let bar = progress::bar(Some(size));
    output.attach(bar.clone());
    bar.set_prefix("TCP");
    let (received, confirmed, curve) = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&listener, target, &progress));
        let sender = scope.spawn(|| {
            let stream = emulation.enter(near, || TcpStream::connect(address))?;
            send(stream, file, &progress)
        });
        let curve = progress.watch(&bar, began + patience, || sender.is_finished());
        let confirmed = sender.join().unwrap_or_else(|_| Err(io::Error::other("a defect")));
        // A sender that failed leaves a receiver that waits.
        progress.over.store(true, Ordering::Release);
        (receiver.join().unwrap_or_else(|_| Err(io::Error::other("a defect"))), confirmed, curve)
    });
    output.detach();
    if let Some(fault) = context.interrupt.fault() {
        return Err(fault);
    }
    let broken = |error: io::Error| Fault::new(Code::Failed, format!("the kernel's TCP failed: {error}"));
    let (received, confirmed) = (received.map_err(broken)?, confirmed.map_err(broken)?);
    let segments = emulation.enter(near, || Ok(segments(&fs::read_to_string("/proc/thread-self/net/snmp")?)))?;
    let report = emulation.stop().map_err(|error| crate::fault::of_emulation(&error))?;
    Ok(Tcp {
        controller: controller.trim().to_owned(),
        bytes: received.bytes,
        complete: confirmed.is_some() && received.bytes == size,
        seconds: (confirmed.unwrap_or_else(|| context.clock.now()) - began).as_secs_f64(),
        goodput: goodput(received.bytes, received.last - received.first),
        curve,
        segments: segments.unwrap_or_default(),
        buffer: buffers.into_iter().flatten().min().map(ByteSize),
        carrier: Carrier::of_emulation(&report),
    })
}

impl Tcp {
    /// All figures for scripts.
    pub(super) fn record(&self) -> Value {
        json!({
            "congestion_control": self.controller,
            "bytes": self.bytes,
            "complete": self.complete,
            "seconds": self.seconds,
            "goodput_bps": self.goodput,
            "segments_sent": self.segments.1,
            "segments_retransmitted": self.segments.0,
            "buffer_bytes": self.buffer.map(|ByteSize(bytes)| bytes),
            "emulator": self.carrier.record,
        })
    }
}

/// What a receiver saw.
struct Received {
    bytes: u64,
    first: Instant,
    last: Instant,
}

/// Takes one file; confirms it with a byte when all of it is on the disk.
fn receive(listener: &TcpListener, target: &Path, progress: &Progress<'_>) -> io::Result<Received> {
    let clock = &progress.context.clock;
    listener.set_nonblocking(true)?;
    let mut received = Received { bytes: 0, first: clock.now(), last: clock.now() };
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == ErrorKind::WouldBlock && !progress.is_over() => {
                clock.sleep_until(clock.now() + Duration::from_millis(1));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(received),
            Err(error) => return Err(error),
        }
    };
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CALL))?;
    let mut file = File::create(target)?;
    let mut block = vec![0; BLOCK];
    loop {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(length) => {
                received.last = clock.now();
                if received.bytes == 0 {
                    received.first = received.last;
                }
                received.bytes += length as u64;
                progress.arrived.store(received.bytes, Ordering::Relaxed);
                file.write_all(&block[..length])?;
            }
            Err(error) if is_pause(&error) && !progress.is_over() => {}
            Err(error) if is_pause(&error) => return Ok(received),
            Err(error) => return Err(error),
        }
    }
    // A sender that gave up hears nothing.
    let _ = stream.write_all(&[1]);
    Ok(received)
}

/// Sends all of a file; when that was confirmed, if it was in time.
fn send(mut stream: TcpStream, file: &Path, progress: &Progress<'_>) -> io::Result<Option<Instant>> {
    stream.set_write_timeout(Some(CALL))?;
    stream.set_read_timeout(Some(CALL))?;
    let mut file = File::open(file)?;
    let mut block = vec![0; BLOCK];
    loop {
        let length = file.read(&mut block)?;
        if length == 0 {
            break;
        }
        let mut rest = &block[..length];
        while !rest.is_empty() {
            if progress.is_over() {
                return Ok(None);
            }
            match stream.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    loop {
        match stream.read(&mut [0]) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(progress.context.clock.now())),
            Err(error) if is_pause(&error) && !progress.is_over() => {}
            Err(error) if is_pause(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

impl Progress<'_> {
    /// Shows how much has arrived until it is done or takes too long; the goodput of each interval, bits per second.
    fn watch(&self, bar: &ProgressBar, until: Instant, done: impl Fn() -> bool) -> Vec<u64> {
        let (clock, interrupt) = (&self.context.clock, &self.context.interrupt);
        let (mut curve, mut before, mut next) = (Vec::new(), 0, clock.now() + INTERVAL);
        while !done() {
            clock.sleep_until(next);
            next += INTERVAL;
            let arrived = self.arrived.load(Ordering::Relaxed);
            curve.push(Rate::from_bytes_in(arrived - before, INTERVAL).map_or(0, Rate::bits_per_second));
            before = arrived;
            bar.set_position(arrived);
            if clock.now() > until || interrupt.is_stopping() {
                self.over.store(true, Ordering::Release);
            }
        }
        curve
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Lets TCP of the calling thread's network use so much memory for each direction of a connection, or more if it may already;
/// see tcp(7). How much it may use then: what the system gives everybody, where changing that is refused.
fn raise_buffers(bytes: u64) -> io::Result<u64> {
    let mut smaller = u64::MAX;
    for setting in ["tcp_rmem", "tcp_wmem"] {
        let path = format!("/proc/sys/net/ipv4/{setting}");
        let text = fs::read_to_string(&path)?;
        let mut numbers = text.split_ascii_whitespace();
        let (Some(least), Some(first), Some(most)) = (numbers.next(), numbers.next(), numbers.next()) else {
            return Err(ErrorKind::InvalidData.into());
        };
        let most: u64 = most.parse().map_err(|_| ErrorKind::InvalidData)?;
        let raised = fs::write(&path, format!("{least} {first} {}", most.max(bytes))).is_ok();
        smaller = smaller.min(if raised { most.max(bytes) } else { most });
    }
    Ok(smaller)
}

/// Segments that a network's TCP has sent again, and all that it sent; from its `/proc/net/snmp`.
fn segments(table: &str) -> Option<(u64, u64)> {
    let mut lines = table.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next()?.split(' '), lines.next()?.split(' '));
    let value = |wanted: &str| {
        let (_, value) = names.clone().zip(values.clone()).find(|(name, _)| *name == wanted)?;
        value.parse::<u64>().ok()
    };
    let again = value("RetransSegs")?;
    // `OutSegs` does not have those in it (RFC 4022).
    Some((again, value("OutSegs")? + again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_by_the_names_of_their_columns() {
        let table = "Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn InSegs OutSegs RetransSegs\nTcp: 200 -1 7 90 10\n";
        assert_eq!(segments(table), Some((10, 100)));
        assert_eq!(segments("Tcp: InSegs\nTcp: 7\n"), None);
        assert_eq!(segments(""), None);
    }
}
