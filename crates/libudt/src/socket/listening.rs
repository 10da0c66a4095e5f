//! Listening and accepting.

use std::sync::Arc;

use farhaul::{Listener, MessageSocket, Readiness, Stream, Watch};

use super::link::{Handle, Link};
use super::{Kind, Phase, Socket};
use crate::failure::{Code, Result};
use crate::port::Port;
use crate::wait;

/// A listener.
#[derive(Debug)]
pub(crate) struct Listening {
    listener: Listeners,
    pub(crate) port: Arc<Port>,
}

#[derive(Debug)]
enum Listeners {
    Streams(Listener<Stream>),
    Messages(Listener<MessageSocket>),
}

impl Listening {
    pub(crate) fn readiness(&self) -> std::result::Result<Readiness, farhaul::Error> {
        match &self.listener {
            Listeners::Streams(listener) => listener.readiness(),
            Listeners::Messages(listener) => listener.readiness(),
        }
    }

    pub(crate) fn watch(&self) -> Watch {
        match &self.listener {
            Listeners::Streams(listener) => listener.watch(),
            Listeners::Messages(listener) => listener.watch(),
        }
    }

    pub(crate) fn close(&self) {
        match &self.listener {
            Listeners::Streams(listener) => listener.close(),
            Listeners::Messages(listener) => listener.close(),
        }
    }

    /// The newest connection that waits.
    fn next(&self) -> Result<Option<Link>> {
        let handle = match &self.listener {
            Listeners::Streams(listener) => listener.try_accept()?.map(|(stream, _)| Handle::Stream(stream)),
            Listeners::Messages(listener) => listener.try_accept()?.map(|(messages, _)| Handle::Messages(messages)),
        };
        Ok(handle.map(|handle| Link { handle, port: Arc::clone(&self.port) }))
    }
}

impl Socket {
    /// Listens for connections. A second call does nothing.
    ///
    /// # Errors
    /// The socket is not bound, or for a rendezvous. The backlog is not positive. Another socket of the port listens.
    pub(crate) fn listen(&self, backlog: i32) -> Result<()> {
        let options = self.options().clone();
        self.advance(|phase| {
            let port = match phase {
                Phase::Listening(_) => return Ok(phase.clone()),
                Phase::Bound(port) => Arc::clone(port),
                Phase::Closed => return Err(Code::InvalidSocket.into()),
                _ => return Err(Code::NotBound.into()),
            };
            if options.rendezvous {
                return Err(Code::RendezvousListener.into());
            }
            let backlog = usize::try_from(backlog).ok().filter(|backlog| *backlog > 0).ok_or(Code::InvalidParameter)?;
            let endpoint = port.endpoint(&options, Some(backlog))?;
            let listener = match self.kind {
                Kind::Stream => Listeners::Streams(endpoint.listen()?.newest_first()),
                Kind::Messages => Listeners::Messages(endpoint.listen_for_messages()?.newest_first()),
            };
            Ok(Phase::Listening(Arc::new(Listening { listener, port })))
        })
    }

    /// Accepts the newest connection that waits. The result makes its socket.
    ///
    /// # Errors
    /// The socket does not listen, or was closed meanwhile. None waits, and the socket does not block.
    pub(crate) fn accept(&self) -> Result<impl FnOnce(i32) -> Self> {
        let options = self.options().clone();
        let Phase::Listening(listening) = self.phase() else {
            let code = if options.rendezvous { Code::RendezvousListener } else { Code::NotListening };
            return Err(code.into());
        };
        let link = loop {
            match listening.next()? {
                Some(link) => break link,
                None if !options.recv_blocks => return Err(Code::NothingNow.into()),
                None => wait::until(&mut listening.watch(), None, |now| now.readable)?,
            };
        };
        let (family, kind, phase) = (self.family, self.kind, Phase::Linked(Arc::new(link)));
        Ok(move |id| Self::at(id, family, kind, options, phase))
    }
}
