//! Pages of a directory of any size, in ascending order of names.
//!
//! The cursor is the last name of a page, so it means the same whatever comes and goes. The names behind it are kept for the next
//! page, as many as have room, so that a large directory is not read anew for each page.

use std::collections::{BinaryHeap, VecDeque};

use farhaul_session::{Component, ListPage, ListedEntry};
use rustix::io::Errno;

use super::info_of;
use crate::directory::{Directory, Identity};
use crate::owners::OwnerNames;
use crate::temporary::is_temporary;

/// Most names that one reading of a directory keeps, and the bytes of these names: 16 readings for a million entries.
const MOST_NAMES: usize = 65_536;
const MOST_BYTES: usize = 8 << 20;
/// Most entries of a page. Their names and properties fill an answer long before, unless they are short.
const MOST_ENTRIES: usize = 1024;

/// The names of a directory behind a cursor.
#[derive(Debug)]
pub(super) struct Listing {
    directory: Identity,
    /// The name before them.
    cursor: Vec<u8>,
    names: VecDeque<Component>,
    /// Whether the directory has no names behind them.
    is_whole: bool,
}

impl Listing {
    /// The page behind `cursor`. `kept` has the names of an earlier page, and gets those behind this one.
    pub(super) fn page(
        kept: &mut Option<Self>,
        directory: &Directory,
        (cursor, most): (&[u8], usize),
        owners: &mut OwnerNames,
    ) -> Result<ListPage, Errno> {
        let most = most.min(MOST_ENTRIES);
        let of_this = |listing: &Self| {
            !cursor.is_empty()
                && listing.directory == directory.identity()
                && listing.cursor == cursor
                && !listing.names.is_empty()
        };
        let mut listing = match kept.take().filter(of_this) {
            Some(listing) => listing,
            None => Self::read(directory, cursor)?,
        };
        let mut page = ListPage::default();
        while page.entries.len() < most {
            let Some(name) = listing.names.pop_front() else { break };
            listing.cursor = name.as_bytes().to_vec();
            match info_of(directory, &name, owners) {
                Ok(info) => page.entries.push(ListedEntry { name, info }),
                // It has gone since.
                Err(Errno::NOENT | Errno::INVAL) => {}
                Err(error) => return Err(error),
            }
        }
        if !(listing.names.is_empty() && listing.is_whole) {
            page.next.clone_from(&listing.cursor);
            *kept = Some(listing);
        }
        Ok(page)
    }

    /// The first names behind `cursor`.
    fn read(directory: &Directory, cursor: &[u8]) -> Result<Self, Errno> {
        // The largest one is on top, and makes room.
        let (mut heap, mut bytes, mut is_whole) = (BinaryHeap::new(), 0, true);
        directory.each_name(|name, _| {
            if name <= cursor
                || heap.len() >= MOST_NAMES && heap.peek().is_some_and(|last: &Component| last.as_bytes() < name)
            {
                is_whole &= name <= cursor;
                return Ok(());
            }
            let Ok(name) = Component::new(name) else { return Ok(()) };
            if is_temporary(&name) {
                return Ok(());
            }
            bytes += name.as_bytes().len();
            heap.push(name);
            while heap.len() > MOST_NAMES || bytes > MOST_BYTES {
                bytes -= heap.pop().map_or(0, |last| last.as_bytes().len());
                is_whole = false;
            }
            Ok::<_, Errno>(())
        })?;
        let names = heap.into_sorted_vec().into();
        Ok(Self { directory: directory.identity(), cursor: cursor.to_vec(), names, is_whole })
    }
}
