//! Reads a file of another host in ranges of 1 MiB, several at once, and prints the goodput.
//!
//! `read_ranges udt://host:port/path [RANGES_AT_ONCE]`; with the environment variable `PLAIN=1`, without encryption.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use farhaul_transfer::{Environment, Error, RemoteFiles, RemotePlace, Settings, Ssh};
use farhaul_units::Rate;

const RANGE: u64 = 1 << 20;

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let place = arguments.next().ok_or_else(|| Error::usage("read_ranges PLACE [RANGES_AT_ONCE]"))?;
    let place = RemotePlace::of(&place.parse()?)?;
    let at_once = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(16);
    let (mut settings, environment) = (Settings::default(), Environment::default());
    settings.security.plain = std::env::var_os("PLAIN").is_some();
    let files = RemoteFiles::connect(place.host, settings, Ssh::default(), &environment)?;
    let size = files.stat(&place.path)?.size;
    let (began, next, bytes) = (environment.clock.now(), AtomicU64::new(0), AtomicU64::new(0));
    // Each thread has one range in flight, and all share the connection.
    thread::scope(|scope| {
        let read = || -> Result<(), Error> {
            loop {
                let offset = next.fetch_add(RANGE, Ordering::Relaxed);
                if offset >= size {
                    return Ok(());
                }
                let range = files.read_range(&place.path, offset, RANGE)?;
                bytes.fetch_add(range.bytes.len() as u64, Ordering::Relaxed);
            }
        };
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(read)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread that reads does not panic"))
    })?;
    let (bytes, time) = (bytes.into_inner(), environment.clock.now() - began);
    let rate = Rate::from_bytes_in(bytes, time).map_or_else(String::new, |rate| rate.to_string());
    println!("{bytes} bytes in {:.2} s, {at_once} ranges at once: {rate}", time.as_secs_f64());
    files.close()
}
