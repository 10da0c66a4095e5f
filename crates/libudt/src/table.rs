//! All sockets of the process by their ids, and the count of startups.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::failure::{Code, Result};
use crate::socket::Socket;
use crate::{clock, closing};

/// Bits of the first id. Each further socket has the id below.
const FIRST_ID_MASK: u32 = 0x3FFF_FFFF;
/// Time for which the state of a closed socket is "closed", then there is none.
const REMEMBERED: Duration = Duration::from_secs(1);

static TABLE: Mutex<Table> =
    Mutex::new(Table { startups: 0, next: 0, sockets: BTreeMap::new(), closed: BTreeMap::new() });

struct Table {
    startups: u32,
    /// The id of the next socket; zero before the first one.
    next: i32,
    sockets: BTreeMap<i32, Arc<Socket>>,
    /// The sockets that were closed lately.
    closed: BTreeMap<i32, Instant>,
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a user of the library.
pub(crate) fn start_up() {
    table().startups += 1;
}

/// One user less. The last one closes all sockets and waits until what was sent is delivered, as long as the sockets
/// linger.
pub(crate) fn clean_up() {
    let sockets = {
        let mut table = table();
        table.startups = table.startups.saturating_sub(1);
        if table.startups > 0 {
            return;
        }
        std::mem::take(&mut table.sockets)
    };
    for socket in sockets.into_values() {
        socket.close();
    }
    closing::wait_for_all();
    farhaul::wait_idle();
}

/// Adds the socket that `make` makes of its id.
pub(crate) fn add(make: impl FnOnce(i32) -> Socket) -> Arc<Socket> {
    let mut table = table();
    let id = table.new_id();
    let socket = Arc::new(make(id));
    table.sockets.insert(id, Arc::clone(&socket));
    socket
}

/// Adds the socket of the connection that a listening one accepts.
///
/// # Errors
/// [`Code::InvalidSocket`]: there is no such socket. As for [`Socket::accept`].
pub(crate) fn accept(id: i32) -> Result<Arc<Socket>> {
    let accepted = add(find(id)?.accept()?);
    accepted.set_up(&*accepted.link()?);
    Ok(accepted)
}

/// # Errors
/// [`Code::InvalidSocket`]: there is no such socket.
pub(crate) fn find(id: i32) -> Result<Arc<Socket>> {
    table().sockets.get(&id).cloned().ok_or(Code::InvalidSocket.into())
}

/// Removes a socket, which its id names no more.
///
/// # Errors
/// [`Code::InvalidSocket`]: there is no such socket.
pub(crate) fn remove(id: i32) -> Result<Arc<Socket>> {
    let mut table = table();
    let socket = table.sockets.remove(&id).ok_or(Code::InvalidSocket)?;
    let now = clock::now();
    table.closed.retain(|_, since| now.saturating_duration_since(*since) < REMEMBERED);
    table.closed.insert(id, now);
    Ok(socket)
}

/// Whether a socket of this id was closed a moment ago.
pub(crate) fn was_closed(id: i32) -> bool {
    let now = clock::now();
    table().closed.get(&id).is_some_and(|since| now.saturating_duration_since(*since) < REMEMBERED)
}

impl Table {
    fn new_id(&mut self) -> i32 {
        while self.next <= 0 || self.sockets.contains_key(&self.next) {
            self.next = if self.next > 1 { self.next - 1 } else { first_id() };
        }
        let id = self.next;
        self.next -= 1;
        id
    }
}

fn first_id() -> i32 {
    // Any id will do on a system without randomness.
    let random = getrandom::u32().unwrap_or(FIRST_ID_MASK);
    i32::try_from(random & FIRST_ID_MASK).unwrap_or(1).max(1)
}
