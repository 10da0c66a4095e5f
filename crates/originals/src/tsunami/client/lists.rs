//! The two lists of a server.

use farhaul_units::Instant;
use farhaul_wire::tsunami::{
    Answer, GOT_LIST, GOT_SIZE, ListingEntry, MAX_LISTING, MAX_NAME, MessageError, Totals, read_count, read_text,
};

use super::{Client, ClientEvent, ClientState, Fault, Listed};

impl Client {
    /// Handles one part of a list. Returns false if none is complete.
    pub(super) fn step_list(&mut self, now: Instant) -> Result<bool, Fault> {
        let is_refused = self.inbox.rest().first() == Some(&Answer::NoFile.byte());
        match &mut self.state {
            // A number of a list begins with a digit. Old servers know no lists.
            ClientState::FileCount | ClientState::Totals if is_refused => {
                self.inbox.consume(1);
                self.finish(now, ClientEvent::Refused);
            }
            ClientState::FileCount => {
                let Some((left, length)) = read_count(self.inbox.rest())? else { return Ok(false) };
                self.inbox.consume(length);
                self.enter(now, ClientState::Files { left, bytes: 0, files: Vec::new() });
            }
            ClientState::Files { left: 0, files, .. } => {
                let files = std::mem::take(files);
                self.out.push(0);
                self.finish(now, ClientEvent::Files(files));
            }
            ClientState::Files { left, bytes, files } => {
                let Some((entry, length)) = ListingEntry::decode(self.inbox.rest())? else { return Ok(false) };
                count_bytes(bytes, length, MAX_LISTING)?;
                self.since = now;
                files.push(Listed { name: entry.name.to_vec(), size: entry.size });
                *left -= 1;
                self.inbox.consume(length);
            }
            ClientState::Totals => {
                let Some(totals) = Totals::decode(self.inbox.rest())? else { return Ok(false) };
                self.inbox.consume(Totals::LEN);
                self.out.extend_from_slice(GOT_SIZE);
                self.enter(now, ClientState::Names { totals, bytes: 0, names: Vec::new() });
            }
            ClientState::Names { totals: Totals { names: 0, .. }, .. } => self.enter(now, ClientState::NoNames),
            ClientState::NoNames if is_refused => {
                self.inbox.consume(1);
                self.finish(now, ClientEvent::Names(Vec::new()));
            }
            ClientState::NoNames if !self.inbox.rest().is_empty() => return Err(Fault::OutOfTurn),
            ClientState::Names { totals, names, .. } if names.len() as u64 == totals.names => {
                let names = std::mem::take(names);
                self.out.extend_from_slice(GOT_LIST);
                self.finish(now, ClientEvent::Names(names));
            }
            ClientState::Names { totals, bytes, names } => {
                let read = read_text(self.inbox.rest(), "a name of the list", MAX_NAME)?;
                let Some((name, length)) = read else { return Ok(false) };
                count_bytes(bytes, length, totals.bytes)?;
                self.since = now;
                names.push(name.to_vec());
                self.inbox.consume(length);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// Counts bytes of a list against their limit.
fn count_bytes(bytes: &mut u64, more: usize, most: u64) -> Result<(), MessageError> {
    *bytes += more as u64;
    if *bytes <= most {
        return Ok(());
    }
    let valid = "16 MiB or less, and no more than announced";
    Err(MessageError::OutOfRange { field: "the length of a list", value: *bytes, valid })
}
