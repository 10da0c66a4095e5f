//! Listeners.

use std::mem::MaybeUninit;

use farhaul::{Listener, MessageSocket};

use crate::argument::need;
use crate::border::{border, give, own};
use crate::canceller::FarhaulCanceller;
use crate::connection::{FarhaulConnection, Kind};
use crate::endpoint::FarhaulEndpoint;
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;
use crate::watch::FarhaulWatch;

/// Accepts connections of one kind at a port. Any number of threads may use it.
pub struct FarhaulListener {
    accepts: Accepts,
}

enum Accepts {
    Streams(Listener),
    Messages(Listener<MessageSocket>),
}

/// Begins to accept streams at a port, which has one listener at a time.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_listen(
    endpoint: Option<&FarhaulEndpoint>,
    out: Option<&mut MaybeUninit<*mut FarhaulListener>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        let accepts = Accepts::Streams(need(endpoint, "endpoint")?.inner.listen()?);
        Ok(FarhaulListener { accepts })
    })
}

/// The same for connections that carry messages.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_listen_for_messages(
    endpoint: Option<&FarhaulEndpoint>,
    out: Option<&mut MaybeUninit<*mut FarhaulListener>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        let accepts = Accepts::Messages(need(endpoint, "endpoint")?.inner.listen_for_messages()?);
        Ok(FarhaulListener { accepts })
    })
}

/// Waits for the next connection. A peer cannot make it fail.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_accept(
    listener: Option<&FarhaulListener>,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        let kind = match &need(listener, "listener")?.accepts {
            Accepts::Streams(listener) => Kind::Stream(listener.accept()?.0),
            Accepts::Messages(listener) => Kind::Messages(listener.accept()?.0),
        };
        Ok(FarhaulConnection::of(kind))
    })
}

/// The same without waiting: `FARHAUL_RESULT_WOULD_BLOCK` if there is no connection yet.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_try_accept(
    listener: Option<&FarhaulListener>,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        let out = out.ok_or_else(|| Fault::null("out"))?;
        let kind = match &need(listener, "listener")?.accepts {
            Accepts::Streams(listener) => listener.try_accept()?.map(|(stream, _)| Kind::Stream(stream)),
            Accepts::Messages(listener) => listener.try_accept()?.map(|(socket, _)| Kind::Messages(socket)),
        };
        let Some(kind) = kind else { return Ok(FarhaulResult::WouldBlock) };
        own(out, FarhaulConnection::of(kind));
        Ok(FarhaulResult::Ok)
    })
}

/// Makes a watch that is readable while a connection waits to be accepted.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_listener_watch(
    listener: Option<&FarhaulListener>,
    out: Option<&mut MaybeUninit<*mut FarhaulWatch>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        FarhaulWatch::of(match &need(listener, "listener")?.accepts {
            Accepts::Streams(listener) => listener.watch(),
            Accepts::Messages(listener) => listener.watch(),
        })
    })
}

/// Makes a canceller for calls that wait at the listener.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_listener_canceller(
    listener: Option<&FarhaulListener>,
    out: Option<&mut MaybeUninit<*mut FarhaulCanceller>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        Ok(FarhaulCanceller::of(match &need(listener, "listener")?.accepts {
            Accepts::Streams(listener) => listener.canceller(),
            Accepts::Messages(listener) => listener.canceller(),
        }))
    })
}

/// Refuses further connections and those that were not accepted, and frees the listener.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_listener_free(listener: Option<Box<FarhaulListener>>) {
    leave(listener);
}
