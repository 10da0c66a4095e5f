//! The emulator's loop: read packets from hosts, run the links, write packets to hosts, sleep.

#[cfg(test)]
pub(crate) mod obstacle;

use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use farhaul_udp::{Clock, Interest, Ready, RealTime, Token, Waiter, Wall, thread_cpu_time};
use farhaul_units::{Duration, Instant};

use crate::awake::Awake;
use crate::busy::Busy;
use crate::capture::Capture;
use crate::engine::Engine;
use crate::flaw::{Flaw, flaws};
use crate::inbox::{ArrivalEstimate, Inbox};
use crate::lateness::Lateness;
use crate::network::{HostId, NetworkSpec};
use crate::pace::Pace;
use crate::packet::Packet;
use crate::packet::cut::cut;
use crate::packet::headers::{destination, is_ip};
use crate::packet::train::PacketTrain;
use crate::packet::virtio;
use crate::packet_reader::PacketReader;
use crate::polls::Polls;
use crate::pool::Pool;
use crate::report::{EmulationReport, Snapshot};
use crate::run_queue::RunQueue;
use crate::tun::Tun;

/// The longest sleep when idle, so that a stop is noticed.
const IDLE: Duration = Duration::from_millis(50);
/// Interval between updates of the shared snapshot.
const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(10);
/// Reads from a host per round, before other hosts and due departures are served. Covers 3 ms at 1 Gbit/s and half a
/// millisecond of work.
const BUDGET: usize = 256;
/// Reads per round in total, which matters if many hosts are ready: those of 64 hosts.
const ROUND: usize = 64 * BUDGET;
/// A shorter wait did not sleep: its packets had arrived before.
const SHORTEST_SLEEP: Duration = Duration::from_micros(10);
/// After a wait longer than this, the loop checks whether its thread had to wait for a processor. Dating of packets
/// tolerates shorter pauses, too. The check also needs a reading before each such wait. At 1.4 µs and the largest poll
/// rate, the readings take 2 % of a processor.
const CPU_WAIT_CHECK: Duration = Duration::from_micros(300);

/// State shared by the loop and its owner.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) stop: AtomicBool,
    pub(crate) snapshot: Mutex<Snapshot>,
    /// Most bytes of packets in flight.
    pub(crate) memory: usize,
    #[cfg(test)]
    pub(crate) obstacle: obstacle::Obstacle,
}

impl Shared {
    pub(crate) fn new(memory: usize) -> Self {
        Self {
            stop: AtomicBool::new(false),
            snapshot: Mutex::default(),
            memory,
            #[cfg(test)]
            obstacle: obstacle::Obstacle::default(),
        }
    }
}

/// Runs until `shared` says stop.
pub(crate) fn run(spec: &NetworkSpec, ports: Vec<Port>, shared: &Arc<Shared>) -> io::Result<EmulationReport> {
    // A link does not wait for a processor, so neither should its emulator (see the relay).
    let _real_time = RealTime::enter();
    let mut run = EmulationRun::new(spec, ports, shared)?;
    while !shared.stop.load(Ordering::Relaxed) {
        run.round()?;
    }
    Ok(run.report())
}

/// The device, MTU and capture of a host.
#[derive(Debug)]
pub(crate) struct Port {
    pub(crate) tun: Tun,
    pub(crate) mtu: u32,
    pub(crate) capture: Option<Capture>,
}

struct EmulationRun<'a> {
    shared: &'a Shared,
    clock: Clock,
    waiter: Waiter,
    ready: Vec<Ready>,
    ports: Vec<Port>,
    /// The train under construction for each port.
    trains: Vec<PacketTrain>,
    /// The wall clock, for captures.
    wall: Wall,
    reader: PacketReader,
    pool: Rc<Pool>,
    inbox: Inbox,
    engine: Engine,
    lateness: Lateness,
    gaps: Lateness,
    awake: Awake,
    busy: Busy,
    pace: Pace,
    run_queue: RunQueue,
    /// The last polls of all hosts.
    polls: Polls,
    /// The current time of the links: the end of the last poll.
    present: Instant,
    /// When the shared snapshot was last updated.
    snapshot_at: Instant,
    rounds: u64,
    /// Packets dropped for lack of memory.
    exhausted: u64,
    /// Packets that the system refused.
    unsent: u64,
    /// Packets to unknown addresses.
    unroutable: u64,
    cpu_before: Duration,
}

impl<'a> EmulationRun<'a> {
    fn new(spec: &NetworkSpec, ports: Vec<Port>, shared: &'a Shared) -> io::Result<Self> {
        let waiter = Waiter::for_sources(ports.len())?;
        for (index, port) in ports.iter().enumerate() {
            waiter.watch(&port.tun, Token(index as u64), Interest::Readable)?;
        }
        let clock = Clock::start();
        Ok(Self {
            shared,
            clock,
            trains: ports.iter().map(|port| PacketTrain::new(port.tun.gso_types())).collect(),
            inbox: Inbox::of(ports.len()),
            polls: Polls::of(ports.len()),
            ports,
            wall: clock.wall(),
            waiter,
            ready: Vec::new(),
            reader: PacketReader::new(),
            pool: Rc::new(Pool::of(shared.memory)),
            engine: Engine::new(spec),
            lateness: Lateness::new(),
            gaps: Lateness::new(),
            awake: Awake::default(),
            busy: Busy::default(),
            pace: Pace::default(),
            run_queue: RunQueue::of_this_thread(),
            present: Instant::ZERO,
            snapshot_at: Instant::ZERO,
            rounds: 0,
            exhausted: 0,
            unsent: 0,
            unroutable: 0,
            cpu_before: thread_cpu_time(),
        })
    }

    /// Sleeps until something arrives or is due, handles it, and pauses if the next round should have more to do.
    fn round(&mut self) -> io::Result<()> {
        let before = self.clock.now();
        // Packets that arrived since the last poll have waited, and wait on from the end of this wait until they are
        // read.
        let waited = before - self.polls.oldest();
        let timeout = self.engine.next_event().map_or(IDLE, |next| next - before).min(IDLE);
        let cpu_wait = (timeout > CPU_WAIT_CHECK).then(|| self.run_queue.waited());
        self.wait(before, timeout)?;
        let now = self.clock.now();
        let slept = now - before;
        let cpu_wait = cpu_wait.filter(|_| slept > CPU_WAIT_CHECK && !self.ready.is_empty());
        let cpu_wait = cpu_wait.map_or(Duration::ZERO, |before| self.run_queue.waited().saturating_sub(before));
        // The packets that ended the wait arrived when the thread became ready to run, at the latest when the wait was
        // due to end.
        let woken = (slept > SHORTEST_SLEEP).then(|| now.saturating_sub(cpu_wait).clamp(before, before + timeout));
        let found_late = woken.filter(|_| !self.ready.is_empty()).map_or(Duration::ZERO, |woken| now - woken);
        #[cfg(test)]
        self.shared.obstruct(&self.clock);
        self.rounds += 1;
        let host_of = |ready: &Ready| HostId(ready.token.0 as u32);
        self.polls.on_poll(now, self.ready.iter().map(host_of));
        let budget = BUDGET.min(ROUND / self.ready.len().max(1));
        let mut more = false;
        for index in 0..self.ready.len() {
            let from = host_of(&self.ready[index]);
            let has_more = self.take_in(from, budget)?;
            // Further packets may have arrived during the reads.
            self.present = self.clock.now();
            self.inbox.date(from, self.polls.since(from, woken), self.present);
            if !has_more {
                self.polls.on_emptied(from, self.present);
            }
            more |= has_more;
        }
        self.present = self.present.max(now);
        self.gaps.record(waited + found_late + (self.present - now));
        self.forward();
        let released = self.release();
        if now - self.snapshot_at >= SNAPSHOT_INTERVAL {
            self.snapshot_at = now;
            self.update_snapshot();
            self.busy.on_time(now, thread_cpu_time);
        }
        if released == 0 && self.ready.is_empty() {
            self.awake.on_rest(now);
            return Ok(());
        }
        self.awake.on_work(now);
        if let Some(end) = self.pace.nap_after(now, self.clock.now()).filter(|_| !more) {
            self.clock.sleep_until(end);
        }
        Ok(())
    }

    /// Waits until a host has packets, or for `timeout` from `begin` on. Spins through the end if the budget permits.
    fn wait(&mut self, begin: Instant, timeout: Duration) -> io::Result<()> {
        let spin = if timeout < IDLE { self.pace.spin(begin).min(timeout) } else { Duration::ZERO };
        self.ready.clear();
        self.ready.extend_from_slice(self.waiter.wait(Some(timeout - spin))?);
        if spin.is_zero() || !self.ready.is_empty() {
            return Ok(());
        }
        let woken = self.clock.now();
        let mut now = woken;
        while self.ready.is_empty() && now < begin + timeout {
            self.ready.extend_from_slice(self.waiter.wait(Some(Duration::ZERO))?);
            now = self.clock.now();
        }
        self.pace.on_spin(now, now - woken);
        Ok(())
    }

    /// Reads the packets of a host, with at most `budget` reads. Returns whether there may be more.
    fn take_in(&mut self, from: HostId, budget: usize) -> io::Result<bool> {
        for _ in 0..budget {
            let port = &self.ports[from.0 as usize];
            match self.reader.read(&port.tun, port.mtu as usize, &self.pool) {
                Ok(()) => self.accept(from),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Makes packets from the bytes just read.
    fn accept(&mut self, from: HostId) {
        let Self { reader, engine, pool, inbox, .. } = self;
        let (header, packet) = reader.packet();
        let to = destination(packet).and_then(|address| engine.host_at(address));
        let (Some(to), Some(header)) = (to, virtio::Header::read(header)) else {
            self.unroutable += u64::from(!destination(packet).is_some_and(is_for_many));
            return;
        };
        let Some(gso) = header.gso else {
            match reader.take(pool) {
                Some(bytes) => inbox.add(from, Packet::new(bytes, header.checksum, to)),
                None => self.exhausted += 1,
            }
            return;
        };
        let counts = cut(packet, gso, to, pool, |packet| inbox.add(from, packet));
        self.exhausted += counts.exhausted;
        self.unroutable += counts.malformed;
    }

    /// Puts packets onto their first links and processes everything due by the last poll.
    fn forward(&mut self) {
        while let Some((ArrivalEstimate { at, latest, waited }, from, packet)) = self.inbox.pop() {
            self.engine.advance(at);
            if let Some(capture) = &mut self.ports[from.0 as usize].capture {
                capture.add(self.wall.time_of(at), &packet);
            }
            let late = self.engine.push(at, latest, from, packet).max(waited);
            if !late.is_zero() {
                self.lateness.record(late);
            }
        }
        self.engine.advance(self.present);
    }

    /// Gives arrived packets to their hosts. Returns how many.
    fn release(&mut self) -> u64 {
        let mut released = 0;
        while let Some((due, packet)) = self.engine.pop() {
            let now = self.clock.now();
            self.lateness.record(now - due);
            released += 1;
            // The path damaged it. The host's refusal would not be a fault of the emulator.
            if !is_ip(packet.bytes()) {
                continue;
            }
            let host = packet.to().0 as usize;
            if let Some(capture) = &mut self.ports[host].capture {
                capture.add(self.wall.time_of(now), &packet);
            }
            if let Err(packet) = self.trains[host].add(packet) {
                self.deliver(host);
                // An empty train accepts any packet.
                let _ = self.trains[host].add(packet);
            }
        }
        for host in 0..self.trains.len() {
            if !self.trains[host].is_empty() {
                self.deliver(host);
            }
        }
        released
    }

    fn deliver(&mut self, host: usize) {
        let (train, tun) = (&mut self.trains[host], &self.ports[host].tun);
        self.unsent += train.write(|parts| tun.write(parts));
    }

    /// Updates the shared snapshot.
    fn update_snapshot(&mut self) {
        // A reader holds the lock only to copy a few numbers, and the next update comes soon.
        if let Ok(mut snapshot) = self.shared.snapshot.try_lock() {
            let Snapshot { links, at, lateness, .. } = &mut *snapshot;
            self.engine.counters(links);
            *at = self.clock.now() - Instant::ZERO;
            *lateness = self.lateness.report();
        }
    }

    fn report(mut self) -> EmulationReport {
        let (mut uncaptured, mut broken_captures) = (0, Vec::new());
        for capture in self.ports.iter_mut().filter_map(|port| port.capture.take()) {
            match capture.finish() {
                Ok(missed) => uncaptured += missed,
                Err(broken) => broken_captures.push(broken),
            }
        }
        let mut links = Vec::new();
        self.engine.advance(self.present);
        self.engine.counters(&mut links);
        let (lateness, gaps) = (self.lateness.report(), self.gaps.report());
        let elapsed = self.clock.now() - Instant::ZERO;
        let cpu = thread_cpu_time().saturating_sub(self.cpu_before);
        // A run shorter than one second is judged by its mean load.
        let mean = cpu.as_secs_f64() / elapsed.as_secs_f64().max(1e-9);
        let busy = mean.max(self.busy.worst());
        let flaws = flaws(
            &lateness,
            [
                Flaw::Away(gaps.max),
                Flaw::Busy((busy * 100.0) as u32),
                Flaw::OutOfMemory(self.exhausted),
                Flaw::Unsent(self.unsent),
            ],
        );
        EmulationReport {
            lateness,
            p99_gap: gaps.p99,
            longest_gap: gaps.max,
            unroutable: self.unroutable + self.engine.stranded,
            uncaptured,
            broken_captures,
            elapsed,
            cpu,
            rounds: self.rounds,
            valid: flaws.is_empty(),
            flaws,
            links,
        }
    }
}

/// Whether an address is multicast or broadcast. Hosts send such announcements by themselves; dropping them is no
/// error.
fn is_for_many(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || address.is_broadcast() || address.octets()[2..] == [255, 255],
        IpAddr::V6(address) => address.is_multicast(),
    }
}
