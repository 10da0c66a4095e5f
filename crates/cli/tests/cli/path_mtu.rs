//! The packet size between real sockets: a path of jumbo packets that becomes one of Ethernet without a word.
//!
//! Needs TUN devices, and root or user namespaces; without them the test says so and passes.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use farhaul::{Endpoint, Listener, Stream};
use farhaul_emu::{EmulateError, Emulation, NetworkSpec};
use farhaul_netem::{Mtu, PathSpec};
use farhaul_udp::Clock;
use farhaul_units::Rate;

use crate::process::{Scratch, farhaul};
use crate::requirement::{runs, skip};

/// When the path becomes narrow.
const HOLE: Duration = Duration::from_secs(3);
/// What a transfer may take to go on.
const SURVIVED: Duration = Duration::from_secs(3);
const END: Duration = Duration::from_secs(9);

/// Two hosts with jumbo packets, if this machine permits them.
fn network() -> Option<(Emulation, [farhaul_emu::HostId; 2])> {
    let rate = Some(Rate::from_megabits_per_second(100));
    let down = PathSpec { rate, delay: Duration::from_millis(10), ..PathSpec::default() };
    let up = PathSpec { mtu: Some(Mtu::new(9_000).then(HOLE, 1_500)), ..down.clone() };
    let (network, hosts) = NetworkSpec::pair(&up, &down, 9_000);
    match Emulation::start(&network) {
        Ok(emulation) => Some((emulation, hosts)),
        Err(error @ (EmulateError::NoPermission(_) | EmulateError::NoTun(_))) => skip(&error.to_string()),
        Err(error) => panic!("{error}"),
    }
}

fn listen() -> io::Result<Listener> {
    let endpoint = Endpoint::builder().plain().probe_mtu().bind("0.0.0.0:5000".parse().unwrap());
    endpoint.and_then(|endpoint| endpoint.listen()).map_err(io::Error::other)
}

fn connect(to: std::net::Ipv4Addr) -> io::Result<Stream> {
    let endpoint = Endpoint::builder().plain().probe_mtu().towards(to.into()).bind("0.0.0.0:0".parse().unwrap());
    endpoint.and_then(|endpoint| endpoint.connect((to, 5_000))).map_err(io::Error::other)
}

// Waits for 9 s: 3 s until the path becomes narrow, 3 s in which the transfer may stand still, and time to go on.
#[test]
fn a_path_that_drops_jumbo_packets_without_a_word_is_survived() {
    let Some((emulation, [near, far])) = network() else { return };
    let clock = Clock::start();
    let listener = emulation.enter(far, listen).unwrap();
    let arrived = AtomicU64::new(0);
    let (mut sizes, longest) = thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut buffer, mut last, mut longest) = (vec![0; 1 << 20], clock.now(), Duration::ZERO);
            while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
                let now = clock.now();
                longest = longest.max(now - last);
                last = now;
                arrived.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            longest
        });
        let mut stream = emulation.enter(near, || connect(emulation.ipv4(far))).unwrap();
        let (block, mut sizes) = (vec![7; 100_000], Vec::new());
        while clock.now() < farhaul_units::Instant::ZERO + END {
            stream.write_all(&block).unwrap();
            let size = stream.stats().unwrap().packet_size;
            if sizes.last() != Some(&size) {
                sizes.push(size);
            }
        }
        stream.finish().unwrap();
        (sizes, reader.join().unwrap())
    });
    // The base size may be over before the next look at it.
    sizes.retain(|size| *size != 1_280);
    assert_eq!(sizes, [1_500, 9_000, 1_500]);
    assert!(longest < SURVIVED, "a pause of {longest:?}");
    // Two thirds of what the path carries in that time.
    let arrived = arrived.load(Ordering::Relaxed);
    assert!(arrived > 70_000_000, "{arrived}");
    emulation.stop().unwrap();
}

/// A confined server may read no list of interfaces. Yet it takes part in the search.
#[test]
fn a_copy_to_a_server_finds_jumbo_packets() {
    let program = env!("CARGO_BIN_EXE_farhaul");
    if runs(&[program, "emulate", "--quiet", "--", "true"], "networks of one's own").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (file, there) = (scratch.file("file", 30_000_000), scratch.dir("there"));
    let serve = format!("exec {program} serve --plain --root '{there}' --listen :9000");
    let copy = format!("exec {program} copy --plain --json '{file}' udt://$FARHAUL_PEER:9000/");
    let path = ["emulate", "--quiet", "--rate", "100mbit", "--delay", "5ms", "--mtu", "9000", "--serve", &serve];
    let run = farhaul(&[&path[..], &["--", "sh", "-c", &copy]].concat());
    run.succeeds();
    assert_eq!(run.end()["mtu_bytes"].as_u64(), Some(9_000), "{}", run.end());
}
