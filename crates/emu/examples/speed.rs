//! What the emulator carries on this machine, and at what price: UDP datagrams one by one, as `iperf3 -u` sends them.
//!
//!     cargo run --release -p farhaul-emu --example speed -- 1gbit 1500 5

use std::error::Error;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use farhaul_emu::{Emulation, NetworkSpec};
use farhaul_netem::PathSpec;
use farhaul_udp::Clock;
use farhaul_units::{Duration, Instant, Rate};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rate, mtu, seconds] = &arguments[..] else { return Err("usage: speed RATE MTU SECONDS".into()) };
    let rate: Rate = rate.parse()?;
    let (mtu, seconds): (u32, u64) = (mtu.parse()?, seconds.parse()?);
    println!("this machine carries about {} in packets of {mtu} bytes", farhaul_emu::capacity(mtu)?);
    let path = PathSpec { rate: Some(rate), delay: Duration::from_millis(5), ..PathSpec::default() };
    let (network, [near, far]) = NetworkSpec::pair(&path, &PathSpec { seed: 1, ..path.clone() }, mtu);
    let emulation = Emulation::start(&network)?;
    let receiver = emulation.enter(far, || UdpSocket::bind("0.0.0.0:7000"))?;
    receiver.set_read_timeout(Some(Duration::from_millis(200)))?;
    let sender = emulation.enter(near, || UdpSocket::bind("0.0.0.0:0"))?;
    sender.connect((emulation.ipv4(far), 7_000))?;
    let (stop, arrived) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut datagram = [0; 65_536];
            while !stop.load(Ordering::Relaxed) {
                if receiver.recv(&mut datagram).is_ok() {
                    arrived.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        // Two percent below the link's rate, a millisecond's worth at a time.
        let clock = Clock::start();
        let datagram = vec![7; mtu as usize - 28];
        let per_second = rate.bits_per_second() as f64 * 0.98 / 8.0 / f64::from(mtu);
        let mut sent = 0.0;
        for millisecond in 1..=seconds * 1_000 {
            while sent < per_second * millisecond as f64 / 1e3 {
                let _ = sender.send(&datagram);
                sent += 1.0;
            }
            clock.sleep_until(Instant::ZERO + Duration::from_millis(millisecond));
        }
        clock.sleep_until(clock.now() + Duration::from_millis(100));
        stop.store(true, Ordering::Relaxed);
        println!("sent {sent}, arrived {}", arrived.load(Ordering::Relaxed));
    });
    let report = emulation.stop()?;
    let share = report.cpu.as_secs_f64() / report.elapsed.as_secs_f64();
    println!("{:.2} of a processor; {:?}; gaps {:?} {:?}", share, report.lateness, report.p99_gap, report.longest_gap);
    println!("link {:?}; valid {} {:?}", report.links()[0].delivered, report.valid, report.flaws);
    Ok(())
}
