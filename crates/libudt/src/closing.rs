//! What becomes of a connection after its socket is closed: its data is delivered first.
//!
//! libudt waits in close for as long as the socket lingers, or delivers in the background if the socket does not block. Without
//! linger, it loses what was not acknowledged. Here, data without linger is delivered in the background as well.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use farhaul::Watch;

use crate::socket::{Link, Phase, Socket};
use crate::{clock, epoll, wait};

/// Longest delivery in the background for a socket that does not linger.
const LONGEST_UNASKED: Duration = Duration::from_secs(30);

static BACKGROUND: Mutex<Background> = Mutex::new(Background { deliveries: Vec::new(), thread: None });
static NONE_LEFT: Condvar = Condvar::new();

/// Connections that deliver their data without a socket, and the thread that waits for them. It ends with the last one.
struct Background {
    deliveries: Vec<Delivery>,
    thread: Option<Thread>,
}

struct Delivery {
    link: Arc<Link>,
    watch: Watch,
    deadline: Instant,
}

impl Socket {
    /// Closes the socket, which its id names no more. Waits as long as the options say.
    pub(crate) fn close(&self) {
        epoll::forget(self.id);
        let phase = self.end();
        // Its other calls end now, and not when its data is delivered.
        self.observers.notify();
        self.blocked.end_all();
        match phase {
            Phase::Listening(listening) => listening.close(),
            Phase::Linked(link) => self.part_with(link),
            Phase::Init | Phase::Bound(_) | Phase::Closed => {}
        }
    }

    fn part_with(&self, link: Arc<Link>) {
        let (linger, blocks) = {
            let options = self.options();
            (options.linger, options.send_blocks)
        };
        let connection = link.connection();
        let is_live = connection.readiness().is_ok_and(|now| now.connected && !now.ended);
        if !is_live {
            connection.close();
            return;
        }
        connection.finish_in_background();
        let deadline = clock::now() + linger.unwrap_or(LONGEST_UNASKED);
        let mut watch = connection.watch();
        if linger.is_some() && blocks {
            if wait::until(&mut watch, Some(deadline), |now| now.ended).is_err() {
                // The time is over, and with it the data is lost, as in libudt.
                connection.abort();
            }
        } else {
            deliver(Delivery { link, watch, deadline });
        }
    }
}

/// Waits until everything in the background is delivered, or its time is over.
pub(crate) fn wait_for_all() {
    let mut background = background();
    while !background.deliveries.is_empty() {
        background = NONE_LEFT.wait(background).unwrap_or_else(PoisonError::into_inner);
    }
}

fn background() -> MutexGuard<'static, Background> {
    BACKGROUND.lock().unwrap_or_else(PoisonError::into_inner)
}

fn deliver(delivery: Delivery) {
    let mut background = background();
    background.deliveries.push(delivery);
    if let Some(thread) = &background.thread {
        thread.unpark();
        return;
    }
    match thread::Builder::new().name("udt:close".into()).spawn(wait_in_background) {
        Ok(handle) => background.thread = Some(handle.thread().clone()),
        // Without a thread, nothing can be delivered in the background.
        Err(_) => background.deliveries.clear(),
    }
}

fn wait_in_background() {
    let waker = wait::unpark();
    loop {
        let mut background = background();
        let now = clock::now();
        let is_under_way = |delivery: &mut Delivery| {
            now < delivery.deadline && delivery.watch.check(&waker).is_ok_and(|state| !state.ended)
        };
        let (going, done): (Vec<_>, Vec<_>) =
            background.deliveries.drain(..).map(|mut one| (is_under_way(&mut one), one)).partition(|(goes, _)| *goes);
        background.deliveries = going.into_iter().map(|(_, delivery)| delivery).collect();
        let next = background.deliveries.iter().map(|delivery| delivery.deadline).min();
        if next.is_none() {
            background.thread = None;
        }
        drop(background);
        // One that is not delivered yet is lost. One that is has ended.
        done.iter().for_each(|(_, delivery)| delivery.link.connection().abort());
        drop(done);
        let Some(next) = next else {
            NONE_LEFT.notify_all();
            return;
        };
        thread::park_timeout(next.saturating_duration_since(now));
    }
}
