//! The host of an RBUDP receiver: asks a `sendfile` of QUANTA for one file, and writes it.

use std::net::SocketAddr;
use std::time::Duration;

use farhaul_proto::ChannelEnd;
use farhaul_protocols::rbudp::original::{Fault, ReceivingSession, Terms};
use farhaul_session::Component;
use farhaul_units::Instant;

use super::drive::{Session, drive};
use super::line::Line;
use super::{Failure, Progress, Stop};
use crate::disk::{IncomingFile, IncomingPlace};

/// Bytes of one write to the disk.
const BLOCK: usize = 256 << 10;

/// A connection with an RBUDP server.
#[derive(Debug)]
pub struct RbudpReceiver {
    line: Line,
    sender: SocketAddr,
    progress: Progress,
}

impl RbudpReceiver {
    /// Connects to the sender's TCP port `p`, and opens UDP port `p + 1` here. `time` bounds the opening.
    ///
    /// # Errors
    /// Nobody answers, or the UDP port is taken.
    pub fn connect(sender: SocketAddr, time: Duration, progress: Progress, stop: &Stop) -> Result<Self, Failure> {
        let port = udp_port(sender)?;
        let mut line = Line::connect(sender, time, stop)?;
        line.open_socket(port)?;
        Ok(Self { line, sender, progress })
    }

    /// Copies the file that the sender calls `name` to `place`, where it is called `local` unless the place has a name.
    /// Returns its size. The round trip of `terms` is measured.
    ///
    /// # Errors
    /// The sender ended the connection instead of an answer, which is its only way to refuse, or the transfer failed.
    pub fn get(mut self, name: &[u8], terms: Terms, local: &Component, place: &IncomingPlace) -> Result<u64, Failure> {
        let terms = Terms { round_trip: self.line.round_trip(), ..terms };
        let session = ReceivingSession::file(self.line.now(), terms, name)?;
        let mut host = Host {
            session,
            sender: self.sender,
            progress: self.progress,
            target: Some((place, local)),
            file: None,
            written: 0,
            block: vec![0; BLOCK],
        };
        drive(&mut self.line, &mut host)?;
        if let Some(file) = host.file.take() {
            file.commit()?;
        }
        self.line.finish();
        Ok(host.written)
    }
}

/// The receiver's UDP port, for the sender's TCP port (QUANTA).
pub(super) fn udp_port(sender: SocketAddr) -> Result<u16, Failure> {
    sender.port().checked_add(1).ok_or_else(|| Failure::Bind {
        transport: "UDP",
        address: sender,
        source: std::io::Error::other("the receiver's port is the next one, and 65535 is the last"),
    })
}

struct Host<'a> {
    session: ReceivingSession,
    sender: SocketAddr,
    progress: Progress,
    /// Where the file will go, until its size is known.
    target: Option<(&'a IncomingPlace, &'a Component)>,
    file: Option<IncomingFile>,
    written: u64,
    block: Vec<u8>,
}

impl Session for Host<'_> {
    fn handle_channel(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.session.handle_channel(now, bytes)?)
    }

    fn channel_ended(&mut self, now: Instant, end: ChannelEnd) -> Result<(), Failure> {
        match self.session.channel_ended(now, end) {
            // A sender that refuses may reset the connection.
            Err(_) if self.session.size().is_none() => Err(Fault::NoAnswer.into()),
            result => Ok(result?),
        }
    }

    fn poll_channel(&mut self, now: Instant, out: &mut Vec<u8>) {
        self.session.poll_channel(now, out);
    }

    fn receives(&self) -> bool {
        true
    }

    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), Failure> {
        let is_senders =
            from.ip().to_canonical() == self.sender.ip().to_canonical() && from.port() == self.sender.port();
        if is_senders && self.session.handle_datagram(now, datagram) {
            self.progress.add_received(1);
        }
        Ok(())
    }

    fn end_batch(&mut self, now: Instant) {
        self.session.end_batch(now);
    }

    fn handle_timeout(&mut self, now: Instant) -> Result<(), Failure> {
        Ok(self.session.handle_timeout(now)?)
    }

    fn deadline(&self) -> Option<Instant> {
        self.session.deadline()
    }

    fn work(&mut self, _now: Instant, _line: &mut Line) -> Result<bool, Failure> {
        if let Some(size) = self.session.size()
            && let Some((place, name)) = self.target.take()
        {
            self.file = Some(place.begin(name, size)?);
            self.progress.announce(size);
        }
        let Some(file) = &self.file else { return Ok(false) };
        loop {
            let length = self.session.read(&mut self.block);
            if length == 0 {
                break;
            }
            file.write(self.written, &self.block[..length])?;
            self.written += length as u64;
            self.progress.add_bytes(length as u64);
        }
        Ok(self.session.is_complete() && Some(self.written) == self.session.size())
    }
}
