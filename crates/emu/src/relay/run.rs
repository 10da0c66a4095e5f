//! The relay, and its loop: receive, release, sleep.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use farhaul_units::{Duration, Instant};

use super::clients::{self, Clients};
use super::direction::Direction;
use super::report::RelayReport;
use crate::flaw::{Flaw, flaws};
use crate::lateness::Lateness;
use crate::pool::Pool;
use farhaul_netem::PathSpec;
use farhaul_udp::{Clock, Interest, Ready, RealTime, RecvBatch, Token, UdpSocket, Waiter, thread_cpu_time};

/// The longest sleep when idle, so that a stop is noticed.
const IDLE: Duration = Duration::from_millis(50);

/// Trains per receive call.
const TRAINS: usize = 8;

/// Receive calls per socket and round. Further datagrams wait for the next round, so that departures are not delayed.
const CALLS: usize = 8;

/// The token of the listening socket. The tokens of clients are small numbers.
const LISTEN: Token = Token(u64::MAX - 1);

/// The shortest sleep under load. It limits wake-ups to 20 000 a second, at the price of that much lateness.
pub const PAUSE: Duration = Duration::from_micros(50);

/// A relay between clients and one server.
#[derive(Debug)]
pub struct Relay {
    listen: UdpSocket,
    to: SocketAddr,
    up: PathSpec,
    down: PathSpec,
    pause: Duration,
}

impl Relay {
    /// A relay that clients reach at `listen` and that forwards to `to`, through `up` on the forward path and through
    /// `down` on the return path. Give the two specifications different seeds, or both directions have the same losses.
    ///
    /// # Errors
    /// As [`UdpSocket::bind`].
    pub fn bind(listen: SocketAddr, to: SocketAddr, up: PathSpec, down: PathSpec) -> io::Result<Self> {
        Ok(Self { listen: UdpSocket::bind(listen, clients::socket_options())?, to, up, down, pause: PAUSE })
    }

    /// Sets the shortest sleep under load, instead of [`PAUSE`]. A shorter sleep is more precise and costs more processor
    /// time. Zero sleeps until the next event, however near.
    #[must_use]
    pub fn with_pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// The address to which clients send.
    pub fn local_addr(&self) -> SocketAddr {
        self.listen.local_addr()
    }

    /// Warnings about socket buffers, for display.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.listen.buffers().iter().filter_map(farhaul_udp::BufferReport::warning)
    }

    /// Relays until `stop` is true, which is noticed within 50 ms. Every run begins with empty paths and no clients.
    ///
    /// # Errors
    /// A socket failed, or the system has no more sockets.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<RelayReport> {
        run(self, stop)
    }
}

/// Runs `relay` until `stop`.
fn run(relay: &Relay, stop: &AtomicBool) -> io::Result<RelayReport> {
    // An emulated link does not wait for a processor, so the emulator should not either. If the scheduler preempts
    // threads only at its tick, an ordinary thread waits for milliseconds after a wake-up.
    let _real_time = RealTime::enter();
    let mut run = RelayRun::new(relay)?;
    while !stop.load(Ordering::Relaxed) {
        run.round()?;
    }
    Ok(run.report())
}

/// State of one run.
struct RelayRun<'a> {
    relay: &'a Relay,
    clock: Clock,
    waiter: Waiter,
    ready: Vec<Ready>,
    batch: RecvBatch,
    clients: Clients,
    up: Direction,
    down: Direction,
    lateness: Lateness,
    rounds: u64,
    drops_before: u64,
    cpu_before: Duration,
}

impl<'a> RelayRun<'a> {
    fn new(relay: &'a Relay) -> io::Result<Self> {
        let waiter = Waiter::new()?;
        waiter.watch(&relay.listen, LISTEN, Interest::Readable)?;
        let pool = Rc::new(Pool::default());
        Ok(Self {
            relay,
            clock: Clock::start(),
            waiter,
            ready: Vec::new(),
            batch: RecvBatch::new(TRAINS),
            clients: Clients::new(relay.to),
            up: Direction::new(&relay.up, &pool, overhead(relay.to)),
            down: Direction::new(&relay.down, &pool, overhead(relay.to)),
            lateness: Lateness::new(),
            rounds: 0,
            drops_before: clients::drops(&relay.listen),
            cpu_before: thread_cpu_time(),
        })
    }

    /// Sleeps until something arrives or is due, handles it, and pauses so that the next round has more to do.
    fn round(&mut self) -> io::Result<()> {
        let next = [self.up.next_event(), self.down.next_event()].into_iter().flatten().min();
        let timeout = next.map_or(IDLE, |next| next - self.clock.now()).min(IDLE);
        self.ready.clear();
        self.ready.extend_from_slice(self.waiter.wait(Some(timeout))?);
        let began = self.clock.now();
        self.rounds += 1;
        let mut more = false;
        for index in 0..self.ready.len() {
            let token = self.ready[index].token;
            more |= if token == LISTEN { self.take_in_up()? } else { self.take_in_down(token)? };
        }
        let released = self.release();
        if !more && (released > 0 || !self.ready.is_empty()) {
            self.clock.sleep_until(began + self.relay.pause);
        }
        Ok(())
    }

    /// Receives datagrams of clients. Returns whether there may be more.
    fn take_in_up(&mut self) -> io::Result<bool> {
        for _ in 0..CALLS {
            if !received(&self.relay.listen, &mut self.batch)? {
                return Ok(false);
            }
            let wall = self.clock.wall();
            for train in self.batch.trains() {
                if let Some(client) = self.clients.at((train.from, train.to), wall.now, &self.waiter)? {
                    self.up.take_in(&train, client, &wall, &mut self.lateness);
                }
            }
            if !self.batch.is_full() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Receives the server's answers to one client. Returns whether there may be more.
    fn take_in_down(&mut self, token: Token) -> io::Result<bool> {
        let Some((id, client)) = self.clients.by_token(token, self.clock.now()) else { return Ok(false) };
        for _ in 0..CALLS {
            if !received(&client.upstream, &mut self.batch)? {
                return Ok(false);
            }
            let wall = self.clock.wall();
            // Any host can send to an upstream socket, so datagrams from other addresses are ignored.
            for train in self.batch.trains().filter(|train| train.from == self.relay.to) {
                self.down.take_in(&train, id, &wall, &mut self.lateness);
            }
            if !self.batch.is_full() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Releases the due datagrams of both directions. Returns how many left.
    fn release(&mut self) -> u64 {
        let Self { relay, clock, clients, lateness, .. } = self;
        let up = self.up.release(clock.now(), lateness, |train| {
            clients.get(train.client).map(|client| train.send(&client.upstream, None, relay.to))
        });
        let down = self.down.release(clock.now(), lateness, |train| {
            clients.get(train.client).map(|client| train.send(&relay.listen, client.relay_addr, client.addr))
        });
        up + down
    }

    fn report(mut self) -> RelayReport {
        let now = self.clock.now();
        let (up, down) = (self.up.report(now), self.down.report(now));
        let lateness = self.lateness.report();
        let drops = clients::drops(&self.relay.listen).saturating_sub(self.drops_before) + self.clients.drops();
        let flaws = flaws(
            &lateness,
            [
                Flaw::ReceiveOverflow(drops),
                Flaw::OutOfMemory(up.exhausted + down.exhausted),
                Flaw::Unsent(up.unsent + down.unsent),
                Flaw::TooManyClients(self.clients.refused),
            ],
        );
        RelayReport {
            up,
            down,
            lateness,
            clients: self.clients.served,
            elapsed: now - Instant::ZERO,
            cpu: thread_cpu_time().saturating_sub(self.cpu_before),
            rounds: self.rounds,
            valid: flaws.is_empty(),
            flaws,
        }
    }
}

/// Bytes of IP and UDP headers in front of a datagram to `to`.
fn overhead(to: SocketAddr) -> u32 {
    if to.is_ipv4() { 28 } else { 48 }
}

/// Receives into `batch`. Returns whether anything was waiting.
fn received(socket: &UdpSocket, batch: &mut RecvBatch) -> io::Result<bool> {
    match socket.recv(batch) {
        Ok(count) => Ok(count > 0),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}
