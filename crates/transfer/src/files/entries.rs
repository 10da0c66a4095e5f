//! The entries of a directory, page by page.

use std::collections::VecDeque;

use farhaul_session::{Answer, Component, FileRequest, ListedEntry, ServicePath};

use super::RemoteFiles;
use super::link::{Fault, Ticket};
use crate::error::{Code, Error};

/// Entries that a page is asked to have. A server gives as many as fit in an answer.
const PER_PAGE: u32 = 1024;

/// The entries of a directory, in ascending order of their names. The next page is on its way while one is taken.
pub struct Entries {
    files: RemoteFiles,
    place: Result<ServicePath, Option<Error>>,
    entries: VecDeque<ListedEntry>,
    last: Option<Component>,
    /// The cursor of the next page, and its request; `None` behind the last page.
    next: Option<(Vec<u8>, Option<Ticket>)>,
}

impl Entries {
    pub(super) fn of(files: RemoteFiles, path: &[u8]) -> Self {
        let place = files.place(path).map_err(Some);
        Self { files, place, entries: VecDeque::new(), last: None, next: Some((Vec::new(), None)) }
    }

    fn turn(&mut self) -> Result<(), Error> {
        let place = match &mut self.place {
            Ok(place) => place.clone(),
            Err(error) => {
                self.next = None;
                return error.take().map_or(Ok(()), Err);
            }
        };
        let Some((cursor, asked)) = self.next.take() else { return Ok(()) };
        let request =
            |cursor: &[u8]| FileRequest::List { place: place.clone(), cursor: cursor.to_vec(), most: PER_PAGE };
        let answer = match asked.map(Ticket::wait) {
            None | Some(Err(Fault::Lost(_))) => self.files.repeatable(&place, &request(&cursor))?,
            Some(answer) => answer.map_err(|fault| self.files.error(&place, fault))?,
        };
        let Answer::Page(page) = answer else { return Err(self.files.other_answer()) };
        // A page that goes back would have no end.
        let goes_back = page.entries.first().zip(self.last.as_ref()).is_some_and(|(first, last)| first.name <= *last);
        if goes_back || !page.next.is_empty() && page.next <= cursor {
            return Err(Error::new(Code::Protocol, format!("{} lists entries twice", self.files.host())));
        }
        if let Some(last) = page.entries.last() {
            self.last = Some(last.name.clone());
        }
        self.entries = page.entries.into();
        if !page.next.is_empty() {
            let asked = self.files.0.begin(&request(&page.next)).ok();
            self.next = Some((page.next, asked));
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
