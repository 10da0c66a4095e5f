//! Caps on the rate of copies between a server and a client of this process.
#![expect(clippy::unwrap_used, reason = "in tests a failure is a panic")]

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use farhaul_transfer::Report;
use farhaul_transfer::internal::serve::{DirectoryServer, listener};
use farhaul_transfer::internal::settings::SecuritySettings;
use farhaul_transfer::{Cancellation, CopyJob, Environment, Event, Settings, Throttle};
use farhaul_units::Rate;

const CAP: Rate = Rate::from_megabits_per_second(8);
/// A second at the cap.
const SIZE: usize = 1_000_000;

/// A directory that is served on loopback, and another one beside it.
struct Served {
    base: PathBuf,
    address: String,
    environment: Environment,
    server: Option<thread::JoinHandle<()>>,
}

fn plain(rate: Option<Rate>) -> Settings {
    let security = SecuritySettings { plain: true, ..SecuritySettings::default() };
    Settings { security, rate, remembers_paths: false, ..Settings::default() }
}

impl Served {
    fn begin(name: &str, settings: Settings) -> Self {
        let base = std::env::temp_dir().join(format!("farhaul-caps-{}-{name}", std::process::id()));
        for folder in ["root", "here"] {
            fs::create_dir_all(base.join(folder)).unwrap();
            fs::write(base.join(folder).join("file"), vec![7; SIZE]).unwrap();
        }
        let (environment, (say, hear)) = (Environment::default(), mpsc::channel());
        let (root, its) = (base.join("root"), environment.clone());
        let server = thread::spawn(move || {
            let server = DirectoryServer::of(&root, None, false).unwrap();
            let endpoint = settings.bind_daemon("127.0.0.1:0".parse().unwrap(), None, None).unwrap();
            let listener = listener::listen(&its, &endpoint).unwrap();
            its.cancellation.cancels(endpoint.canceller());
            say.send(endpoint.local_addr()).unwrap();
            let _ = server.run(&its, &settings, listener, |_| ());
        });
        Self { base, address: format!("udt://{}", hear.recv().unwrap()), environment, server: Some(server) }
    }

    fn pull(&self, settings: Settings, environment: &Environment) -> Report {
        let places = [format!("{}/file", self.address), self.base.join("here/copy").display().to_string()];
        self.copy(&places, settings, environment)
    }

    fn push(&self, settings: Settings, environment: &Environment) -> Report {
        let places = [self.base.join("here/file").display().to_string(), format!("{}/copy", self.address)];
        self.copy(&places, settings, environment)
    }

    fn copy(&self, places: &[String], settings: Settings, environment: &Environment) -> Report {
        let places: Vec<_> = places.iter().map(|place| place.parse().unwrap()).collect();
        CopyJob::new(&places, false).unwrap().with_settings(settings).run(environment).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.environment.cancellation.cancel();
        self.server.take().map(thread::JoinHandle::join);
        let _ = fs::remove_dir_all(&self.base);
    }
}

/// What the wire carried of the data is at least this long at the cap.
fn is_capped(report: &Report) -> bool {
    let at_least = SIZE as f64 * 8.0 / CAP.bits_per_second() as f64;
    report.seconds > 0.9 * at_least
}

#[test]
fn a_cap_holds_for_both_directions() {
    let served = Served::begin("both", plain(None));
    let environment = Environment::default();
    let pulled = served.pull(plain(Some(CAP)), &environment);
    assert!(is_capped(&pulled), "{pulled:?}");
    let pushed = served.push(plain(Some(CAP)), &environment);
    assert!(is_capped(&pushed), "{pushed:?}");
}

#[test]
fn a_client_does_not_raise_the_cap_of_a_server() {
    let served = Served::begin("server", plain(Some(CAP)));
    let environment = Environment::default();
    let pulled = served.pull(plain(Some(Rate::from_megabits_per_second(1_000))), &environment);
    assert!(is_capped(&pulled), "{pulled:?}");
}

/// Changes the cap of a copy once its first bytes moved.
fn lifting(throttle: &Throttle, to: Option<Rate>) -> Environment {
    let (lifted, its) = (AtomicBool::new(false), throttle.clone());
    let environment = Environment::reporting_to(move |event: &Event<'_>| {
        if matches!(event, Event::Moved(moved) if moved.bytes() > 0) && !lifted.swap(true, Ordering::AcqRel) {
            its.set_rate(to).unwrap();
        }
    });
    environment.with_throttle(throttle.clone())
}

#[test]
fn a_cap_is_lifted_while_a_copy_runs_in_either_direction() {
    let served = Served::begin("lifted", plain(None));
    // The whole would take 80 s.
    let slow = Some(Rate::from_bits_per_second(100_000));
    let pulled = served.pull(plain(slow), &lifting(&Throttle::default(), None));
    assert!(pulled.seconds < 40.0, "{pulled:?}");
    let pushed = served.push(plain(slow), &lifting(&Throttle::default(), None));
    assert!(pushed.seconds < 40.0, "{pushed:?}");
}

#[test]
fn a_paused_copy_moves_nothing_until_it_is_resumed_or_cancelled() {
    let served = Served::begin("paused", plain(None));
    for pulls in [true, false] {
        let throttle = Throttle::default();
        throttle.pause().unwrap();
        let environment = Environment::default().with_throttle(throttle.clone());
        let done = Arc::new(AtomicBool::new(false));
        thread::scope(|scope| {
            let copying = scope.spawn(|| {
                let report = match pulls {
                    true => served.pull(plain(None), &environment),
                    false => served.push(plain(None), &environment),
                };
                done.store(true, Ordering::Release);
                report
            });
            thread::park_timeout(Duration::from_millis(200));
            assert!(!done.load(Ordering::Acquire));
            throttle.resume().unwrap();
            assert_eq!(copying.join().unwrap().bytes, SIZE as u64);
        });
    }
    let throttle = Throttle::default();
    throttle.pause().unwrap();
    let cancellation = Cancellation::default();
    let environment = Environment::default().with_throttle(throttle).with_cancellation(cancellation.clone());
    thread::scope(|scope| {
        scope.spawn(move || {
            thread::park_timeout(Duration::from_millis(100));
            cancellation.cancel();
        });
        let places = [served.base.join("here/file").display().to_string(), format!("{}/other", served.address)];
        let places: Vec<_> = places.iter().map(|place| place.parse().unwrap()).collect();
        assert!(CopyJob::new(&places, false).unwrap().with_settings(plain(None)).run(&environment).is_err());
    });
}
