//! The settings of a UDP port and its connections.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use farhaul::security::{KeyPair, Pinned, PublicKey, Security};
use farhaul::{Builder, Endpoint, Protocol, Rate};

use crate::argument::{self, millis, need};
use crate::border::{border_of, change};
use crate::error::FarhaulError;
use crate::fault::Fault;
use crate::fork::leave;
use crate::key::FarhaulKey;
use crate::result::FarhaulResult;

/// Settings of a port. They are checked when a port is opened. One thread at a time changes them.
#[derive(Default)]
pub struct FarhaulOptions {
    builder: Builder,
    /// The key of this side, for connections that are encrypted, and the keys of peers.
    key: Option<KeyPair>,
    trusts: Pinned,
}

/// The longest time for a connection attempt. Default 5 s.
pub const FARHAUL_TIME_CONNECT: u32 = 1;
/// The longest time for a rendezvous. Default 30 s.
pub const FARHAUL_TIME_RENDEZVOUS: u32 = 2;
/// The silence of a peer that ends a connection. Default 30 s.
pub const FARHAUL_TIME_PEER: u32 = 3;
/// The longest time without progress that `farhaul_connection_finish` waits. Default 30 s.
pub const FARHAUL_TIME_LINGER: u32 = 4;
/// The time between signs of life of an idle connection. Default 10 s.
pub const FARHAUL_TIME_KEEP_ALIVE: u32 = 5;

/// The largest packet in bytes, with all headers: 576 to 65 535, default 1500.
pub const FARHAUL_SIZE_PACKET: u32 = 1;
/// The cap of the send buffer of a connection in bytes. Default 512 MiB.
pub const FARHAUL_SIZE_SEND_BUFFER: u32 = 2;
/// The cap of the receive buffer of a connection in bytes. Default 512 MiB.
pub const FARHAUL_SIZE_RECV_BUFFER: u32 = 3;
/// The receive buffer of the UDP port in bytes. Default 32 MiB.
pub const FARHAUL_SIZE_UDP_RECV_BUFFER: u32 = 4;
/// The largest number of connections that wait to be accepted. Default 1024.
pub const FARHAUL_SIZE_BACKLOG: u32 = 5;
/// The largest number of connections of the port. Default 65 536.
pub const FARHAUL_SIZE_CONNECTIONS: u32 = 6;

impl FarhaulOptions {
    /// Opens a port with these settings.
    pub(crate) fn open(&self, address: std::net::SocketAddr) -> Result<Endpoint, Fault> {
        let builder = self.builder.clone();
        let builder = match &self.key {
            None => builder,
            Some(key) => builder.secure(Security::new(key.clone(), self.trusts.clone())),
        };
        Ok(builder.bind(address)?)
    }

    fn set<T>(&mut self, set: impl FnOnce(Builder, T) -> Builder, value: T) {
        self.builder = set(std::mem::take(&mut self.builder), value);
    }
}

/// New settings, with the defaults. Neither plain nor encrypted is chosen: call `farhaul_options_plain` or
/// `farhaul_options_identity`. Null if the process was forked off a user of this library.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_new() -> Option<Box<FarhaulOptions>> {
    border_of(None, || Some(Box::default()))
}

/// Frees settings. Ports that were opened with them keep what they need.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_free(options: Option<Box<FarhaulOptions>>) {
    leave(options);
}

/// Connections are neither encrypted nor authenticated, and compatible with libudt. Everybody on the path can read, change and
/// forge all data.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_plain(
    options: Option<&mut FarhaulOptions>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        options.builder = std::mem::take(&mut options.builder).plain();
        options.key = None;
        Ok(())
    })
}

/// Connections are encrypted and authenticated (TLS 1.3), and this side has this key.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_identity(
    options: Option<&mut FarhaulOptions>,
    key: Option<&FarhaulKey>,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        options.key = Some(need(key, "key")?.pair.clone());
        Ok(())
    })
}

/// Trusts one more server, to which this side connects, by its public key: `ssh-ed25519 AAAA…`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_options_trust_server(
    options: Option<&mut FarhaulOptions>,
    public_key: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        // SAFETY: the caller gives texts as documented.
        let key = public_key_of(unsafe { argument::words(public_key, "public_key") }?)?;
        options.trusts.servers.push(key);
        Ok(())
    })
}

/// Admits one more client to a listener of the port, by its public key.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_options_trust_client(
    options: Option<&mut FarhaulOptions>,
    public_key: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        // SAFETY: the caller gives texts as documented.
        let key = public_key_of(unsafe { argument::words(public_key, "public_key") }?)?;
        options.trusts.clients.push(key);
        Ok(())
    })
}

fn public_key_of(words: &str) -> Result<PublicKey, Fault> {
    words.parse().map_err(|error| Fault::invalid(format!("the public key: {error}")))
}

/// The protocol by its name with options: `udt`, `udt-2004`, `rbudp:payload=1460`. Default `udt`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_options_set_protocol(
    options: Option<&mut FarhaulOptions>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        // SAFETY: the caller gives texts as documented.
        let name = unsafe { argument::words(name, "name") }?;
        let protocol: Protocol = name.parse().map_err(|error| Fault::invalid(format!("the protocol: {error}")))?;
        options.set(Builder::protocol, protocol);
        Ok(())
    })
}

/// The congestion controller by its name with options: `union`, `udt`, `fixed:rate=500mbit`. Default: that of the protocol.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farhaul_options_set_controller(
    options: Option<&mut FarhaulOptions>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        // SAFETY: the caller gives texts as documented.
        let name = unsafe { argument::words(name, "name") }?;
        options.set(Builder::controller, name.to_owned());
        Ok(())
    })
}

/// The cap of the send rate of each connection in bits per second, headers and retransmissions included. Above zero.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_set_max_rate(
    options: Option<&mut FarhaulOptions>,
    bits_per_second: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        if bits_per_second == 0 {
            return Err(Fault::invalid("a rate must be above zero"));
        }
        options.set(Builder::max_rate, Rate::from_bits_per_second(bits_per_second));
        Ok(())
    })
}

/// Sets a time, one of `FARHAUL_TIME_…`, in milliseconds. Above zero, and at most a year.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_set_time(
    options: Option<&mut FarhaulOptions>,
    time: u32,
    milliseconds: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        let set: fn(Builder, Duration) -> Builder = match time {
            FARHAUL_TIME_CONNECT => Builder::connect_timeout,
            FARHAUL_TIME_RENDEZVOUS => Builder::rendezvous_timeout,
            FARHAUL_TIME_PEER => Builder::peer_timeout,
            FARHAUL_TIME_LINGER => Builder::linger,
            FARHAUL_TIME_KEEP_ALIVE => Builder::keep_alive,
            _ => return Err(Fault::invalid(format!("{time} is none of FARHAUL_TIME_…"))),
        };
        options.set(set, millis(milliseconds));
        Ok(())
    })
}

/// Sets a size or a number, one of `FARHAUL_SIZE_…`.
#[unsafe(no_mangle)]
pub extern "C" fn farhaul_options_set_size(
    options: Option<&mut FarhaulOptions>,
    size: u32,
    value: u64,
    error: Option<&mut MaybeUninit<*mut FarhaulError>>,
) -> FarhaulResult {
    change(options, "options", error, |options| {
        let too_large = |_| Fault::invalid(format!("{value} is too large for this setting"));
        let count = usize::try_from(value).map_err(too_large);
        match size {
            FARHAUL_SIZE_PACKET => options.set(Builder::mss, u32::try_from(value).map_err(too_large)?),
            FARHAUL_SIZE_SEND_BUFFER => options.set(Builder::send_buffer, value),
            FARHAUL_SIZE_RECV_BUFFER => options.set(Builder::recv_buffer, value),
            FARHAUL_SIZE_UDP_RECV_BUFFER => options.set(Builder::udp_recv_buffer, count?),
            FARHAUL_SIZE_BACKLOG => options.set(Builder::backlog, count?),
            FARHAUL_SIZE_CONNECTIONS => options.set(Builder::max_connections, count?),
            _ => return Err(Fault::invalid(format!("{size} is none of FARHAUL_SIZE_…"))),
        }
        Ok(())
    })
}
