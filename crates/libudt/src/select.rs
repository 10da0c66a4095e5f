//! select and selectEx: one wait for many sockets. Deprecated in libudt, and used by Globus.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use crate::events::Events;
use crate::failure::Result;
use crate::options::{Name, Value};
use crate::socket::{Looking, Phase, Socket};
use crate::wait::Bell;
use crate::{clock, table, wait as waits};

/// The sockets of one of the three sets.
#[derive(Debug, Default)]
pub(crate) struct Set {
    ids: Vec<i32>,
    /// Those that are ready.
    pub(crate) ready: Vec<i32>,
}

/// The sets of a call: for reading, for writing, for errors.
pub(crate) type Sets = [Set; 3];

/// The events that make a socket a member of a set's result, in the order of [`Sets`].
const WANTED: [Events; 3] = [Events::IN, Events::OUT, Events::ERROR];

impl Set {
    pub(crate) const fn new(ids: Vec<i32>) -> Self {
        Self { ids, ready: Vec::new() }
    }
}

/// Waits until a socket is ready for what its set asks, or the deadline. Returns how many are, over all sets.
///
/// # Errors
/// An id names no socket.
pub(crate) fn select(sets: &mut Sets, deadline: Option<Instant>) -> Result<usize> {
    let mut sockets = Vec::new();
    for (set, wanted) in sets.iter().zip(WANTED) {
        for id in &set.ids {
            sockets.push((table::find(*id)?, wanted));
        }
    }
    wait(&sockets, deadline)?;
    // One that was closed meanwhile is ready: its next call tells that.
    let mut found = sockets.iter();
    for set in sets.iter_mut() {
        let own = set.ids.iter().zip(found.by_ref());
        set.ready = own.filter(|(_, (socket, wanted))| has(socket, *wanted)).map(|(id, _)| *id).collect();
    }
    Ok(sets.iter().map(|set| set.ready.len()).sum())
}

/// Waits until one of `ids` is ready for anything, or the deadline. Returns the events of each. An id that names no socket
/// is broken.
///
/// # Errors
/// The process has no descriptor left.
pub(crate) fn select_any(ids: &[i32], wanted: Events, deadline: Option<Instant>) -> Result<Vec<Events>> {
    let found: Vec<Option<Arc<Socket>>> = ids.iter().map(|id| table::find(*id).ok()).collect();
    let all_known = found.iter().all(Option::is_some);
    let sockets: Vec<(Arc<Socket>, Events)> =
        found.iter().flatten().map(|socket| (Arc::clone(socket), wanted)).collect();
    if all_known {
        wait(&sockets, deadline)?;
    }
    let of = |socket: &Socket| match selected(socket, socket.events()) {
        // What is wanted tells of the end, and nothing else does.
        now if now.has(Events::ERROR) && wanted.has(Events::ERROR) => Events::ERROR | unread(socket),
        now => now,
    };
    Ok(found.iter().map(|socket| socket.as_deref().map_or(Events::ERROR, of)).collect())
}

/// Whether data is left of a connection that is over.
fn unread(socket: &Socket) -> Events {
    match socket.option(Name::RecvData) {
        Ok(Value::Int(1..)) => Events::IN,
        _ => Events::NONE,
    }
}

/// Waits until one of the sockets is ready for what is wanted of it, or the deadline.
fn wait(sockets: &[(Arc<Socket>, Events)], deadline: Option<Instant>) -> Result<()> {
    if sockets.iter().any(|(socket, wanted)| has(socket, *wanted)) {
        return Ok(());
    }
    if deadline.is_some_and(|deadline| deadline <= clock::now()) {
        return Ok(());
    }
    let signal = waits::signal()?;
    let bell = Arc::new(Bell::default());
    let _called = bell.call(&signal);
    let waker = Waker::from(Arc::clone(&bell));
    let mut looking: Vec<Looking> = sockets.iter().map(|_| Looking::Nothing).collect();
    sockets.iter().for_each(|(socket, _)| socket.observers.add(&bell));
    loop {
        let mut ready = false;
        for ((socket, wanted), looking) in sockets.iter().zip(&mut looking) {
            ready |= selected(socket, socket.look(looking, &waker)).has(*wanted);
        }
        if ready || deadline.is_some_and(|deadline| deadline <= clock::now()) {
            return Ok(());
        }
        signal.wait(&[], deadline);
    }
}

fn has(socket: &Socket, wanted: Events) -> bool {
    selected(socket, socket.events()).has(wanted)
}

/// To select, a socket without a connection is ready to fail.
fn selected(socket: &Socket, events: Events) -> Events {
    match socket.phase() {
        Phase::Init | Phase::Bound(_) => Events::IN | Events::OUT,
        _ => events,
    }
}
