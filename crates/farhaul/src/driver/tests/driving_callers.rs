//! Callers that drive their port while they wait.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

/// Sends blanks until the `caller` of `b` drives.
fn until_a_caller_drives<R>(a: &Driver<Toy>, b: &Driver<Toy>, caller: &thread::ScopedJoinHandle<'_, R>) {
    for _ in 0..20_000 {
        if b.lock().unwrap().caller_drives {
            return;
        }
        assert!(!caller.is_finished(), "it goes on");
        write(a, b" ");
        thread::park_timeout(Duration::from_micros(200));
    }
    panic!("no caller drives");
}

/// Runs `act` while a reader of `b` waits, and gives what it read. The reader had brief waits before, so it drives.
fn while_a_reader_drives(a: &Driver<Toy>, b: &Driver<Toy>, act: impl FnOnce()) -> Result<Vec<u8>, Error> {
    accept(b).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            loop {
                let bytes = read(b, None)?;
                let content = bytes.trim_ascii();
                if !content.is_empty() {
                    return Ok(content.to_vec());
                }
            }
        });
        until_a_caller_drives(a, b, &reader);
        act();
        reader.join().unwrap()
    })
}

fn connected() -> (Driver<Toy>, Driver<Toy>) {
    let (a, b) = (driver(Toy::default()), driver(Toy::default()));
    b.lock().unwrap().open_acceptor().unwrap();
    connect(&a, &b);
    write(&a, b" ");
    (a, b)
}

#[test]
fn a_reader_with_brief_waits_drives_and_hears_the_peer() {
    let (a, b) = connected();
    assert_eq!(while_a_reader_drives(&a, &b, || write(&a, b"hello")).unwrap(), b"hello");
}

#[test]
fn a_writer_with_brief_waits_drives_and_its_data_leaves() {
    let (a, b) = connected();
    accept(&b).unwrap();
    b.lock().unwrap().transport.takes_turns = true;
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let attempt = |core: &mut Core<Toy>, now| Ok((core.transport.write(now, ID, b"x")? > 0).then_some(()));
            while !ends.load(Ordering::Relaxed) {
                b.wait_for(WaitPlace::Write(ID), [&NEVER, &NEVER], None, attempt).unwrap();
            }
        });
        until_a_caller_drives(&a, &b, &writer);
        ends.store(true, Ordering::Relaxed);
        while !writer.is_finished() {
            write(&a, b" ");
            thread::park_timeout(Duration::from_micros(200));
        }
    });
    assert!(read(&a, None).unwrap().starts_with(b"x"));
}

#[test]
fn a_panic_of_a_reader_that_drives_breaks_the_port_and_leaves_nobody_waiting() {
    let (a, b) = connected();
    accept(&b).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| while read(&b, None).is_ok() {});
        until_a_caller_drives(&a, &b, &reader);
        while !reader.is_finished() {
            write(&a, POISON);
            thread::park_timeout(Duration::from_millis(1));
        }
        // Whichever thread drove then has panicked.
        let _ = reader.join();
    });
    assert!(matches!(read(&b, None), Err(Error::DriverStopped)));
}

#[test]
fn a_reader_that_drives_can_be_cancelled() {
    let (a, b) = connected();
    let flag = Arc::new(CancelFlag::new());
    let canceller = Canceller::new(&flag, b.cancellation());
    accept(&b).unwrap();
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let attempt = |core: &mut Core<Toy>, now| {
                let mut out = [0; 64];
                let read = core.transport.read(now, ID, &mut out)?;
                Ok(matches!(read, Read::Data(_)).then_some(()))
            };
            while b.wait_for(WaitPlace::Read(ID), [&flag, &NEVER], None, attempt).is_ok() {}
        });
        until_a_caller_drives(&a, &b, &reader);
        canceller.cancel();
        reader.join().unwrap();
    });
}

#[test]
fn a_reader_that_drives_hears_of_other_threads_of_its_connection() {
    let (a, b) = connected();
    let lose = || {
        let mut guard = b.lock().unwrap();
        guard.transport.incoming = b"by a thread".to_vec();
        guard.transport.events.push(Event::Closed(ID, ConnectionLost::ClosedByPeer));
    };
    assert_eq!(while_a_reader_drives(&a, &b, lose).unwrap(), b"by a thread");
}

#[test]
fn a_long_wait_gives_the_port_back_to_the_driver_thread() {
    let (a, b) = connected();
    let wait = || {
        while b.lock().unwrap().caller_drives {
            thread::park_timeout(Duration::from_millis(1));
        }
        write(&a, b"late");
    };
    assert_eq!(while_a_reader_drives(&a, &b, wait).unwrap(), b"late");
}

#[test]
fn the_driver_thread_drives_while_a_reader_stays_away() {
    let (a, b) = connected();
    while_a_reader_drives(&a, &b, || write(&a, b"enough")).unwrap();
    write(&a, b"while it is away");
    while !b.lock().unwrap().transport.incoming.ends_with(b"while it is away") {
        thread::park_timeout(Duration::from_micros(100));
    }
}

#[test]
fn a_reader_of_one_of_two_connections_leaves_the_port_to_the_driver_thread() {
    let (a, b) = connected();
    accept(&b).unwrap();
    b.lock().unwrap().open(ConnectionId::from_parts(1, 0));
    thread::scope(|scope| {
        let reader = scope.spawn(|| while !read(&b, None).unwrap().ends_with(b"enough") {});
        for _ in 0..100 {
            assert!(!b.lock().unwrap().caller_drives);
            write(&a, b" ");
            thread::park_timeout(Duration::from_micros(200));
        }
        write(&a, b"enough");
        reader.join().unwrap();
    });
}
