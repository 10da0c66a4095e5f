//! A file session under a throttle: its pauses, what its peer asks of it as the sender, and what it asks as the receiver.

use std::rc::Rc;

use delegate::delegate;
use farhaul_bond::BondedStream;
use farhaul_session::{Abort, SenderRequest, SenderRequests, SenderSettings, SessionError};
use farhaul_units::Rate;

use super::watch::RoundTrips;
use super::{Hearing, Session, WaitTimes};
use crate::cancel::Cancellation;
use crate::throttle::{Capped, Obedience, Throttle};

/// A session, and the throttle of what runs.
pub(crate) struct Throttled<'a, J> {
    session: &'a mut J,
    throttle: &'a Throttle,
    cancellation: &'a Cancellation,
    direction: Direction,
}

enum Direction {
    /// This side sends the data, and hears what the peer asks.
    Sends(Capped),
    /// The peer sends it, and is asked.
    Receives(RequestWriter, #[expect(dead_code, reason = "its drop takes the connection out")] Capped),
}

impl<'a, J: Session> Throttled<'a, J> {
    /// A session over this stream. As a receiver it has `requested` this of its sender, and as a sender it `obeys` others.
    pub(crate) fn new(
        session: &'a mut J,
        stream: &BondedStream,
        (throttle, cancellation): (&'a Throttle, &'a Cancellation),
        (requested, obeys): (SenderSettings, Obedience),
    ) -> Self {
        let direction = match session.sends() {
            true => Direction::Sends(throttle.caps_obeying(stream, obeys)),
            false => {
                // The first frame of a session may have gone with the first message through ssh.
                let (has_begun, rate) = (session.poll_write().is_empty(), requested.rate);
                let writer = RequestWriter { has_begun, began_with: rate, requested: rate, ..RequestWriter::default() };
                Direction::Receives(writer, throttle.hears(stream))
            }
        };
        Self { session, throttle, cancellation, direction }
    }
}

/// Writes a receiver's requests to its sender, between the frames of the session.
#[derive(Debug, Default)]
struct RequestWriter {
    /// The cap that its first frame requested, and the last one.
    began_with: Option<Rate>,
    requested: Option<Rate>,
    /// The part of a request that is not written yet.
    pending: Vec<u8>,
    /// Bytes of the session that it gave and that are not written yet.
    unwritten: usize,
    /// The session's first frame is written. Nothing may stand before it.
    has_begun: bool,
}

impl RequestWriter {
    /// Puts the next request, if the cap is another one by now and the last frame is complete.
    fn update(&mut self, cap: Option<Rate>) {
        if !self.has_begun || self.unwritten > 0 || !self.pending.is_empty() {
            return;
        }
        if cap != self.requested {
            self.requested = cap;
            self.pending.extend(SenderRequest::Rate(cap).encode());
        }
    }

    fn handle_written(&mut self, count: usize) {
        self.unwritten -= count;
        self.has_begun |= self.unwritten == 0;
    }
}

impl<J: Session> Session for Throttled<'_, J> {
    delegate! {
        to self.session {
            fn set_round_trips(&mut self, round_trips: RoundTrips);
            fn begin(&mut self, wait_times: &Rc<WaitTimes>);
            fn sends(&self) -> bool;
            fn handle_disk(&mut self) -> Result<(), SessionError>;
            fn handle_end(&mut self) -> Result<(), SessionError>;
            fn handle_events(&mut self) -> bool;
            fn cancel(&mut self, why: Abort);
            fn is_over(&self) -> bool;
            fn error(&self) -> Option<&SessionError>;
            fn awaits_disk(&self) -> bool;
        }
    }

    fn poll_write(&mut self) -> &[u8] {
        match &mut self.direction {
            Direction::Sends(_) if self.throttle.is_paused() && !self.cancellation.is_cancelled() => &[],
            Direction::Sends(_) => self.session.poll_write(),
            Direction::Receives(writer, _) => {
                writer.update(self.throttle.rate().unwrap_or(writer.began_with));
                if !writer.pending.is_empty() {
                    return &writer.pending;
                }
                let bytes = self.session.poll_write();
                writer.unwritten = bytes.len();
                bytes
            }
        }
    }

    fn handle_written(&mut self, count: usize) {
        if let Direction::Receives(writer, _) = &mut self.direction {
            if !writer.pending.is_empty() {
                writer.pending.drain(..count);
                return;
            }
            writer.handle_written(count);
        }
        self.session.handle_written(count);
    }

    fn handle_received(&mut self, bytes: &[u8]) -> Result<usize, SessionError> {
        if let Direction::Receives(..) = &self.direction {
            // As a disk that takes nothing for the moment.
            self.throttle.wait(|| self.cancellation.is_cancelled());
        }
        self.session.handle_received(bytes)
    }

    fn hearing(&mut self) -> Hearing {
        let Direction::Sends(capped) = &self.direction else { return Box::new(|_| ()) };
        let (peer_requests, mut requests) = (capped.peer_requests(), SenderRequests::default());
        Box::new(move |mut bytes| {
            while let Some(request) = requests.next(&mut bytes) {
                peer_requests.apply(request);
            }
        })
    }

    fn is_paused(&self) -> bool {
        self.session.is_paused() || matches!(self.direction, Direction::Sends(_)) && self.throttle.is_paused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAP: Option<Rate> = Some(Rate::from_megabits_per_second(5));

    #[test]
    fn a_receiver_asks_behind_its_first_frame_and_between_frames_alone() {
        let mut writer = RequestWriter { unwritten: 30, ..RequestWriter::default() };
        writer.update(CAP);
        assert!(writer.pending.is_empty(), "the opening goes first");
        writer.handle_written(20);
        writer.update(CAP);
        assert!(writer.pending.is_empty(), "the opening is not complete");
        writer.handle_written(10);
        writer.update(CAP);
        assert_eq!(writer.pending, SenderRequest::Rate(CAP).encode());
        writer.pending.clear();
        writer.update(CAP);
        assert!(writer.pending.is_empty(), "the peer knows");
        writer.update(None);
        assert_eq!(writer.pending, SenderRequest::Rate(None).encode());
    }
}
