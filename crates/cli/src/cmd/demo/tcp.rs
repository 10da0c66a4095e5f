//! The kernel's TCP on the same path with the same file, for comparison.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_emu::{Emulation, HostId};
use farhaul_transfer::internal::report::goodput;
use farhaul_units::{ByteSize, Instant, Rate};
use indicatif::ProgressBar;
use serde_json::{Value, json};

use super::testbed::Carrier;
use crate::cmd::Context;
use crate::cmd::kernel_file::counter;
use crate::exit::{Code, Fault};
use crate::output::{Output, progress};

/// Sampling interval of the goodput.
const INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait of a socket call before it checks for the end.
const CALL: Duration = Duration::from_millis(200);
/// Bytes per call, as in `iperf3`.
const BLOCK: usize = 128 << 10;
/// Buffers of both ends, in bandwidth-delay products. A receiver also counts the overhead of each packet. A sender holds
/// one product in flight, and another one during recovery.
const BUFFERS: u64 = 4;
/// Least size of the largest buffer: the default of Linux.
const LEAST_BUFFER: u64 = 6 << 20;

/// Results of the kernel's TCP.
pub(super) struct Tcp {
    /// The kernel's name of the congestion control.
    pub(super) controller: String,
    /// Bytes received.
    pub(super) bytes: u64,
    /// Whether the whole file arrived.
    pub(super) complete: bool,
    /// Time from connecting to the receiver's confirmation, or to the time limit.
    pub(super) seconds: f64,
    /// Rate from the receiver's first byte to its last, in bit/s.
    pub(super) goodput: Option<u64>,
    /// Goodput of each interval, bits per second.
    pub(super) curve: Vec<u64>,
    /// Segments retransmitted, and all segments.
    pub(super) segments: (u64, u64),
    /// The smaller cap of both ends' buffers, if known.
    pub(super) buffer: Option<ByteSize>,
    pub(super) carrier: Carrier,
}

/// Shared by both threads and their watcher.
struct Progress<'a> {
    context: &'a Context,
    arrived: AtomicU64,
    over: AtomicBool,
}

/// Sends `file` from `near` to `target` on `far`, for `patience` at most.
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
        // Release a receiver that waits for a failed sender.
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
    /// The part of the `end` record about TCP.
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

/// Bytes and times at the receiver.
struct Received {
    bytes: u64,
    first: Instant,
    last: Instant,
}

/// Receives one file, and confirms it with a byte once it is written.
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
    // The sender may have given up.
    let _ = stream.write_all(&[1]);
    Ok(received)
}

/// Sends a file. Returns the time of the confirmation, if it came in time.
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
    /// Shows the progress until `done` or the time limit. Returns the goodput of each interval, in bit/s.
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

/// Raises the cap of TCP buffers in the calling thread's network to `bytes` per direction; see tcp(7). Returns the smaller
/// cap of both directions, which stays lower if the system refuses.
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

/// Retransmitted and all sent segments of a network's TCP, from its `/proc/net/snmp`.
fn segments(table: &str) -> Option<(u64, u64)> {
    let again = counter(table, "Tcp", "RetransSegs")?;
    // `OutSegs` excludes retransmissions (RFC 4022).
    Some((again, counter(table, "Tcp", "OutSegs")? + again))
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
