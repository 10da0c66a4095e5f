//! Errors of starting an emulated network.

use std::io;

use thiserror::Error;

/// Why a network cannot be emulated.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// The program has neither root rights nor permission for user namespaces.
    #[error("an emulated network needs root, or a system that permits user namespaces: {0}")]
    NoPermission(#[source] io::Error),
    /// There are no TUN devices, or they cannot be opened.
    #[error("an emulated network needs TUN devices, and /dev/net/tun cannot be opened: {0}")]
    NoTun(#[source] io::Error),
    /// The interface of a host was deleted.
    #[error("the interface {interface} of a host was deleted, so the emulator stopped: {0}", interface = crate::tun::INTERFACE)]
    InterfaceGone(#[source] io::Error),
    /// More hosts than [`MAX_HOSTS`](crate::MAX_HOSTS).
    #[error("{0} hosts are too many: at most {max} can be emulated", max = crate::network::MAX_HOSTS)]
    TooManyHosts(usize),
    /// Another error of the system.
    #[error("{what}: {source}")]
    System {
        /// The failed operation.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

impl EmulateError {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
