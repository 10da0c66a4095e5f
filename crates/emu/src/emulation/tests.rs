//! Provokes each reason why a run is invalid. Needs root rights, if only in a user namespace, and TUN devices. Without
//! them the tests print a notice and pass.

#[path = "../../tests/emu/requirement.rs"]
mod requirement;

use std::fs;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use farhaul_netem::{Counters, LossSpec, PathSpec};
use farhaul_udp::{Clock, RealTime};
use farhaul_units::{Duration, Instant};
use requirement::skip;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use super::*;
use crate::flaw::{MAX_BUSY, MAX_STALL};
use crate::netlink;
use crate::run::obstacle::{BURDEN, NOTHING, WALL};

/// Two hosts some milliseconds apart, with connected sockets.
struct Pair {
    emulation: Emulation,
    far: HostId,
    sender: UdpSocket,
    receiver: UdpSocket,
    clock: Clock,
    /// Real-time threads that compute without pause slow each other down, so tests take turns.
    _turn: MutexGuard<'static, ()>,
}

static TURN: Mutex<()> = Mutex::new(());

impl Pair {
    fn start(memory: usize, delay: u64) -> Option<Self> {
        Self::on(&PathSpec { delay: Duration::from_millis(delay), ..PathSpec::default() }, memory)
    }

    fn on(path: &PathSpec, memory: usize) -> Option<Self> {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let (network, [near, far]) = NetworkSpec::pair(path, path, 1_500);
        let emulation = match Emulation::start_within(&network, &[], memory) {
            Ok(emulation) => emulation,
            Err(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_))) => return skip(error),
            Err(error) => panic!("{error}"),
        };
        let bind = || UdpSocket::bind("0.0.0.0:7000");
        let (sender, receiver) = (emulation.enter(near, bind).unwrap(), emulation.enter(far, bind).unwrap());
        sender.connect((emulation.ipv4(far), 7_000)).unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        Some(Self { emulation, far, sender, receiver, clock: Clock::start(), _turn: turn })
    }

    fn place(&self, obstacle: u8) {
        self.emulation.shared.obstacle.0.store(obstacle, Ordering::Relaxed);
    }

    fn send(&self, datagrams: usize) {
        // The host may refuse some datagrams. The test observes the others.
        (0..datagrams).for_each(|_| drop(self.sender.send(&[7; 100])));
    }

    fn recv(&self) {
        let _ = self.receiver.recv(&mut [0; 200]).unwrap();
    }

    fn wait(&self, milliseconds: u64) {
        self.clock.sleep_until(self.clock.now() + Duration::from_millis(milliseconds));
    }

    /// Waits until the counters of the link to the far host satisfy `done`.
    fn wait_until(&self, done: impl Fn(&Counters) -> bool) {
        while !self.emulation.look().links.first().is_some_and(&done) {
            self.wait(1);
        }
    }

    fn flaws(self) -> Vec<Flaw> {
        let report = self.emulation.stop().unwrap();
        assert_eq!(report.valid, report.flaws.is_empty());
        report.flaws
    }
}

#[test]
fn a_long_gap_between_polls_is_a_flaw() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    pair.send(1);
    pair.recv();
    pair.place(WALL);
    pair.wait(2);
    pair.send(1);
    pair.wait(100);
    pair.place(NOTHING);
    pair.recv();
    let flaws = pair.flaws();
    assert!(flaws.iter().any(|flaw| matches!(flaw, Flaw::Away(time) if *time > MAX_STALL)), "{flaws:?}");
}

#[test]
fn a_program_inside_finds_itself_in_proc() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    let script = "read -r number rest < /proc/self/stat; echo $number $$; ls -d /proc/[0-9]* | wc -l";
    let mut command = Command::new("sh");
    let child = pair.emulation.spawn(pair.far, command.args(["-c", script]).stdout(std::process::Stdio::piped()));
    let said = child.unwrap().wait_with_output().unwrap().stdout;
    let said = String::from_utf8(said).unwrap();
    let numbers: Vec<u32> = said.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let renewed = Command::new("unshare").args(["-rpf", "--mount-proc", "true"]).output();
    if !renewed.is_ok_and(|it| it.status.success()) {
        // A container that hides parts of /proc lets nobody mount it anew.
        let _ = skip::<()>(format!("a new /proc: {said}"));
        return;
    }
    assert_eq!(numbers[0], numbers[1], "{said}");
    assert!(numbers[2] < 10, "no process of the machine is there: {said}");
}

/// Binds a thread of this program, or the calling one, to a processor.
fn bind(thread: Option<Pid>, processor: usize) {
    let mut processors = CpuSet::new();
    processors.set(processor);
    sched_setaffinity(thread, &processors).unwrap();
}

/// Occupies a processor for `length`.
fn occupy(processor: usize, length: Duration) {
    bind(None, processor);
    let _real_time = RealTime::enter();
    let clock = Clock::start();
    while clock.now() < Instant::ZERO + length {}
}

/// How long a thread of this program has waited for a processor.
fn in_line(thread: Pid) -> Duration {
    let file = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
    let waited = fs::read_to_string(file).ok().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

#[test]
fn a_wait_for_a_processor_counts_as_lateness() {
    // Two real-time threads on one processor alternate every 100 ms, and the emulator waits at most 50 ms.
    const OCCUPIED: Duration = Duration::from_millis(40);
    const ATTEMPTS: usize = 20;
    let Some(pair) = Pair::start(MAX_BYTES, 0) else { return };
    pair.send(1);
    pair.recv();
    let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
    let is_its = |path: &PathBuf| fs::read_to_string(path.join("comm")).is_ok_and(|name| name == "emulator\n");
    let its = threads.map(|entry| entry.path()).find(is_its).unwrap();
    let its = Pid::from_raw(its.file_name().unwrap().to_str().unwrap().parse().unwrap()).unwrap();
    let all = sched_getaffinity(None).unwrap();
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|processor| all.is_set(*processor)).collect();
    let [own, .., other] = allowed[..] else {
        skip::<()>("it takes two processors");
        return;
    };
    bind(Some(its), own);
    bind(None, other);
    // Now and then the kernel schedules the emulator in time.
    let mut detained = (0..ATTEMPTS).map(|_| {
        let before = in_line(its);
        thread::scope(|scope| {
            scope.spawn(|| occupy(own, OCCUPIED));
            pair.wait(5);
            pair.send(1);
        });
        pair.recv();
        in_line(its) - before
    });
    let detained = detained.find(|detained| *detained >= OCCUPIED / 2);
    let report = pair.emulation.stop().unwrap();
    let Some(detained) = detained else {
        skip::<()>("no thread keeps another from a processor here");
        return;
    };
    assert!(report.lateness.max > detained / 3, "{:?} of {detained:?}", report.lateness);
    assert!(report.longest_gap > detained / 2, "{:?} of {detained:?}", report.longest_gap);
}

#[test]
fn packets_left_over_by_a_poll_count_as_late() {
    const PACKETS: usize = 5_000;
    let nowhere = PathSpec { loss: Some(LossSpec::Bernoulli(1.0)), ..PathSpec::default() };
    let Some(pair) = Pair::on(&nowhere, MAX_BYTES) else { return };
    pair.place(WALL);
    pair.wait(60);
    pair.send(PACKETS);
    pair.wait(20);
    pair.place(NOTHING);
    pair.wait_until(|link| link.pushed.packets == PACKETS as u64);
    let report = pair.emulation.stop().unwrap();
    // The first poll leaves all but the first few hundred packets.
    assert!(report.lateness.p50 > Duration::from_millis(5), "{:?}", report.lateness);
}

#[test]
fn packets_that_left_late_invalidate_a_run() {
    let Some(pair) = Pair::start(MAX_BYTES, 300) else { return };
    pair.send(1);
    // Taken in, but not yet released.
    pair.wait_until(|link| link.pushed.packets == 1);
    pair.place(WALL);
    pair.wait(400);
    pair.place(NOTHING);
    pair.recv();
    let flaws = pair.flaws();
    let is = |wanted: fn(&Flaw) -> bool| flaws.iter().any(wanted);
    assert!(is(|flaw| matches!(flaw, Flaw::Late(_))) && is(|flaw| matches!(flaw, Flaw::Stalled(_))), "{flaws:?}");
}

#[test]
fn a_saturated_processor_is_a_flaw() {
    // In a user namespace the emulator has no priority, and other threads may take the processor.
    for _ in 0..10 {
        let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
        // Idle for longer than busy, so the mean load is low.
        pair.wait(1_500);
        pair.place(BURDEN);
        let end = pair.clock.now() + Duration::from_millis(1_400);
        while pair.clock.now() < end {
            pair.send(1);
            pair.wait(1);
        }
        pair.place(NOTHING);
        let report = pair.emulation.stop().unwrap();
        assert!(report.cpu < report.elapsed * 3 / 5, "{:?} of {:?}", report.cpu, report.elapsed);
        if report.flaws.iter().any(|flaw| matches!(flaw, Flaw::Busy(percent) if *percent > MAX_BUSY)) {
            return;
        }
    }
    panic!("it was busy for more than a second each time");
}

#[test]
fn packets_that_overflow_a_hosts_queue_are_counted() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    pair.place(WALL);
    pair.wait(60);
    pair.send(25_000);
    pair.place(NOTHING);
    pair.recv();
    let flaws = pair.flaws();
    assert!(flaws.iter().any(|flaw| matches!(flaw, Flaw::ReceiveOverflow(1_000..))), "{flaws:?}");
}

#[test]
fn packets_without_memory_are_counted() {
    let Some(pair) = Pair::start(1_000, 1) else { return };
    pair.place(WALL);
    pair.wait(60);
    pair.send(100);
    pair.place(NOTHING);
    pair.recv();
    let flaws = pair.flaws();
    assert!(flaws.iter().any(|flaw| matches!(flaw, Flaw::OutOfMemory(1..))), "{flaws:?}");
}

#[test]
fn packets_refused_by_a_host_are_counted() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    pair.send(1);
    pair.recv();
    pair.emulation.enter(pair.far, || netlink::switch(tun::INTERFACE, false)).unwrap();
    pair.send(3);
    pair.wait_until(|link| link.delivered.packets == 4);
    let flaws = pair.flaws();
    assert!(flaws.contains(&Flaw::Unsent(3)), "{flaws:?}");
}

/// Runs `ip` with these words on the far host; `None` without such a command.
fn ip(pair: &Pair, words: &str) -> Option<()> {
    let mut command = Command::new("ip");
    let Ok(mut child) = pair.emulation.spawn(pair.far, command.args(words.split(' '))) else {
        eprintln!("skipped: no ip");
        return None;
    };
    assert!(child.wait().unwrap().success(), "{words}");
    Some(())
}

#[test]
fn a_deleted_interface_ends_the_emulation_with_a_named_error() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    assert!(!pair.emulation.has_failed());
    let Some(()) = ip(&pair, "link delete tun0") else { return };
    while !pair.emulation.has_failed() {
        pair.wait(1);
    }
    let error = pair.emulation.stop().unwrap_err();
    assert!(matches!(error, EmulateError::InterfaceGone(_)), "{error}");
}

#[test]
fn a_renamed_interface_is_a_flaw_and_the_report_stays() {
    let Some(pair) = Pair::start(MAX_BYTES, 1) else { return };
    pair.send(1);
    pair.recv();
    let Some(()) = ip(&pair, "link set tun0 down name other") else { return };
    let report = pair.emulation.stop().unwrap();
    assert!(report.flaws.contains(&Flaw::Uncounted(1)), "{:?}", report.flaws);
    assert_eq!(report.links[0].delivered.packets, 1);
}

#[test]
fn packets_damaged_beyond_recognition_are_no_flaw() {
    let bad = PathSpec { corrupt: 1.0, ..PathSpec::default() };
    let Some(pair) = Pair::on(&bad, MAX_BYTES) else { return };
    // One bit in 256 belongs to the version field.
    for sent in 1..=20 {
        pair.send(100);
        pair.wait_until(|link| link.delivered.packets >= sent * 100);
    }
    let flaws = pair.flaws();
    assert!(!flaws.iter().any(|flaw| matches!(flaw, Flaw::Unsent(_))), "{flaws:?}");
}
