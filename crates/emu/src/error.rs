//! Why a network cannot be emulated.

use std::io;

use thiserror::Error;

/// Why a network cannot be emulated, and what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EmulateError {
    /// Neither the rights of root nor user namespaces.
    #[error("networks of one's own need root, or a system that lets users make namespaces: {0}")]
    NoPermission(#[source] io::Error),
    /// There are no TUN devices, or they may not be opened.
    #[error("networks of one's own need TUN devices, and /dev/net/tun cannot be opened: {0}")]
    NoTun(#[source] io::Error),
    /// Somebody deleted the interface of a host.
    #[error("a host has lost its interface {interface}, without which nothing is carried: {0}", interface = crate::tun::INTERFACE)]
    InterfaceGone(#[source] io::Error),
    /// More hosts than fit.
    #[error("{0} hosts are too many: at most {max} can be emulated", max = crate::MAX_HOSTS)]
    TooManyHosts(usize),
    /// Something else that the system refused.
    #[error("{what}: {source}")]
    System {
        /// What was being done.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl EmulateError {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}
