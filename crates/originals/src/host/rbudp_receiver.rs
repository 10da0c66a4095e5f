//! The host of an RBUDP receiver: asks a `sendfile` of QUANTA for one file, and writes it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::rbudp::{ReceivingSession, Terms};
use farhaul_session::Component;
use farhaul_units::Instant;

use super::drive::{Application, drive};
use super::line::Line;
use super::{Failure, Progress, SessionHandle};
use farhaul_disk::{IncomingFile, IncomingPlace};

/// Bytes of one write to the disk.
const BLOCK: usize = 256 << 10;

/// A connection with an RBUDP server.
#[derive(Debug)]
pub struct RbudpReceiver {
    line: Line,
    progress: Progress,
}

impl RbudpReceiver {
    /// Connects to the sender's TCP port `p`, and opens UDP port `p + 1` here. `time` bounds the opening.
    ///
    /// # Errors
    /// Nobody answers, or the UDP port is taken.
    pub fn connect(sender: SocketAddr, time: Duration, handle: &SessionHandle) -> Result<Self, Failure> {
        let port = udp_port(sender)?;
        let mut line = Line::connect(sender, time, &handle.stop)?;
        line.open_socket(port)?;
        Ok(Self { line, progress: handle.progress.clone() })
    }

    /// Copies the file that the sender calls `name` to `place`, where it is called `local` unless the place has a name.
    /// Returns its size. The round trip of `terms` is measured.
    ///
    /// # Errors
    /// The sender ended the connection instead of an answer, which is its only way to refuse, or the transfer failed.
    pub fn get(mut self, name: &[u8], terms: Terms, local: &Component, place: &IncomingPlace) -> Result<u64, Failure> {
        let terms = Terms { port: self.line.peer().port(), round_trip: self.line.round_trip(), ..terms };
        let mut session = ReceivingSession::file(self.line.now(), terms, name)?;
        let (target, block) = (Some((place, local)), vec![0; BLOCK]);
        let mut incoming = Incoming { progress: self.progress, target, file: None, written: 0, block };
        drive(&mut self.line, &mut session, &mut incoming)?;
        if let Some(file) = incoming.file.take() {
            file.commit()?;
        }
        self.line.finish();
        Ok(incoming.written)
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

struct Incoming<'a> {
    progress: Progress,
    /// Where the file will go, until its size is known.
    target: Option<(&'a IncomingPlace, &'a Component)>,
    file: Option<IncomingFile>,
    written: u64,
    block: Vec<u8>,
}

impl Application<ReceivingSession> for Incoming<'_> {
    fn work(&mut self, _now: Instant, session: &mut ReceivingSession, _line: &mut Line) -> Result<bool, Failure> {
        if let Some(size) = session.size()
            && let Some((place, name)) = self.target.take()
        {
            self.file = Some(place.begin(name, size)?);
            self.progress.announce(size);
        }
        let Some(file) = &self.file else { return Ok(false) };
        while let length @ 1.. = session.read(&mut self.block) {
            file.write(self.written, &self.block[..length])?;
            self.written += length as u64;
            self.progress.add_bytes(length as u64);
        }
        Ok(session.is_complete() && Some(self.written) == session.size())
    }

    fn progress(&self) -> Option<&Progress> {
        Some(&self.progress)
    }
}
