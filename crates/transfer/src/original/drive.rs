//! The loop of every session: channel bytes first, datagrams next, then timers, the host's work, and the peer's share.

use std::net::SocketAddr;

use farhaul_proto::ChannelEnd;
use farhaul_units::Instant;

use super::Failure;
use super::line::Line;

/// Receive calls and trains of one turn. The channel gets its turn in between.
const CALLS: usize = 16;

/// A session and its host's duties.
pub(super) trait Session {
    /// Takes bytes of the channel.
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure>;

    /// The peer ended the channel, or it broke.
    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Failure>;

    /// Appends bytes for the channel.
    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>);

    /// Whether this side receives datagrams now.
    fn receives(&self) -> bool {
        false
    }

    /// Takes a datagram. Those of others than the peer must change nothing (attack C2).
    fn handle_datagram(&mut self, _now: Instant, _from: SocketAddr, _datagram: &[u8]) -> Result<(), Failure> {
        Ok(())
    }

    /// All datagrams of one receive call were handled.
    fn end_batch(&mut self, _now: Instant) {}

    /// Where datagrams go; `None` if none are sent now.
    fn to(&self) -> Option<SocketAddr> {
        None
    }

    /// The next datagrams, back to back, and the length of each but the last.
    fn next_train<'a>(
        &'a mut self,
        _now: Instant,
        _scratch: &'a mut Vec<u8>,
    ) -> Result<Option<(usize, &'a [u8])>, Failure> {
        Ok(None)
    }

    /// Fires the timers that are due.
    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure>;

    /// When to call again; `None` if only input can cause output.
    fn deadline(&self) -> Option<Instant>;

    /// Moves bytes between the session and the application, and handles events. Returns whether the session's present
    /// task is done.
    fn work(&mut self, now: Instant, line: &mut Line) -> Result<bool, Failure>;
}

/// Runs a session until its task is done and the peer was told. If it fails, what the dialogue still says goes out.
pub(super) fn drive(line: &mut Line, session: &mut impl Session) -> Result<(), Failure> {
    let mut scratch = Vec::new();
    let result = run(line, session, &mut scratch);
    if result.is_err() {
        let now = line.now();
        session.poll_channel(now, &mut line.out);
        line.flush();
    }
    result
}

fn run(line: &mut Line, session: &mut impl Session, scratch: &mut Vec<u8>) -> Result<(), Failure> {
    loop {
        line.check_stop()?;
        let now = line.now();
        let ended = line.receive(|bytes, _| session.handle_channel(now, bytes))?;
        let more = session.receives() && receive_datagrams(line, session, now)?;
        if let Some(end) = ended {
            session.channel_ended(now, end)?;
        }
        session.handle_timeout(now)?;
        let is_done = session.work(now, line)?;
        session.poll_channel(now, &mut line.out);
        line.flush();
        if is_done && !line.has_rest() {
            return Ok(());
        }
        let more = send_datagrams(line, session, now, scratch)? || more;
        // The last datagrams of a blast bring a record about its end.
        session.poll_channel(now, &mut line.out);
        line.flush();
        let deadline = session.deadline();
        line.wait(deadline, session.receives(), more)?;
    }
}

/// Returns whether more may wait.
fn receive_datagrams(line: &mut Line, session: &mut impl Session, now: Instant) -> Result<bool, Failure> {
    for _ in 0..CALLS {
        let more = line.receive_datagrams(|from, datagram| session.handle_datagram(now, from, datagram))?;
        if !more {
            return Ok(false);
        }
        session.end_batch(now);
    }
    Ok(true)
}

/// Returns whether more may be due.
fn send_datagrams(
    line: &mut Line,
    session: &mut impl Session,
    now: Instant,
    scratch: &mut Vec<u8>,
) -> Result<bool, Failure> {
    let Some(to) = session.to() else { return Ok(false) };
    if !line.send_blocked(to)? {
        return Ok(false);
    }
    for _ in 0..CALLS {
        let Some((segment, train)) = session.next_train(now, scratch)? else { return Ok(false) };
        if !line.send_datagrams(to, segment, train)? {
            return Ok(false);
        }
    }
    Ok(true)
}
