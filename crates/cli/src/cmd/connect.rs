//! Opening a connection to an address as it was typed.

use std::net::{SocketAddr, UdpSocket};

use farhaul::{Endpoint, Stream};

use super::Context;
use crate::exit::{Code, Fault};
use crate::options::Transport;
use crate::output::Output;
use crate::output::json::{Record, Start};
use crate::values::HostPort;

/// What warnings about the buffer to receive name.
const RECEIVE_LIMIT: &str = "net.core.rmem_max";

/// Connects to the first address of `to` that answers.
pub(super) fn connect(
    context: &Context,
    output: &Output,
    transport: &Transport,
    to: &HostPort,
    start: Start,
) -> Result<Stream, Fault> {
    let mut failed = None;
    for peer in to.resolve()? {
        match connect_to(context, output, transport, peer, &start) {
            Err(fault) if context.interrupt.is_stopping() => return Err(fault),
            Err(fault) => failed = Some(fault),
            connected => return connected,
        }
    }
    Err(failed.expect("a name that was resolved has an address, and it failed"))
}

/// One more connection to where the first one went, from a port of its own.
pub(super) fn connect_again(context: &Context, transport: &Transport, peer: SocketAddr) -> Result<Stream, Fault> {
    let endpoint = transport.bind_for(peer)?;
    context.interrupt.cancels(endpoint.canceller());
    begin(context, transport, &endpoint, peer)
}

fn connect_to(
    context: &Context,
    output: &Output,
    transport: &Transport,
    peer: SocketAddr,
    start: &Start,
) -> Result<Stream, Fault> {
    check_route(peer)?;
    let endpoint = transport.bind_for(peer)?;
    announce(context, output, &endpoint, Some(peer), start.clone());
    begin(context, transport, &endpoint, peer)
}

/// Until a session has its first answer, receiving waits no longer than for the connection itself.
fn begin(context: &Context, transport: &Transport, endpoint: &Endpoint, peer: SocketAddr) -> Result<Stream, Fault> {
    let stream = endpoint.connect(peer).map_err(|error| context.connection_fault(&error, &peer))?;
    stream.set_read_timeout(Some(transport.connect_timeout.min(transport.timeout)));
    Ok(stream)
}

/// Says what holds from now on, warns of what costs speed, and lets signals end waiting calls.
pub(super) fn announce(
    context: &Context,
    output: &Output,
    endpoint: &Endpoint,
    peer: Option<SocketAddr>,
    mut start: Start,
) {
    context.interrupt.cancels(endpoint.canceller());
    start.local = Some(endpoint.local_addr().to_string());
    start.peer = peer.map(|peer| peer.to_string());
    let concerns = |warning: &&String| !(start.only_sends && warning.contains(RECEIVE_LIMIT));
    let warnings = endpoint.warnings();
    output.record(&Record::Start(Box::new(start.clone())));
    warnings.iter().filter(concerns).for_each(|warning| output.warn(warning));
}

/// A machine without a way to the address knows that at once; nobody has to wait for a time-out then.
fn check_route(peer: SocketAddr) -> Result<(), Fault> {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    let routed = UdpSocket::bind(any).and_then(|socket| socket.connect(peer));
    routed.map_err(|error| {
        Fault::new(
            Code::NoRoute,
            format!("no way to {peer}: {error}; `ip route get {}` shows what this machine tries", peer.ip()),
        )
    })
}

/// Whether `peer` is an address of this machine.
pub(super) fn is_here(peer: SocketAddr) -> bool {
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
    // The way to an address of one's own begins there.
    let near = UdpSocket::bind(any).and_then(|socket| socket.connect(peer).and_then(|()| socket.local_addr()));
    near.is_ok_and(|near| near.ip() == peer.ip() || peer.ip().is_loopback())
}
