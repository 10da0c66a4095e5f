//! The entries of a directory, page by page.

use std::collections::VecDeque;

use farhaul_session::{Answer, Component, FileRequest, ListPage, ListedEntry, ServicePath};

use super::RemoteFiles;
use super::link::{Fault, Ticket};
use crate::error::{Code, Error};

/// Entries that a page is asked to have. A server gives as many as fit in an answer.
const PER_PAGE: u32 = 1024;

/// Most entries of a directory, and of a tree. File systems hold that many, and no user lists them.
pub(super) const MOST_ENTRIES: u64 = 1 << 26;
/// Most pages in a row without entries: those of a directory that is emptied meanwhile.
const MOST_EMPTY_PAGES: u32 = 64;

/// The pages of a directory so far. A server may send pages for ever, if nobody looks.
#[derive(Debug, Default)]
pub(super) struct PageOrder {
    last: Option<Component>,
    entries: u64,
    empty_pages: u32,
}

impl PageOrder {
    /// Takes the page behind `cursor`. An error tells what its server does.
    pub(super) fn take(&mut self, page: &ListPage, cursor: &[u8]) -> Result<(), &'static str> {
        let goes_back = page.entries.first().zip(self.last.as_ref()).is_some_and(|(first, last)| first.name <= *last);
        if goes_back || !page.next.is_empty() && page.next.as_slice() <= cursor {
            return Err("lists entries twice");
        }
        self.entries += page.entries.len() as u64;
        self.empty_pages = if page.entries.is_empty() { self.empty_pages + 1 } else { 0 };
        if self.empty_pages > MOST_EMPTY_PAGES || self.entries > MOST_ENTRIES {
            return Err("lists a directory without an end");
        }
        if let Some(last) = page.entries.last() {
            self.last = Some(last.name.clone());
        }
        Ok(())
    }
}

/// The entries of a directory, in ascending order of their names. The next page is requested before it is needed.
pub struct Entries {
    files: RemoteFiles,
    place: Result<ServicePath, Option<Error>>,
    entries: VecDeque<ListedEntry>,
    order: PageOrder,
    /// The cursor of the next page, and its request; `None` behind the last page.
    next: Option<(Vec<u8>, Option<Ticket>)>,
}

impl Entries {
    pub(super) fn of(files: RemoteFiles, path: &[u8]) -> Self {
        let place = files.place(path).map_err(Some);
        Self { files, place, entries: VecDeque::new(), order: PageOrder::default(), next: Some((Vec::new(), None)) }
    }

    fn turn(&mut self) -> Result<(), Error> {
        let place = match &mut self.place {
            Ok(place) => place.clone(),
            Err(error) => {
                self.next = None;
                return error.take().map_or(Ok(()), Err);
            }
        };
        let Some((cursor, ticket)) = self.next.take() else { return Ok(()) };
        let request =
            |cursor: &[u8]| FileRequest::List { place: place.clone(), cursor: cursor.to_vec(), most: PER_PAGE };
        let answer = match ticket.map(Ticket::wait) {
            None | Some(Err(Fault::Lost(_))) => self.files.repeatable(&place, &request(&cursor))?,
            Some(answer) => answer.map_err(|fault| self.files.error(&place, fault))?,
        };
        let Answer::Page(page) = answer else { return Err(self.files.other_answer()) };
        if let Err(fault) = self.order.take(&page, &cursor) {
            return Err(Error::new(Code::Protocol, format!("{} {fault}", self.files.host())));
        }
        self.entries = page.entries.into();
        if !page.next.is_empty() {
            let ticket = self.files.0.begin(&request(&page.next)).ok();
            self.next = Some((page.next, ticket));
        }
        Ok(())
    }
}

impl Iterator for Entries {
    type Item = Result<ListedEntry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.entries.pop_front() {
                return Some(Ok(entry));
            }
            self.next.as_ref()?;
            if let Err(error) = self.turn() {
                return Some(Err(error));
            }
        }
    }
}

impl std::fmt::Debug for Entries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entries").field("place", &self.place).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use farhaul_session::{FileInfo, Mtime, NodeKind};

    use super::*;

    fn page(names: &[&str], next: &str) -> ListPage {
        let (kind, mtime) = (NodeKind::File, Mtime::default());
        let info = FileInfo { kind, size: 0, mode: 0, mtime, target: None, ctime: None, owner: None };
        let entry = |name: &&str| ListedEntry { name: Component::new(name.as_bytes()).unwrap(), info: info.clone() };
        ListPage { entries: names.iter().map(entry).collect(), next: next.into() }
    }

    #[test]
    fn pages_that_go_back_or_bring_nothing_for_ever_are_no_directory() {
        let mut order = PageOrder::default();
        assert_eq!(order.take(&page(&["a", "b"], "b"), b""), Ok(()));
        assert!(order.take(&page(&["b"], "c"), b"b").is_err() && order.take(&page(&["c"], "b"), b"b").is_err());
        let empty = |order: &mut PageOrder| {
            (0..10 * MOST_EMPTY_PAGES)
                .position(|turn| order.take(&page(&[], &"c".repeat(turn as usize + 2)), b"c").is_err())
        };
        assert_eq!(empty(&mut order), Some(MOST_EMPTY_PAGES as usize));
        let mut order = PageOrder { entries: MOST_ENTRIES - 1, ..PageOrder::default() };
        assert!(order.take(&page(&["a"], "a"), b"").is_ok() && order.take(&page(&["b"], "b"), b"a").is_err());
    }
}
