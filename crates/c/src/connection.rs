//! Connections of both kinds: their beginning, their end, and what they have in common.

use std::ffi::c_char;
use std::mem::MaybeUninit;

use farhaul::{ConnectOptions, Connection, Endpoint, MessageSocket, Rate, Stream};

use crate::argument::{self, need, timeout};
use crate::border::{ErrorOut, border, give, tell};
use crate::canceller::FarhaulCanceller;
use crate::endpoint::{FarhaulEndpoint, resolve};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::result::FarhaulResult;
use crate::watch::FarhaulWatch;

/// A connection with one peer, which carries a stream of bytes or messages. Any number of threads may use it: one may read while
/// another one writes.
pub struct FarhaulConnection {
    kind: Kind,
}

/// What a connection carries.
pub(crate) enum Kind {
    Stream(Stream),
    Messages(MessageSocket),
}

impl FarhaulConnection {
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind }
    }
}

/// What both kinds of connections have, of this handle.
pub(crate) fn common(connection: Option<&FarhaulConnection>) -> Result<&Connection, Fault> {
    Ok(match &need(connection, "connection")?.kind {
        Kind::Stream(stream) => stream,
        Kind::Messages(socket) => socket,
    })
}

/// The stream of bytes of this handle.
pub(crate) fn stream(connection: Option<&FarhaulConnection>) -> Result<&Stream, Fault> {
    match &need(connection, "connection")?.kind {
        Kind::Stream(stream) => Ok(stream),
        Kind::Messages(_) => Err(Fault::invalid("the connection carries messages, and not a stream")),
    }
}

/// The messages of this handle.
pub(crate) fn messages(connection: Option<&FarhaulConnection>) -> Result<&MessageSocket, Fault> {
    match &need(connection, "connection")?.kind {
        Kind::Messages(socket) => Ok(socket),
        Kind::Stream(_) => Err(Fault::invalid("the connection carries a stream, and no messages")),
    }
}

/// Connects to a peer by one of the functions that a port has.
///
/// # Safety
/// `peer` is null or points to a text that ends with NUL and stays unchanged while this function runs.
unsafe fn connect(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: ErrorOut<'_>,
    open: impl FnOnce(&Endpoint, &str) -> Result<Kind, Fault>,
) -> FarhaulResult {
    give(out, error, || {
        // SAFETY: as this function demands.
        let peer = unsafe { argument::words(peer, "peer") }?;
        open(&need(endpoint, "endpoint")?.inner, peer).map(FarhaulConnection::of)
    })
}

/// Connects to `HOST:PORT`, and waits until the peer answers. Of a name with several addresses, the first one that works.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_connect(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let open = |endpoint: &Endpoint, peer: &str| Ok(Kind::Stream(endpoint.connect(peer)?));
    // SAFETY: the caller gives texts as documented.
    unsafe { connect(endpoint, peer, out, error, open) }
}

/// The same for a connection that carries messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_connect_for_messages(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let open =
        |endpoint: &Endpoint, peer: &str| Ok(Kind::Messages(endpoint.connect_with(peer, ConnectOptions::messages())?));
    // SAFETY: the caller gives texts as documented.
    unsafe { connect(endpoint, peer, out, error, open) }
}

/// Connects with a peer that calls this port at the same time. Neither side listens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_rendezvous(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let open = |endpoint: &Endpoint, peer: &str| {
        Ok(Kind::Stream(endpoint.connect_with(peer, ConnectOptions::stream().rendezvous())?))
    };
    // SAFETY: the caller gives texts as documented.
    unsafe { connect(endpoint, peer, out, error, open) }
}

/// Begins to connect and returns at once. A watch tells when the connection exists (`FARHAUL_READY_CONNECTED`) or the attempt has
/// failed (`FARHAUL_READY_ENDED`). Only the first address of a name is tried, and resolving the name may wait: give a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_begin_connect(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let open = |endpoint: &Endpoint, peer: &str| {
        Ok(Kind::Stream(endpoint.begin_connect(resolve(peer)?, ConnectOptions::stream())?))
    };
    // SAFETY: the caller gives texts as documented.
    unsafe { connect(endpoint, peer, out, error, open) }
}

/// The same for a connection that carries messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_begin_connect_for_messages(
    endpoint: Option<&FarhaulEndpoint>,
    peer: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulConnection>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let open = |endpoint: &Endpoint, peer: &str| {
        Ok(Kind::Messages(endpoint.begin_connect(resolve(peer)?, ConnectOptions::messages())?))
    };
    // SAFETY: the caller gives texts as documented.
    unsafe { connect(endpoint, peer, out, error, open) }
}

/// Waits until the peer has acknowledged everything that was written, and closes the connection. Its success is the proof of
/// delivery. What the peer has yet to send is given up.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_finish(
    connection: Option<&FarhaulConnection>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || Ok(common(connection)?.finish()?))
}

/// The same without waiting: the library goes on with it. `farhaul_wait_idle` waits for all of these.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_finish_in_background(
    connection: Option<&FarhaulConnection>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || common(connection).map(Connection::finish_in_background))
}

/// Ends this side's direction of a stream and returns at once, as `shutdown(SHUT_WR)` does. Reading goes on. Encrypted streams
/// between two programs of this library can; others fail with `FARHAUL_RESULT_UNSUPPORTED`.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_finish_sending(
    connection: Option<&FarhaulConnection>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || Ok(stream(connection)?.finish_sending()?))
}

/// Ends the connection at once, because this side cannot go on. The peer does not take what it got for everything.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_abort(
    connection: Option<&FarhaulConnection>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || common(connection).map(Connection::abort))
}

/// The longest time in milliseconds that a call waits for bytes or a message. Zero: no limit, the default.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_set_read_timeout(
    connection: Option<&FarhaulConnection>,
    milliseconds: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || common(connection).map(|connection| connection.set_read_timeout(timeout(milliseconds))))
}

/// The longest time in milliseconds that a call waits for room. Zero: no limit, the default.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_set_write_timeout(
    connection: Option<&FarhaulConnection>,
    milliseconds: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || common(connection).map(|connection| connection.set_write_timeout(timeout(milliseconds))))
}

/// Caps the send rate of a running connection in bits per second. Zero: no cap.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_set_max_rate(
    connection: Option<&FarhaulConnection>,
    bits_per_second: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    let rate = (bits_per_second > 0).then(|| Rate::from_bits_per_second(bits_per_second));
    border(error, || Ok(common(connection)?.set_max_rate(rate)?))
}

/// Writes the address of the peer as text into a buffer of `size` bytes. 64 bytes are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_connection_peer_address(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_char,
    size: usize,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    // SAFETY: the caller gives the buffer as documented.
    border(error, || unsafe { argument::put_text(&common(connection)?.peer_addr(), buffer, size) })
}

/// Writes the public key of the peer as text into a buffer of `size` bytes; 128 are always enough. Fails with
/// `FARHAUL_RESULT_UNSUPPORTED` for a plain connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_connection_peer_key(
    connection: Option<&FarhaulConnection>,
    buffer: *mut c_char,
    size: usize,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    border(error, || {
        let key = common(connection)?.protection()?.and_then(|protection| protection.peer_key);
        let key = key.ok_or_else(|| Fault::new(FarhaulResult::Unsupported, "the connection is not encrypted"))?;
        // SAFETY: the caller gives the buffer as documented.
        unsafe { argument::put_text(&key, buffer, size) }
    })
}

/// Tells whether `farhaul_connection_finish_sending` works.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_has_half_close(
    connection: Option<&FarhaulConnection>,
    has: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(has, error, || Ok(stream(connection)?.has_half_close()?))
}

/// Makes a watch of the connection for an event loop.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_watch(
    connection: Option<&FarhaulConnection>,
    out: Option<&mut MaybeUninit<*mut FarhaulWatch>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || FarhaulWatch::of(common(connection)?.watch()))
}

/// Makes a canceller for calls that wait at the connection.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_canceller(
    connection: Option<&FarhaulConnection>,
    out: Option<&mut MaybeUninit<*mut FarhaulCanceller>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || common(connection).map(Connection::canceller).map(FarhaulCanceller::of))
}

/// Frees a connection. One that was not finished is aborted, so that the peer does not take what it got for everything.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_connection_free(connection: Option<Box<FarhaulConnection>>) {
    leave(connection);
}
