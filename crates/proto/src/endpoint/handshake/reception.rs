//! The callers of an endpoint, from their first packet to an accepted connection or a refusal.

use core::net::IpAddr;

use delegate::delegate;
use farhaul_units::Instant;
use farhaul_wire::udt4::Handshake;

use super::{Listener, Response};
use crate::config::{Config, Mode};
use crate::endpoint::handshake::admission::{Admission, Held};
use crate::endpoint::replies::Replies;
use crate::entropy::Secrets;
use crate::transport::AddressPair;

/// Receives the callers of an endpoint.
pub struct Reception {
    secrets: Secrets,
    listener: Option<Listener>,
    admission: Admission,
    replies: Replies<Handshake>,
}

impl Reception {
    /// Accepts nobody yet. `key` must be secret.
    pub fn new(key: [u8; 16]) -> Self {
        Self { secrets: Secrets::new(key), listener: None, admission: Admission::new(key), replies: Replies::new() }
    }

    /// Accepts callers of a mode from now on, or no more.
    pub fn listen(&mut self, mode: Option<Mode>) {
        self.listener = mode.map(|mode| Listener::new(self.secrets.key(), mode));
    }

    delegate! {
        to self.secrets {
            /// A number that strangers do not guess.
            pub fn draw(&mut self) -> u32;
        }
        to self.admission {
            /// A caller from `ip` has got its connection.
            pub fn on_accepted(&mut self, ip: IpAddr, now: Instant);
            /// It spoke for the first time.
            pub fn on_heard(&mut self, ip: IpAddr);
        }
        to self.replies {
            /// The next answer to a caller.
            #[call(pop)]
            pub fn pop_reply(&mut self) -> Option<(AddressPair, Handshake)>;
        }
    }

    /// Handles a caller's packet. Returns the mode of the connection that the caller is to get, if any.
    pub fn on_call(
        &mut self,
        packet: &Handshake,
        from: AddressPair,
        now: Instant,
        (held, config): (Held, &Config),
    ) -> Option<Mode> {
        let room = self.admission.room(from.peer.ip(), now, held, config);
        let listener = self.listener.as_mut()?;
        match listener.on_handshake(packet, from.peer, now, room) {
            Response::Ignore => None,
            Response::Reply(reply) => {
                self.replies.push(from, reply);
                None
            }
            Response::Accept => Some(listener.mode()),
        }
    }

    /// Whether an answer waits.
    pub fn has_reply(&self) -> bool {
        !self.replies.is_empty()
    }
}
