//! Sessions in tests: what a host does with any of them.

use core::convert::Infallible;
use core::ops::{Deref, DerefMut};

use farhaul_proto::channel::ChannelEnd;
use farhaul_units::{Instant, Rng};

use super::OriginalSession;

/// A session that remembers why it failed. It may fail once.
#[derive(Debug)]
pub(crate) struct Watched<S: OriginalSession> {
    session: S,
    pub(crate) fault: Option<S::Fault>,
}

impl<S: OriginalSession> Watched<S> {
    pub(crate) fn new(session: S) -> Self {
        Self { session, fault: None }
    }

    fn note(&mut self, result: Result<(), S::Fault>) {
        if let Err(fault) = result {
            assert!(self.fault.replace(fault).is_none(), "nothing follows a fault");
        }
    }

    pub(crate) fn handle_channel(&mut self, now: Instant, bytes: &[u8]) {
        let result = self.session.handle_channel(now, bytes);
        self.note(result);
    }

    pub(crate) fn channel_ended(&mut self, now: Instant, end: ChannelEnd) {
        let result = self.session.channel_ended(now, end);
        self.note(result);
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let result = self.session.handle_timeout(now);
        self.note(result);
    }
}

impl<S: OriginalSession> Deref for Watched<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.session
    }
}

impl<S: OriginalSession> DerefMut for Watched<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.session
    }
}

/// The next bytes for the channel.
pub(crate) fn said(session: &mut impl OriginalSession, now: Instant) -> Vec<u8> {
    let mut out = Vec::new();
    session.poll_channel(now, &mut out);
    out
}

/// The next datagrams, of a file whose bytes are all 7 if the session holds none.
pub(crate) fn train(session: &mut impl OriginalSession, now: Instant) -> Option<(usize, Vec<u8>)> {
    let sevens = |_, out: &mut [u8]| {
        out.fill(7);
        Ok::<_, Infallible>(())
    };
    let mut scratch = Vec::new();
    let Ok(train) = session.poll_datagrams(now, sevens, &mut scratch);
    train.map(|(segment, bytes)| (segment, bytes.to_vec()))
}

/// Content whose bytes depend on its length.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    let mut rng = Rng::new(bytes as u64);
    let mut content: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
    content.truncate(bytes);
    content
}
