use std::hint::black_box;

use farhaul::{Endpoint, Listener};

use super::measure::{self, Meter, Sender};
use super::*;
use crate::output::json::{End, Limit};

/// A session that computes for a while before each block, as a program does that makes its data as it goes.
struct Computing {
    blocks: u32,
    block: Vec<u8>,
    given: usize,
}

/// Processor time for each block.
const WORK: Duration = Duration::from_millis(1);

impl Session for Computing {
    fn sends(&self) -> bool {
        true
    }

    fn poll_write(&mut self) -> &[u8] {
        if self.given == self.block.len() && self.blocks > 0 {
            self.blocks -= 1;
            self.given = 0;
            let began = farhaul_udp::thread_cpu_time();
            while farhaul_udp::thread_cpu_time() - began < WORK {
                black_box(blake3::hash(&self.block));
            }
        }
        &self.block[self.given..]
    }

    fn handle_written(&mut self, count: usize) {
        self.given += count;
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        Ok(bytes.len())
    }

    fn handle_end(&mut self) -> Result<(), SessionError> {
        Ok(())
    }

    fn handle_events(&mut self) {}

    fn cancel(&mut self) {}

    fn is_over(&self) -> bool {
        self.blocks == 0 && self.given == self.block.len()
    }

    fn error(&self) -> Option<&SessionError> {
        None
    }
}

#[test]
fn a_processor_that_has_too_much_to_do_is_the_limit() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr();
    let clock = Clock::start();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (stream, _) = listener.accept().unwrap();
            let mut block = vec![0; BLOCK];
            while stream.recv(&mut block).is_ok_and(|len| len > 0) {}
        });
        let stream = Endpoint::builder().bind("127.0.0.1:0".parse().unwrap()).unwrap().connect(to).unwrap();
        let mut session = Computing { blocks: 300, block: vec![7; 4096], given: 4096 };
        let meter = Meter::start(clock);
        let line = Line { stream: &stream, role: Role::Connecting, clock, early: &[] };
        let (waits, driven) = drive(&line, &mut session);
        assert!(driven.is_ok());
        let mut end = End { seconds: meter.elapsed().as_secs_f64(), ..End::default() };
        measure::fill_limit(&mut end, &stream.stats().unwrap_or_default(), &Sender { waits, ..Sender::default() });
        let share = end.limited_by_share.unwrap();
        assert!(end.limited_by == Some(Limit::Cpu) && share > 0.5, "{:?} {share} {waits:?}", end.limited_by);
    });
}
