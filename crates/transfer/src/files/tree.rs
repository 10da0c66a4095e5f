//! Listings of trees, page by page.

use std::collections::VecDeque;

use farhaul_session::{
    Answer, Failure, FileRequest, ListTree, ListedDirectory, ListedEntry, NodeKind, RelPath, ServicePath, TreeCursor,
    TreePage,
};

use super::RemoteFiles;
use super::entries::MOST_ENTRIES;
use super::failure;
use super::link::{Fault, Ticket};
use crate::error::{Code, Error};

/// Most bytes of a page: some ten thousand entries in each round trip.
const PER_PAGE: u32 = 4 << 20;

/// The pages of a tree so far. A server may send pages for ever, if nobody looks.
#[derive(Debug, Default)]
pub(super) struct TreeOrder {
    /// Where the next page begins.
    cursor: TreeCursor,
    entries: u64,
}

/// A part of a tree.
#[derive(Debug)]
pub enum TreeItem {
    /// The entries that follow are in this directory, whose path begins at the one that is listed.
    Directory(RelPath),
    /// An entry of the last directory.
    Entry(ListedEntry),
    /// The last directory cannot be read, or not to its end. The others follow.
    Failed(Error),
}

/// A directory and those below it, each with its entries in ascending order of their names. No link is followed.
///
/// One request lists some ten thousand entries. A server without that request is asked for one directory after the other.
pub struct TreeEntries {
    files: RemoteFiles,
    place: Result<ServicePath, Option<Error>>,
    depth: usize,
    order: TreeOrder,
    /// Directories of a page that are to be taken.
    page: VecDeque<ListedDirectory>,
    /// The directory that is being taken, and what is left of it.
    path: Option<RelPath>,
    items: VecDeque<TreeItem>,
    next: NextRequest,
}

/// What a listing requests next.
enum NextRequest {
    /// A page, which may have been requested already.
    Page(Option<Ticket>),
    /// These directories, the last one first.
    Directories(Vec<RelPath>),
}

impl TreeOrder {
    /// Takes a page. An error tells what its server does.
    pub(super) fn take(&mut self, page: &TreePage) -> Result<(), &'static str> {
        let from = &self.cursor;
        let goes_back = page.directories.first().is_some_and(|first| {
            let is_resumed = first.path == from.path && !from.name.is_empty();
            first.path < from.path
                || is_resumed
                    && first.entries.first().is_some_and(|entry| entry.name.as_bytes() <= from.name.as_slice())
        });
        let last = page.directories.last();
        let is_behind = |next: &TreeCursor| next > from && last.is_none_or(|last| last.path <= next.path);
        if goes_back || !page.next.as_ref().is_none_or(is_behind) {
            return Err("lists entries twice");
        }
        self.entries += page.directories.iter().map(|each| 1 + each.entries.len() as u64).sum::<u64>();
        if self.entries > MOST_ENTRIES {
            return Err("lists a tree without an end");
        }
        self.cursor = page.next.clone().unwrap_or_default();
        Ok(())
    }
}

impl RemoteFiles {
    /// The entries of a directory and of those below it, at most `depth` levels. They are fetched as they are taken, and those of a
    /// directory come before those of the directories in it.
    pub fn list_tree(&self, path: impl AsRef<[u8]>, depth: usize) -> TreeEntries {
        TreeEntries {
            files: self.clone(),
            place: self.place(path.as_ref()).map_err(Some),
            depth,
            order: TreeOrder::default(),
            page: VecDeque::new(),
            path: None,
            items: VecDeque::new(),
            next: NextRequest::Page(None),
        }
    }

    /// One page of such a listing for tasks, from a cursor on: the default, or `next` of the page before. `None` if the server does not
    /// know the request, so that its directories are listed one after the other.
    ///
    /// # Errors
    /// The directory cannot be read. Those below it that cannot are in the page.
    pub async fn list_tree_async(
        &self,
        path: impl AsRef<[u8]>,
        depth: u32,
        from: TreeCursor,
    ) -> Result<Option<TreePage>, Error> {
        let place = self.place(path.as_ref())?;
        let mut order = TreeOrder { cursor: from.clone(), entries: 0 };
        let request = FileRequest::ListTree(ListTree { place: place.clone(), depth, from, most: PER_PAGE });
        match self.repeatable_async(&place, &request).await {
            Ok(Answer::Tree(page)) => self.in_order(&mut order, page).map(Some),
            Ok(_) => Err(self.other_answer()),
            Err(error) if error.code == Code::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The failure of a directory in such a page of `path`.
    pub fn error_below(&self, path: impl AsRef<[u8]>, below: &RelPath, failure: &Failure) -> Error {
        match self.place(path.as_ref()) {
            Ok(place) => failure::error(&self.host().named(&under(&place, below)), failure),
            Err(error) => error,
        }
    }

    fn in_order(&self, order: &mut TreeOrder, page: TreePage) -> Result<TreePage, Error> {
        let taken = order.take(&page);
        taken.map_err(|fault| Error::new(Code::Protocol, format!("{} {fault}", self.host())))?;
        Ok(page)
    }
}

impl TreeEntries {
    /// Fetches what comes next. Returns whether there was something.
    fn turn(&mut self) -> Result<bool, Error> {
        let place = match &mut self.place {
            Ok(place) => place.clone(),
            Err(error) => return error.take().map_or(Ok(false), Err),
        };
        if let Some(ListedDirectory { path, entries, failure }) = self.page.pop_front() {
            if self.path.as_ref() != Some(&path) {
                self.items.push_back(TreeItem::Directory(path.clone()));
            }
            self.items.extend(entries.into_iter().map(TreeItem::Entry));
            let named = |failure| self.files.error_below(place.as_bytes(), &path, &failure);
            self.items.extend(failure.map(named).map(TreeItem::Failed));
            self.path = Some(path);
            return Ok(true);
        }
        match std::mem::replace(&mut self.next, NextRequest::Directories(Vec::new())) {
            NextRequest::Page(ticket) => self.fetch(&place, ticket).map(|()| true),
            NextRequest::Directories(mut left) => {
                let Some(path) = left.pop() else { return Ok(false) };
                let listed = self.list(&place, path, &mut left);
                self.next = NextRequest::Directories(left);
                listed.map(|()| true)
            }
        }
    }

    /// Takes the next page, and requests the one behind it.
    fn fetch(&mut self, place: &ServicePath, ticket: Option<Ticket>) -> Result<(), Error> {
        let depth = u32::try_from(self.depth).unwrap_or(u32::MAX);
        let request =
            |from: TreeCursor| FileRequest::ListTree(ListTree { place: place.clone(), depth, from, most: PER_PAGE });
        let this = request(self.order.cursor.clone());
        let answer = match ticket.map(Ticket::wait) {
            None | Some(Err(Fault::Lost(_))) => self.files.repeatable(place, &this),
            Some(answer) => answer.map_err(|fault| self.files.error(place, fault)),
        };
        let page = match answer {
            Ok(Answer::Tree(page)) => self.files.in_order(&mut self.order, page)?,
            Ok(_) => return Err(self.files.other_answer()),
            // The server is older than the request.
            Err(error) if error.code == Code::Unsupported && self.path.is_none() => {
                self.next = NextRequest::Directories(vec![RelPath::root()]);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        if page.next.is_some() {
            self.next = NextRequest::Page(self.files.0.begin(&request(self.order.cursor.clone())).ok());
        }
        self.page = page.directories.into();
        Ok(())
    }

    /// Lists one directory, and notes those in it, for a server that lists no trees.
    fn list(&mut self, place: &ServicePath, path: RelPath, left: &mut Vec<RelPath>) -> Result<(), Error> {
        let (mut below, mut entries) = (Vec::new(), self.files.list(under(place, &path).as_bytes()));
        let depth = path.components().len();
        let failed = loop {
            match entries.next() {
                None => break None,
                Some(Ok(entry)) => {
                    if entry.info.kind == NodeKind::Directory && depth + 1 < self.depth {
                        below.extend(path.join(entry.name.clone()));
                    }
                    self.items.push_back(TreeItem::Entry(entry));
                }
                Some(Err(error)) if path.is_root() || !error.is_of_one_place() => return Err(error),
                Some(Err(error)) => break Some(error).filter(|error| error.code != Code::NotFound),
            }
        };
        if !self.items.is_empty() || failed.is_some() || path.is_root() {
            self.items.push_front(TreeItem::Directory(path));
        }
        self.items.extend(failed.map(TreeItem::Failed));
        left.extend(below.into_iter().rev());
        Ok(())
    }
}

impl Iterator for TreeEntries {
    type Item = Result<TreeItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Some(Ok(item));
            }
            match self.turn() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    (self.next, self.place) = (NextRequest::Directories(Vec::new()), Err(None));
                    return Some(Err(error));
                }
            }
        }
    }
}

impl std::fmt::Debug for TreeEntries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeEntries").field("place", &self.place).finish_non_exhaustive()
    }
}

/// The path of a directory below a place.
fn under(place: &ServicePath, below: &RelPath) -> ServicePath {
    let (start, below) = (place.as_bytes(), below.to_bytes());
    let slash: &[u8] = if start.is_empty() || start.ends_with(b"/") || below.is_empty() { b"" } else { b"/" };
    ServicePath::new(&[start, slash, &below].concat()).unwrap_or_else(|_| place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(path: &str, name: &str) -> TreeCursor {
        TreeCursor { path: RelPath::parse(path.as_bytes()).unwrap(), name: name.into() }
    }

    fn page(paths: &[&str], next: Option<TreeCursor>) -> TreePage {
        let directory = |path: &&str| ListedDirectory { path: cursor(path, "").path, entries: vec![], failure: None };
        TreePage { directories: paths.iter().map(directory).collect(), next }
    }

    #[test]
    fn pages_that_go_back_or_never_on_are_no_tree() {
        let behind = || TreeOrder { cursor: cursor("b", "x"), entries: 0 };
        for (fits, page) in [
            (true, page(&["b", "b/c", "d"], None)),
            (true, page(&[], Some(cursor("b", "y")))),
            (true, page(&["c"], Some(cursor("c", "")))),
            (false, page(&["a"], None)),
            (false, page(&[], Some(cursor("b", "x")))),
            (false, page(&[], Some(cursor("a", "z")))),
            (false, page(&["d"], Some(cursor("c", "x")))),
        ] {
            assert_eq!(behind().take(&page).is_ok(), fits, "{page:?}");
        }
        let mut order = TreeOrder { entries: MOST_ENTRIES - 1, ..behind() };
        assert!(order.take(&page(&["c"], None)).is_ok() && order.take(&page(&["c"], None)).is_err());
    }
}
