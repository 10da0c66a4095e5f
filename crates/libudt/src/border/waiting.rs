//! select, selectEx and epoll.

use std::ffi::c_void;

use super::{Outcome, answer};
use crate::events::Events;
use crate::failure::Code;
use crate::select::{Set, select, select_any};
use crate::{clock, epoll, table};

/// Milliseconds for a wait without an end.
const FOR_EVER: i64 = -1;

/// Ids of sockets, which a call replaces by those that are ready.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Ids {
    /// Null for no set.
    ids: *mut i32,
    count: usize,
}

/// Takes one ready socket or descriptor. `set` is 0 for reading, 1 for writing, 2 and 3 for the same of the system. It does
/// not unwind.
type Take = unsafe extern "C" fn(context: *mut c_void, set: i32, id: i32);

/// `UDT::select`. The value is the number of ready sockets over the three sets: reading, writing, errors.
///
/// # Safety
/// `sets` points to three sets, each with the ids that it tells.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_select(sets: *mut Ids, milliseconds: i64) -> Outcome {
    answer(|| {
        // SAFETY: as promised.
        let sets = unsafe { std::slice::from_raw_parts_mut(sets, 3) };
        let asked: Vec<Set> = sets.iter().map(|set| Set::new(set.read())).collect();
        let mut asked: [Set; 3] = asked.try_into().map_err(|_| Code::InvalidParameter)?;
        let count = select(&mut asked, clock::deadline(milliseconds))?;
        sets.iter_mut().zip(&asked).for_each(|(set, found)| set.write(&found.ready));
        Ok(count)
    })
}

/// `UDT::selectEx`. `events` gets the events of each id, those of `wanted` alone count for the wait.
///
/// # Safety
/// `ids` and `events` point to `count` numbers each.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_select_ex(
    ids: *const i32,
    events: *mut i32,
    count: usize,
    wanted: i32,
    milliseconds: i64,
) -> Outcome {
    answer(|| {
        if count == 0 {
            return Ok(());
        }
        // SAFETY: as promised.
        let (ids, events) =
            unsafe { (std::slice::from_raw_parts(ids, count), std::slice::from_raw_parts_mut(events, count)) };
        let found = select_any(ids, Events::from_bits(wanted), clock::deadline(milliseconds))?;
        events.iter_mut().zip(found).for_each(|(out, found)| *out = found.bits());
        Ok(())
    })
}

/// `UDT::epoll_create`. The value is the id.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_epoll_create() -> Outcome {
    answer(|| Ok(i64::from(epoll::create())))
}

/// `UDT::epoll_add_usock`. Null stands for all events.
///
/// # Safety
/// `events` is null or readable.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_epoll_add_usock(poll: i32, socket: i32, events: *const i32) -> Outcome {
    answer(|| {
        let (socket, poll) = (table::find(socket)?, epoll::find(poll)?);
        // SAFETY: as promised.
        poll.add(socket, unsafe { chosen(events) });
        Ok(())
    })
}

/// `UDT::epoll_add_ssock`. Null stands for all events.
///
/// # Safety
/// `events` is null or readable.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_epoll_add_ssock(poll: i32, descriptor: i32, events: *const i32) -> Outcome {
    // SAFETY: as promised.
    answer(|| epoll::find(poll)?.add_descriptor(descriptor, unsafe { chosen(events) }))
}

/// `UDT::epoll_remove_usock`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_epoll_remove_usock(poll: i32, socket: i32) -> Outcome {
    answer(|| epoll::find(poll).map(|poll| poll.remove(socket)))
}

/// `UDT::epoll_remove_ssock`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_epoll_remove_ssock(poll: i32, descriptor: i32) -> Outcome {
    answer(|| epoll::find(poll).map(|poll| poll.remove_descriptor(descriptor)))
}

/// `UDT::epoll_release`.
#[unsafe(no_mangle)]
pub(super) extern "C" fn fh_udt_epoll_release(poll: i32) -> Outcome {
    answer(|| epoll::release(poll))
}

/// `UDT::epoll_wait`. `wanted` has bit 0 if the caller wants ready readers, 1 for writers, 2 and 3 for those of the system. The
/// value counts what was given to `take`.
///
/// # Safety
/// `take` may be called with `context`.
#[unsafe(no_mangle)]
pub(super) unsafe extern "C" fn fh_udt_epoll_wait(
    poll: i32,
    wanted: i32,
    milliseconds: i64,
    take: Take,
    context: *mut c_void,
) -> Outcome {
    answer(|| {
        let poll = epoll::find(poll)?;
        let wants = |set: i32| wanted & (1 << set) != 0;
        if wanted == 0 && milliseconds < 0 {
            return Err(Code::InvalidParameter.into());
        }
        let deadline = if milliseconds <= FOR_EVER { None } else { clock::deadline(milliseconds) };
        let is_asked =
            |ready: &epoll::Ready| (0..).zip(ready.lists()).any(|(set, list)| wants(set) && !list.is_empty());
        let ready = poll.wait(deadline, is_asked)?;
        let mut count = 0_i64;
        for (set, list) in (0..).zip(ready.lists()).filter(|(set, _)| wants(*set)) {
            for id in list {
                // SAFETY: as promised.
                unsafe { take(context, set, *id) };
                count += 1;
            }
        }
        Ok(count)
    })
}

impl Ids {
    fn read(&self) -> Vec<i32> {
        if self.ids.is_null() {
            return Vec::new();
        }
        // SAFETY: whoever made it promises so many ids.
        unsafe { std::slice::from_raw_parts(self.ids, self.count) }.to_vec()
    }

    fn write(&mut self, ready: &[i32]) {
        if self.ids.is_null() {
            return;
        }
        // SAFETY: as above. The ready ones are some of those.
        let room = unsafe { std::slice::from_raw_parts_mut(self.ids, self.count) };
        room.iter_mut().zip(ready).for_each(|(place, id)| *place = *id);
        self.count = ready.len().min(self.count);
    }
}

/// # Safety
/// `events` is null or readable.
unsafe fn chosen(events: *const i32) -> Events {
    if events.is_null() {
        return Events::ALL;
    }
    // SAFETY: as promised.
    Events::from_bits(unsafe { events.read_unaligned() })
}
