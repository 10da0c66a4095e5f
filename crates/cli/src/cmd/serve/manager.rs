//! The service manager: its socket, and word that the server is ready (sd_listen_fds(3), sd_notify(3)).

use std::env;
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use listenfd::ListenFd;

use crate::exit::{Code, Fault};

/// Where the service manager wants to hear that a service is ready.
const NOTIFY: &str = "NOTIFY_SOCKET";

/// The UDP socket that the service manager has opened, if this process was started by one.
pub(super) fn socket() -> Result<Option<UdpSocket>, Fault> {
    ListenFd::from_env().take_udp_socket(0).map_err(|error| {
        Fault::new(
            Code::AddressUnavailable,
            format!("the socket of the service manager is none of UDP: {error}; use ListenDatagram="),
        )
    })
}

/// Tells the service manager that clients may call.
pub(super) fn is_ready() {
    let Some(path) = env::var_os(NOTIFY) else { return };
    let address = match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(&path),
    };
    // A manager that does not listen waits for nothing.
    if let (Ok(address), Ok(socket)) = (address, UnixDatagram::unbound()) {
        let _ = socket.send_to_addr(b"READY=1", &address);
    }
}
