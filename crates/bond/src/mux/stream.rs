//! The calls of the stream, which are those of [`farhaul::Stream`].

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use farhaul::{ConnectionLost, Error, Rate, Stats};

use super::Shared;
use super::state::{MuxState, Over};

/// The stream of bytes. Clones are handles of the same one. Dropping the last one without an end gives it up.
#[derive(Clone)]
pub struct MuxStream(Arc<Handle>);

struct Handle(Arc<Shared>);

impl MuxStream {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::new(Handle(Arc::clone(shared))))
    }

    fn shared(&self) -> &Shared {
        &self.0.0
    }

    /// Takes as much of `data` as fits, once some does.
    pub fn send(&self, data: &[u8]) -> Result<usize, Error> {
        if data.is_empty() {
            return Ok(0);
        }
        let shared = self.shared();
        let mut state = shared.state();
        let limit = state.write_timeout;
        let deadline = limit.map(|limit| shared.clock.now() + limit);
        loop {
            match state.over() {
                Some(Over::Lost(lost)) => return Err(Error::Lost(lost)),
                Some(Over::Left | Over::GivenUp) => return Err(Error::Finished),
                None if state.has_ended() => return Err(Error::Finished),
                None => {}
            }
            let now = shared.clock.now();
            let taken = state.take(data, now);
            if taken > 0 {
                drop(state);
                shared.work.notify_one();
                return Ok(taken);
            }
            if shared.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Err(Error::TimedOut(limit.unwrap_or_default()));
            }
            let is_out_of_room = state.is_out_of_room();
            state = shared.wait_until(state, deadline);
            if is_out_of_room {
                state.add_no_room(shared.clock.now() - now);
            }
        }
    }

    /// Moves received bytes into `out`. Zero is the end of the stream.
    pub fn recv(&self, out: &mut [u8]) -> Result<usize, Error> {
        if out.is_empty() {
            return Ok(0);
        }
        let shared = self.shared();
        let mut state = shared.state();
        let limit = state.read_timeout;
        let deadline = limit.map(|limit| shared.clock.now() + limit);
        loop {
            let now = shared.clock.now();
            let had_count = state.count_due();
            let len = state.read(out, now);
            if len > 0 {
                let has_news = state.count_due() != had_count;
                drop(state);
                if has_news {
                    shared.work.notify_one();
                }
                return Ok(len);
            }
            if state.has_read_all() {
                return Ok(0);
            }
            match state.over() {
                // What this side gave up does not come.
                Some(Over::Left) => return Ok(0),
                Some(Over::GivenUp) => return Err(Error::Lost(ConnectionLost::ClosedLocally)),
                Some(Over::Lost(lost)) => return Err(Error::Lost(lost)),
                None => {}
            }
            if shared.is_cancelled() {
                return Err(Error::Cancelled);
            }
            if deadline.is_some_and(|deadline| now >= deadline) || std::mem::take(&mut state.is_woken) {
                return Err(Error::TimedOut(limit.unwrap_or_default()));
            }
            state = shared.wait_until(state, deadline);
        }
    }

    /// Others carry the stream from now on. A reader that waits looks up, as after its time-out.
    pub fn rest(&self) {
        self.change(MuxState::rest);
    }

    /// Waits until the peer uses the stream. Returns whether it does.
    pub fn wait_until_begun(&self) -> bool {
        let shared = self.shared();
        let mut state = shared.state();
        while !state.has_begun() && state.over().is_none() && !shared.is_cancelled() {
            state = shared.wait_until(state, None);
        }
        state.has_begun()
    }

    /// Sets the longest wait of a receiving call.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.shared().state().read_timeout = timeout;
    }

    /// Sets the longest wait of a sending call.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.shared().state().write_timeout = timeout;
    }

    /// Ends this side's direction.
    pub fn finish_sending(&self) -> Result<(), Error> {
        self.change(|state| match state.over() {
            Some(Over::Lost(lost)) => Err(Error::Lost(lost)),
            Some(_) => Err(Error::Finished),
            None => {
                state.end();
                Ok(())
            }
        })
    }

    /// Ends this side's direction, waits until everything has arrived, and leaves.
    pub fn finish(&self) -> Result<(), Error> {
        self.change(MuxState::end);
        self.wait_for(|state| state.has_arrived())?;
        self.close();
        Ok(())
    }

    /// Waits until both directions have ended, or one side has left in order.
    pub fn wait_until_closed(&self) -> Result<(), Error> {
        self.wait_for(|state| {
            let is_left = matches!(state.over(), Some(Over::Left)) && state.has_arrived();
            state.has_closed() || is_left || matches!(state.over(), Some(Over::GivenUp))
        })
    }

    /// Leaves the stream. What was taken arrives first.
    pub fn close(&self) {
        self.change(MuxState::leave);
    }

    /// Gives the stream up. The peer reads what has arrived, and then that it was given up.
    pub fn abort(&self) {
        self.change(MuxState::give_up);
    }

    /// Caps what this side sends.
    pub fn set_max_rate(&self, cap: Option<Rate>) -> Result<(), Error> {
        if cap == Some(Rate::ZERO) {
            return Err(Error::InvalidOption { option: "max_rate", range: "above zero" });
        }
        self.change(|state| state.set_cap(cap));
        Ok(())
    }

    /// Ends the calls that wait, now and from now on.
    pub fn cancel(&self) {
        self.shared().is_cancelled.store(true, Ordering::Release);
        self.shared().notify();
    }

    /// Whether the calls that wait have ended.
    pub fn is_cancelled(&self) -> bool {
        self.shared().is_cancelled()
    }

    /// How the stream has ended; `None` while it goes on.
    pub fn ending(&self) -> Option<ConnectionLost> {
        let state = self.shared().state();
        match state.over() {
            Some(Over::Lost(lost)) => Some(lost),
            Some(Over::Left | Over::GivenUp) => Some(ConnectionLost::ClosedLocally),
            None => state.has_closed().then_some(ConnectionLost::ClosedLocally),
        }
    }

    /// Counters and estimates, as those of a connection.
    pub fn stats(&self) -> Stats {
        let shared = self.shared();
        shared.state().stats(shared.clock.now())
    }

    fn change<R>(&self, how: impl FnOnce(&mut MuxState) -> R) -> R {
        let result = how(&mut self.shared().state());
        self.shared().notify();
        result
    }

    fn wait_for(&self, what: impl Fn(&MuxState) -> bool) -> Result<(), Error> {
        let shared = self.shared();
        let mut state: MutexGuard<'_, MuxState> = shared.state();
        loop {
            if what(&state) {
                return Ok(());
            }
            match state.over() {
                Some(Over::Lost(ConnectionLost::ClosedByPeer)) => return Ok(()),
                Some(Over::Lost(lost)) => return Err(Error::Lost(lost)),
                _ if shared.is_cancelled() => return Err(Error::Cancelled),
                _ => state = shared.wait_until(state, None),
            }
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.state().give_up();
        self.0.notify();
    }
}

impl fmt::Debug for MuxStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MuxStream").field("state", &*self.shared().state()).finish()
    }
}
