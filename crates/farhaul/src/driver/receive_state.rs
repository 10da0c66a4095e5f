//! Receiving, and the pauses between: the work of whoever drives a port, which is the driver thread or a caller that waits.

use std::io;
use std::time::Duration;

use farhaul_proto::probe::is_question;
use farhaul_proto::{AddressPair, Channels, Streams};
use farhaul_udp::{BufferKind, RecvBatch, UdpSocket};
use farhaul_units::Instant;

use super::core::Core;
use super::driver_role::LEASE;
use super::guard::{EndpointGuard, Rest};
use super::probes::Sender;
use super::receive_coalescing::{ReceiveCoalescing, SHORTEST};
use super::receive_drops::ReceiveDrops;

/// Pause after a receive error that does not pass.
const BROKEN_SOCKET_PAUSE: Duration = Duration::from_millis(10);

/// What a driver of a port needs. Whoever holds it drives.
#[derive(Debug)]
pub(super) struct ReceiveState {
    batch: RecvBatch,
    coalescing: ReceiveCoalescing,
    drops: ReceiveDrops,
    /// Size of the socket's receive buffer, bytes.
    buffer: u64,
    /// Its holder came back by itself, at once or after a sleep.
    pub(super) is_streaming: bool,
    is_broken: bool,
    bytes: usize,
    hears_stream: bool,
}

impl ReceiveState {
    pub(super) fn new(socket: &UdpSocket) -> Self {
        Self {
            batch: RecvBatch::default(),
            coalescing: ReceiveCoalescing::new(recv_buffer(socket)),
            drops: ReceiveDrops::new(socket),
            buffer: recv_buffer(socket),
            is_streaming: false,
            is_broken: false,
            bytes: 0,
            hears_stream: false,
        }
    }

    /// Receives what waits in the socket, if it `is_readable`. Needs no lock.
    pub(super) fn receive(&mut self, socket: &UdpSocket, is_readable: bool) {
        self.batch.clear();
        let received = if is_readable { socket.recv(&mut self.batch) } else { Ok(0) };
        self.is_broken = received.is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock);
    }

    /// Passes the datagrams that `socket` had to the transport and serves its timer if due.
    pub(super) fn hand_in<T: Streams + Channels>(&mut self, guard: &mut EndpointGuard<'_, T>, socket: &UdpSocket) {
        let now = guard.now();
        if !self.batch.is_empty() && self.drops.have_grown(now, socket) {
            guard.transport.note_drops(now, self.buffer);
        }
        let wall = guard.wall();
        self.bytes = 0;
        let Core { transport, answering, timeline, .. } = &mut **guard;
        timeline.note_reception(wall);
        // Beside encrypted connections, only questions inside them are answered.
        let is_plain = transport.datagrams().is_none();
        for train in self.batch.trains() {
            self.bytes += train.bytes.len();
            let arrived = timeline.arrival(train.arrived).unwrap_or(now);
            let between = AddressPair { peer: train.from, local: train.to };
            // Answers are for a stream of this side, if it has one.
            if let Some(answering) = answering
                && is_plain
                && is_question(train.bytes)
            {
                answering.handle(arrived, (Sender::Plain(between), train.from), train.datagrams());
                continue;
            }
            transport.handle_datagrams(now, arrived, between, train.bytes, train.stride);
        }
        if let Some(answering) = answering
            && let Some(datagrams) = transport.datagrams()
        {
            answering.handle_inside(datagrams);
        }
        if transport.poll_timeout().is_some_and(|due| due <= now) {
            transport.handle_timeout(now);
        }
        // A sleep would add to the delay of a control stream, at either end.
        self.hears_stream = answering.as_ref().is_some_and(|answering| answering.hears_stream(now));
    }

    /// The sleep of a caller that has come back and received nothing. Zero for none.
    pub(super) fn sleep_after_return(&mut self, now: Instant) -> Duration {
        let sleep = if self.batch.is_empty() && !self.hears_stream {
            self.coalescing.after_return(now)
        } else {
            Duration::ZERO
        };
        self.is_streaming |= !sleep.is_zero();
        sleep
    }

    /// A caller leaves with what it has received.
    pub(super) fn note_arrival(&mut self, now: Instant) {
        if self.bytes > 0 {
            self.coalescing.note_arrival(now, self.bytes);
        }
    }

    /// How long nobody need receive while a caller is away. `None` if somebody must at once.
    pub(super) fn lease(&self) -> Option<Duration> {
        let time = LEASE.min(self.coalescing.time_to_half());
        (time >= SHORTEST && !self.hears_stream).then_some(time)
    }

    /// The sleep before the next look at the socket, to gather datagrams. Zero for none. Then the holder waits for the
    /// socket, unless the batch was full.
    pub(super) fn sleep(&mut self, now: Instant, rest: &Rest) -> Duration {
        if self.is_broken {
            pause(BROKEN_SOCKET_PAUSE);
        }
        // More datagrams wait behind a full batch. A blocked socket and a control stream must not wait for a sleep.
        let sleep = match self.batch.is_full() || self.hears_stream || rest.blocked {
            true => Duration::ZERO,
            false => self.coalescing.after_access(now, self.bytes, rest.time),
        };
        self.is_streaming = self.batch.is_full() || !sleep.is_zero();
        sleep
    }
}

fn recv_buffer(socket: &UdpSocket) -> u64 {
    let report = socket.buffers().iter().find(|report| report.kind == BufferKind::Recv);
    report.map_or(0, |report| report.got as u64)
}

/// Sleeps for `duration`. Wake-ups wait until then.
pub(super) fn pause(duration: Duration) {
    use rustix::thread::{Timespec, nanosleep};
    if let Ok(time) = Timespec::try_from(duration) {
        // If a signal cuts it short or the system refuses it, the sleep is shorter.
        let _ = nanosleep(&time);
    }
}
