//! The application's view of a connection: its state, its end, and its events.

use crate::endpoint::life::{Cause, Ending, Interest, Life};
use crate::error::ConnectionLost;
use crate::event::{ConnectionId, Event};
use crate::transport::{Read, StreamError};

/// The state of a connection for its application. Transitions queue the events that report them.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    id: ConnectionId,
    life: Life,
    /// How the connection ended for the application. Set while it is closing or closed.
    ending: Option<Ending>,
    interest: Interest,
    /// A read found nothing. An event follows when there is data.
    reader_waits: bool,
    /// A write found no room. An event follows when there is room.
    writer_waits: bool,
    /// This side ended its writing side alone. An event follows when all of it was acknowledged.
    delivery_waits: bool,
    events: Vec<Event>,
}

impl ConnectionState {
    /// A connection that the application opens.
    pub(crate) const fn opening(id: ConnectionId) -> Self {
        Self {
            id,
            life: Life::Connecting,
            ending: None,
            interest: Interest::Held,
            reader_waits: true,
            writer_waits: false,
            delivery_waits: false,
            events: Vec::new(),
        }
    }

    /// A connection that a caller opened and that the application must take.
    pub(crate) fn accepted(id: ConnectionId) -> Self {
        Self { life: Life::Open, interest: Interest::Awaited, events: vec![Event::Accepted(id)], ..Self::opening(id) }
    }

    /// A connection that a caller opens. The application learns of it once it is established.
    pub(crate) fn called(id: ConnectionId) -> Self {
        Self { interest: Interest::Awaited, ..Self::opening(id) }
    }

    // ---- what moves it ----

    /// The handshake succeeded.
    pub(crate) fn established(&mut self) {
        if self.advance(Cause::Established) {
            let accepted = self.interest == Interest::Awaited;
            self.events.push(if accepted { Event::Accepted(self.id) } else { Event::Connected(self.id) });
        }
    }

    /// The application ends its writing side. Returns false if it could not write anyway.
    pub(crate) fn finish(&mut self) -> bool {
        self.interest.hold();
        let finishes = self.advance(Cause::Finish);
        // A writer that waits for room fails now.
        self.wake_writer(|| finishes);
        finishes
    }

    /// The application ends its writing side alone, in a connection that can.
    ///
    /// # Errors
    /// Nothing can be written any more for another reason.
    pub(crate) fn finish_sending(&mut self) -> Result<(), StreamError> {
        if self.life != Life::HalfClosed {
            self.may_write()?;
            self.delivery_waits = self.advance(Cause::FinishSending);
            self.wake_writer(|| true);
        }
        Ok(())
    }

    /// Everything up to the end of this side's direction was acknowledged.
    pub(crate) fn sending_finished(&mut self) {
        if std::mem::take(&mut self.delivery_waits) {
            self.events.push(Event::SendingFinished(self.id));
        }
    }

    /// Everything written was acknowledged. `complete` is whether all of the peer's data arrived.
    pub(crate) fn flushed(&mut self, complete: bool) {
        if self.advance(Cause::Flushed) {
            self.ending = Some(Ending { reason: ConnectionLost::ClosedLocally, complete });
            self.events.push(Event::Finished(self.id));
        }
    }

    /// The application closes it. Returns false if it has ended already.
    pub(crate) fn close(&mut self) -> bool {
        self.interest.hold();
        let connecting = self.life == Life::Connecting;
        let closes = self.advance(Cause::Close);
        if closes {
            self.ending = Some(Ending::early(ConnectionLost::ClosedLocally));
            if connecting || self.interest != Interest::Released {
                self.events.push(Event::Closed(self.id, ConnectionLost::ClosedLocally));
            }
        }
        closes
    }

    /// The application releases it and gets no further events. The caller closes it next.
    pub(crate) fn release(&mut self) {
        self.interest = Interest::Released;
    }

    /// The last shutdown was sent.
    pub(crate) fn close_sent(&mut self) {
        self.advance(Cause::CloseSent);
    }

    /// The peer closed, fell silent or misbehaved, or the handshake failed. Returns false if the connection was closed. A
    /// closing connection keeps its ending.
    pub(crate) fn lost(&mut self, ending: Ending) -> bool {
        let was = self.life;
        let ends = self.advance(Cause::Lost);
        if was == Life::Connecting && self.interest == Interest::Awaited {
            // The application never knew it.
            self.interest = Interest::Released;
            self.reader_waits = false;
        } else if ends && was != Life::Closing {
            self.ending = Some(ending);
            self.events.push(Event::Closed(self.id, ending.reason));
        }
        ends
    }

    fn advance(&mut self, cause: Cause) -> bool {
        let next = self.life.after(cause);
        if let Some(next) = next {
            self.life = next;
        }
        next.is_some()
    }

    // ---- what the application does ----

    /// The application uses it, or took it.
    pub(crate) fn hold(&mut self) {
        self.interest.hold();
    }

    /// Whether data may be written.
    pub(crate) fn may_write(&self) -> Result<(), StreamError> {
        match self.life {
            Life::Open => Ok(()),
            Life::Connecting => Err(StreamError::NotConnected),
            Life::HalfClosed | Life::Finishing => Err(StreamError::Finished),
            Life::Closing | Life::Closed => {
                Err(StreamError::Lost(self.ending.map_or(ConnectionLost::ClosedLocally, |ending| ending.reason)))
            }
        }
    }

    /// A write was not taken in full. Several writers may share a connection, so a full write of another one does not
    /// clear this.
    pub(crate) fn wait_for_room(&mut self) {
        self.writer_waits = true;
    }

    /// The result of a read that found nothing.
    pub(crate) fn nothing_to_read(&mut self) -> Result<Read, StreamError> {
        match self.ending {
            None => {
                self.reader_waits = true;
                Ok(Read::Pending)
            }
            Some(Ending { complete: true, .. }) => Ok(Read::End),
            Some(Ending { reason, .. }) => Err(StreamError::Lost(reason)),
        }
    }

    // ---- what the application hears ----

    /// Reports to a waiting reader that there is data, or that none will follow.
    pub(crate) fn wake_reader(&mut self, can_read: impl FnOnce() -> bool) {
        if self.reader_waits && (self.has_ended() || can_read()) {
            self.reader_waits = false;
            self.events.push(Event::Readable(self.id));
        }
    }

    /// Reports to a waiting writer that there is room, or that the connection ended.
    pub(crate) fn wake_writer(&mut self, can_write: impl FnOnce() -> bool) {
        if self.writer_waits && (can_write() || self.has_ended()) {
            self.writer_waits = false;
            self.events.push(Event::Writable(self.id));
        }
    }

    /// The peer, or a forger, reported an error.
    pub(crate) fn complain(&mut self, code: u32) {
        self.events.push(Event::PeerComplained(self.id, code));
    }

    /// The events since the last call.
    pub(crate) fn take_events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    // ---- facts ----

    pub(crate) const fn id(&self) -> ConnectionId {
        self.id
    }

    pub(crate) const fn life(&self) -> Life {
        self.life
    }

    /// Whether nothing is sent or received any more.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(self.life, Life::Closed)
    }

    /// Whether it can be forgotten.
    pub(crate) const fn is_done(&self) -> bool {
        matches!((self.interest, self.life), (Interest::Released, Life::Closed))
    }

    /// Accepted, and not taken by the application yet.
    pub(crate) const fn waits_for_application(&self) -> bool {
        matches!(self.interest, Interest::Awaited)
    }

    /// Whether it has ended for the application.
    pub(crate) const fn has_ended(&self) -> bool {
        matches!(self.life, Life::Closing | Life::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConnectionId = ConnectionId { slot: 3, generation: 1 };

    fn events(state: &mut ConnectionState) -> Vec<Event> {
        state.take_events().collect()
    }

    fn open() -> ConnectionState {
        let mut state = ConnectionState::opening(ID);
        state.established();
        events(&mut state);
        state
    }

    #[test]
    fn readers_and_writers_are_woken_once_for_what_they_wait_for() {
        let mut state = open();
        state.wake_reader(|| true);
        state.wake_reader(|| true);
        state.wake_writer(|| true);
        assert_eq!(events(&mut state), [Event::Readable(ID)], "nobody waits for room");
        state.wait_for_room();
        assert_eq!(state.nothing_to_read(), Ok(Read::Pending));
        state.wake_reader(|| false);
        state.wake_writer(|| false);
        assert_eq!(events(&mut state), []);
        assert!(state.close());
        state.wake_reader(|| false);
        state.wake_writer(|| false);
        let closed = Event::Closed(ID, ConnectionLost::ClosedLocally);
        assert_eq!(events(&mut state), [closed, Event::Readable(ID), Event::Writable(ID)]);
    }

    #[test]
    fn a_writer_that_waits_for_room_hears_that_it_cannot_write_any_more() {
        let ends: [fn(&mut ConnectionState) -> bool; 2] =
            [ConnectionState::finish, |state| state.finish_sending().is_ok()];
        for end in ends {
            let mut state = open();
            state.wait_for_room();
            assert!(end(&mut state));
            assert_eq!(events(&mut state), [Event::Writable(ID)]);
        }
    }

    #[test]
    fn a_leaving_connection_keeps_its_ending() {
        let mut state = open();
        assert!(state.finish());
        assert_eq!(state.may_write(), Err(StreamError::Finished));
        state.flushed(true);
        assert!(state.lost(Ending::early(ConnectionLost::Aborted)));
        assert_eq!(events(&mut state), [Event::Finished(ID)]);
        assert_eq!(state.nothing_to_read(), Ok(Read::End));
        assert_eq!(state.may_write(), Err(StreamError::Lost(ConnectionLost::ClosedLocally)));
        assert!(!state.lost(Ending::early(ConnectionLost::Aborted)) && !state.is_done());
        state.release();
        assert!(state.is_done());
    }

    #[test]
    fn a_released_connection_reports_nothing_unless_it_was_being_opened() {
        for (mut state, says) in [(open(), 0), (ConnectionState::opening(ID), 1)] {
            state.release();
            assert!(state.close());
            assert_eq!(events(&mut state).len(), says);
        }
    }

    #[test]
    fn a_call_that_fails_before_it_is_established_is_never_reported() {
        let mut state = ConnectionState::called(ID);
        assert!(state.lost(Ending::early(ConnectionLost::Aborted)) && state.is_done());
        assert_eq!(events(&mut state), []);
        let mut state = ConnectionState::called(ID);
        state.established();
        assert_eq!(events(&mut state), [Event::Accepted(ID)]);
    }

    #[test]
    fn an_accepted_connection_waits_until_the_application_uses_it() {
        let mut state = ConnectionState::accepted(ID);
        assert_eq!(events(&mut state), [Event::Accepted(ID)]);
        assert!(state.waits_for_application());
        state.hold();
        assert!(!state.waits_for_application());
    }
}
