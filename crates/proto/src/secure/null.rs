//! Keys and a handshake without cryptography, for simulations and tests. It has the messages, sizes and errors of a real
//! one, and hides nothing.
//!
//! A tag is a hash under a number that stands for the key, so that damaged and misdirected packets do not open.

use core::hash::Hasher;
use core::net::SocketAddr;

use farhaul_units::Rng;
use farhaul_wire::secure::{CloseCode, PacketNumber, TAG_LEN};
use siphasher::sip128::{Hasher128, SipHasher24};

use super::protector::{Failure, Generations, Handshake, KeyChange, Keys, PacketKey, Provider, Side};
use crate::transport::Protection;

/// Bytes of the messages of TLS 1.3 with X25519MLKEM768 and raw Ed25519 keys at both sides: ClientHello, ServerHello, the
/// rest of the server, the rest of the client. Source: rustls 0.23.
const SIZES: [usize; 4] = [1_413, 1_210, 330, 230];
/// Bytes of the length in front of each message here.
const LENGTH: usize = 4;

/// Makes handshakes without cryptography.
#[derive(Clone, Debug)]
pub struct Null {
    secret: u64,
    confidentiality: u64,
    admits: bool,
}

impl Null {
    /// A provider whose tokens are its own by `seed`.
    pub fn new(seed: u64) -> Self {
        Self { secret: Rng::new(seed).next_u64(), confidentiality: 1 << 23, admits: true }
    }

    /// The same with another limit of packets per key, for tests of key updates.
    #[must_use]
    pub const fn with_confidentiality_limit(mut self, packets: u64) -> Self {
        self.confidentiality = packets;
        self
    }

    /// The same for a server that admits nobody.
    #[must_use]
    pub const fn that_admits_nobody(mut self) -> Self {
        self.admits = false;
        self
    }

    fn exchange(&self, side: Side, parameters: Vec<u8>) -> Box<dyn Handshake> {
        Box::new(Exchange {
            side,
            parameters,
            admits: self.admits,
            confidentiality: self.confidentiality,
            state: HandshakeState::Begin,
            heard: Vec::new(),
            peer_parameters: None,
        })
    }
}

impl Provider for Null {
    fn initial(&self, client_id: &[u8], side: Side) -> Keys {
        let mut hash = SipHasher24::new();
        hash.write(client_id);
        keys(hash.finish128().h1, side, self.confidentiality)
    }

    fn call(&mut self, _peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(self.exchange(Side::Client, parameters))
    }

    fn answer(&mut self, _from: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(self.exchange(Side::Server, parameters))
    }

    fn meet(&mut self, _peer: SocketAddr, parameters: Vec<u8>) -> Result<Box<dyn Handshake>, Failure> {
        Ok(self.exchange(Side::Server, parameters))
    }

    fn seal_token(&self, content: &[u8]) -> Vec<u8> {
        let mut token = content.to_vec();
        token.extend_from_slice(&Key { secret: self.secret, confidentiality: 0 }.tag(0, &[], content));
        token
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        let (content, tag) = token.split_last_chunk::<TAG_LEN>()?;
        let key = Key { secret: self.secret, confidentiality: 0 };
        (key.tag(0, &[], content) == *tag).then(|| content.to_vec())
    }
}

fn keys(secret: u64, side: Side, confidentiality: u64) -> Keys {
    let key = |of| -> Box<dyn PacketKey> {
        Box::new(Key { secret: secret.wrapping_add(u64::from(of == Side::Server)), confidentiality })
    };
    match side {
        Side::Client => Keys { local: key(Side::Client), remote: key(Side::Server) },
        Side::Server => Keys { local: key(Side::Server), remote: key(Side::Client) },
    }
}

struct Key {
    secret: u64,
    confidentiality: u64,
}

impl Key {
    fn tag(&self, number: PacketNumber, header: &[u8], body: &[u8]) -> [u8; TAG_LEN] {
        let mut hash = SipHasher24::new_with_keys(self.secret, number);
        hash.write(header);
        hash.write(body);
        hash.finish128().as_bytes()
    }
}

impl PacketKey for Key {
    fn seal(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> [u8; TAG_LEN] {
        self.tag(number, header, body)
    }

    fn open(&self, number: PacketNumber, header: &[u8], body: &mut [u8]) -> bool {
        body.split_last_chunk().is_some_and(|(body, tag)| self.tag(number, header, body) == *tag)
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

struct Counter {
    next: u64,
    side: Side,
    confidentiality: u64,
}

impl Generations for Counter {
    fn next(&mut self) -> Keys {
        self.next += 16;
        keys(self.next, self.side, self.confidentiality)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeState {
    /// Nothing was said.
    Begin,
    /// The client has sent its first message, or the server has it.
    Greeted,
    /// The server's first message has arrived, or was sent.
    Answered,
    /// The client has the keys of the handshake.
    Keyed,
    /// Everything of the peer has arrived, or everything of this side was said.
    Proved,
    Complete,
}

struct Exchange {
    side: Side,
    parameters: Vec<u8>,
    admits: bool,
    confidentiality: u64,
    state: HandshakeState,
    heard: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
}

impl Exchange {
    /// A message: its length, content, and zeros up to its usual size.
    fn message(content: &[u8], size: usize) -> Vec<u8> {
        let mut message = vec![0; size.max(LENGTH + 4 + content.len())];
        let length = u32::try_from(message.len()).unwrap_or(0);
        message[..LENGTH].copy_from_slice(&length.to_be_bytes());
        message[LENGTH..LENGTH + 4].copy_from_slice(&u32::try_from(content.len()).unwrap_or(0).to_be_bytes());
        message[LENGTH + 4..LENGTH + 4 + content.len()].copy_from_slice(content);
        message
    }

    /// The content of the next complete message.
    fn take(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(*self.heard.first_chunk()?) as usize;
        if length < LENGTH + 4 || self.heard.len() < length {
            return None;
        }
        let message: Vec<u8> = self.heard.drain(..length).collect();
        let size = u32::from_be_bytes(*message[LENGTH..].first_chunk()?) as usize;
        message.get(LENGTH + 4..LENGTH + 4 + size).map(<[u8]>::to_vec)
    }

    fn keys(&self, secret: u64) -> Keys {
        keys(secret, self.side, self.confidentiality)
    }

    fn application(&self) -> KeyChange {
        let generations = Counter { next: 3 << 8, side: self.side, confidentiality: self.confidentiality };
        KeyChange::Application(self.keys(3 << 8), Box::new(generations))
    }
}

impl Handshake for Exchange {
    fn read(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.heard.extend_from_slice(bytes);
        while let Some(content) = self.take() {
            self.state = match (self.side, self.state) {
                (Side::Server, HandshakeState::Begin) => {
                    self.peer_parameters = Some(content);
                    HandshakeState::Greeted
                }
                (Side::Client, HandshakeState::Greeted) => HandshakeState::Answered,
                (Side::Client, HandshakeState::Keyed) => {
                    self.peer_parameters = Some(content);
                    HandshakeState::Proved
                }
                (Side::Server, HandshakeState::Proved) if !self.admits => {
                    return Err(Failure { code: CloseCode::Unauthorised, reason: "nobody is admitted".into() });
                }
                (Side::Server, HandshakeState::Proved) => HandshakeState::Complete,
                _ => return Err(Failure { code: CloseCode::Tls, reason: "a message out of turn".into() }),
            };
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        match (self.side, self.state) {
            (Side::Client, HandshakeState::Begin) => {
                out.extend(Self::message(&self.parameters, SIZES[0]));
                self.state = HandshakeState::Greeted;
                None
            }
            (Side::Server, HandshakeState::Greeted) => {
                out.extend(Self::message(&[], SIZES[1]));
                self.state = HandshakeState::Answered;
                Some(KeyChange::Handshake(self.keys(2 << 8)))
            }
            (Side::Server, HandshakeState::Answered) => {
                out.extend(Self::message(&self.parameters, SIZES[2]));
                self.state = HandshakeState::Proved;
                Some(self.application())
            }
            (Side::Client, HandshakeState::Answered) => {
                self.state = HandshakeState::Keyed;
                Some(KeyChange::Handshake(self.keys(2 << 8)))
            }
            (Side::Client, HandshakeState::Proved) => {
                out.extend(Self::message(&[], SIZES[3]));
                self.state = HandshakeState::Complete;
                Some(self.application())
            }
            _ => None,
        }
    }

    fn peer_parameters(&self) -> Option<&[u8]> {
        self.peer_parameters.as_deref()
    }

    fn is_complete(&self) -> bool {
        self.state == HandshakeState::Complete
    }

    fn protection(&self) -> Protection {
        Protection { suite: "none, for tests".into(), peer_key: Vec::new() }
    }
}
