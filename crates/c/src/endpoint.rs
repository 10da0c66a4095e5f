//! UDP ports.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs};

use farhaul::{Endpoint, Error};

use crate::argument::{self, need};
use crate::border::{border, border_of, give, tell};
use crate::canceller::FarhaulCanceller;
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::options::FarhaulOptions;
use crate::result::FarhaulResult;

/// A UDP port with its connections. Any number of threads may use it. Connections and listeners live on when it is freed.
pub struct FarhaulEndpoint {
    pub(crate) inner: Endpoint,
}

/// The first address of a `HOST:PORT`. An IPv6 address stands in brackets.
pub(crate) fn resolve(text: &str) -> Result<SocketAddr, Fault> {
    let found = text.to_socket_addrs().map_err(Error::Resolve)?.next();
    found.ok_or_else(|| Fault::new(FarhaulResult::NameUnresolved, format!("{text} has no address")))
}

/// Opens a UDP port at an address of this host: `0.0.0.0:0` or `[::]:9000`. Port 0 lets the system choose.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_endpoint_open(
    options: Option<&FarhaulOptions>,
    address: *const c_char,
    out: Option<&mut MaybeUninit<*mut FarhaulEndpoint>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || {
        // SAFETY: the caller gives texts as documented.
        let address = resolve(unsafe { argument::words(address, "address") }?)?;
        Ok(FarhaulEndpoint { inner: need(options, "options")?.open(address)? })
    })
}

/// Writes the address of the port as text into a buffer of `size` bytes: `127.0.0.1:9000`. 64 bytes are always enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_endpoint_local_address(
    endpoint: Option<&FarhaulEndpoint>,
    buffer: *mut c_char,
    size: usize,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    // SAFETY: the caller gives the buffer as documented.
    border(error, || unsafe { argument::put_text(&need(endpoint, "endpoint")?.inner.local_addr(), buffer, size) })
}

/// The number of the UDP port. Zero for no endpoint.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_endpoint_port(endpoint: Option<&FarhaulEndpoint>) -> u16 {
    border_of(0, || endpoint.map_or(0, |endpoint| endpoint.inner.local_addr().port()))
}

/// Counts datagrams that the system dropped at this port because its buffer was full. Fails where the system does not count.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_endpoint_drops(
    endpoint: Option<&FarhaulEndpoint>,
    count: Option<&mut MaybeUninit<u32>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    tell(count, error, || {
        let drops = need(endpoint, "endpoint")?.inner.recv_drops();
        drops.ok_or_else(|| Fault::new(FarhaulResult::Unsupported, "this system does not count drops"))
    })
}

/// Makes a canceller for every call of the port, its listener and its connections.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_endpoint_canceller(
    endpoint: Option<&FarhaulEndpoint>,
    out: Option<&mut MaybeUninit<*mut FarhaulCanceller>>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    give(out, error, || Ok(FarhaulCanceller::of(need(endpoint, "endpoint")?.inner.canceller())))
}

/// Frees an endpoint. The port is closed once its connections and its listener are freed as well.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_endpoint_free(endpoint: Option<Box<FarhaulEndpoint>>) {
    leave(endpoint);
}

/// Waits until peers know about the end of all connections of this process that were finished or closed, at most a few seconds.
/// Call it at the end of a program.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_wait_idle() {
    border_of((), farhaul::wait_idle);
}
