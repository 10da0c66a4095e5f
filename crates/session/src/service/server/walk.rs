//! The walk through a tree that a client lists.

use std::collections::VecDeque;

use crate::capabilities::Capabilities;
use crate::failure::{FailCode, Failure};
use crate::frame_kind::MAX_BLOCK;
use crate::path_rules::{Component, RelPath};
use crate::service::answer::ListPage;
use crate::service::entry::{ListedEntry, NodeKind};
use crate::service::files::Files;
use crate::service::service_path::ServicePath;
use crate::service::tree::{ListTree, TreeCursor, TreePage, put_directory, put_entry, put_failure};

/// Entries that one step reads.
const PER_STEP: usize = 256;
/// Entries that a step reads while [`MOST_WAITING`] is reached.
const PER_FULL_STEP: usize = 8;
/// Steps of one turn, so that a slow disk does not keep other requests waiting for long.
const PER_TURN: usize = 16;
/// Most bytes of names that wait to be visited. Directories beyond them are read a second time.
const MOST_WAITING: usize = 4 << 20;
/// Bytes of memory of a name, beside its own.
const PER_NAME: usize = 32;

/// A walk, of which it holds the directories that it has not visited yet, within [`MOST_WAITING`].
pub(super) struct Walk {
    place: ServicePath,
    depth: usize,
    offered: Capabilities,
    /// Records that are to be sent.
    pending: Vec<u8>,
    /// Where the listing goes on behind them, once the answer is complete; `None` within for nowhere.
    end: Option<Option<TreeCursor>>,
    /// Bytes that the answer may still have.
    room: usize,
    /// Where the answer begins.
    from: TreeCursor,
    /// The directory that is listed or was listed last.
    path: RelPath,
    /// The name behind which it is listed; `None` once it is done.
    listing: Option<Vec<u8>>,
    /// Whether the answer has its record.
    is_named: bool,
    /// Its parent directories, and itself.
    levels: Vec<Level>,
    waiting: usize,
}

/// The state of a walk after a step.
enum Step {
    Goes,
    /// The answer is full.
    Full(TreeCursor),
    Done,
}

/// The directories in a directory that are to be visited.
#[derive(Default)]
struct Level {
    known: VecDeque<Component>,
    /// Those up to this name are known or were visited.
    scanned: Vec<u8>,
    /// Whether none come behind it.
    is_whole: bool,
    /// Whether the directory is being read again for them.
    is_scanned: bool,
}

impl Walk {
    pub(super) fn new(request: ListTree, offered: Capabilities) -> Self {
        let ListTree { place, depth, from, most } = request;
        let TreeCursor { path, name } = from.clone();
        // What was visited before the cursor is known by the names on its path.
        let behind = |name: &Component| Level { scanned: name.as_bytes().to_vec(), ..Level::default() };
        let mut levels: Vec<Level> = path.components().iter().map(behind).collect();
        levels.push(Level { is_whole: name.is_empty(), ..Level::default() });
        Self {
            place,
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            offered,
            pending: Vec::new(),
            end: None,
            room: usize::try_from(most).unwrap_or(usize::MAX),
            from,
            path,
            listing: Some(name),
            is_named: false,
            levels,
            waiting: 0,
        }
    }

    /// Whether it has records to send, as far as it knows.
    pub(super) const fn needs_credit(&self) -> bool {
        self.end.is_none() || !self.pending.is_empty()
    }

    /// Walks on for a short time, and leaves some of the records in `block`. Returns the end of the answer, behind all of them.
    pub(super) fn take_turn<F: Files>(
        &mut self,
        files: &mut F,
        room: u64,
        block: &mut Vec<u8>,
    ) -> Result<Option<TreePage>, Failure> {
        for _ in 0..PER_TURN {
            if self.end.is_some() || self.pending.len() >= MAX_BLOCK {
                break;
            }
            match self.step(files)? {
                Step::Goes => {}
                Step::Full(next) if next == self.from => {
                    return Err(Failure::new(FailCode::Limit, "an entry takes more bytes than the answer may have"));
                }
                Step::Full(next) => self.end = Some(Some(next)),
                Step::Done => self.end = Some(None),
            }
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let count = self.pending.len().min(MAX_BLOCK).min(room);
        block.clear();
        block.extend(self.pending.drain(..count));
        Ok(match &mut self.end {
            // The end has a turn of its own, behind the bytes.
            Some(next) if block.is_empty() && self.pending.is_empty() => {
                Some(TreePage { directories: Vec::new(), next: next.take() })
            }
            _ => None,
        })
    }

    fn step<F: Files>(&mut self, files: &mut F) -> Result<Step, Failure> {
        let Some(cursor) = self.listing.take() else { return self.go_on(files) };
        match files.list(&self.place, &self.path, &cursor, PER_STEP) {
            Ok(page) => Ok(self.put_page(cursor, page)),
            Err(failure) if self.path.is_root() && cursor.is_empty() => Err(failure),
            Err(failure) => Ok(self.put_unreadable(cursor, &failure)),
        }
    }

    /// Puts entries of the directory, as many as there is room for.
    fn put_page(&mut self, cursor: Vec<u8>, page: ListPage) -> Step {
        let mut last = cursor;
        if !self.name() {
            return self.full(last);
        }
        for mut entry in page.entries {
            let (before, room) = (self.pending.len(), self.room);
            entry.info.reduce_to(self.offered);
            if !self.put(|out| put_entry(out, &entry)) {
                return self.full(last);
            }
            let previous = std::mem::replace(&mut last, entry.name.as_bytes().to_vec());
            if !self.is_visited(&entry) {
                continue;
            }
            match self.path.join(entry.name.clone()) {
                Ok(_) => self.note(entry.name),
                Err(error) => {
                    let failure = Failure::new(FailCode::NameRefused, format!("{}: {error}", entry.name));
                    if !self.put(|out| put_failure(out, &failure)) {
                        // The next answer begins with the entry, so that it has both.
                        self.pending.truncate(before);
                        self.room = room;
                        return self.full(previous);
                    }
                }
            }
        }
        self.listing = Some(page.next).filter(|next| !next.is_empty());
        Step::Goes
    }

    fn put_unreadable(&mut self, cursor: Vec<u8>, failure: &Failure) -> Step {
        self.level().is_whole = true;
        if is_gone(failure) {
            return Step::Goes;
        }
        if !self.name() || !self.put(|out| put_failure(out, failure)) {
            return self.full(cursor);
        }
        Step::Goes
    }

    /// Puts the record of the directory. Returns whether the answer has it.
    fn name(&mut self) -> bool {
        if !self.is_named {
            let path = self.path.clone();
            self.is_named = self.put(|out| put_directory(out, &path));
        }
        self.is_named
    }

    /// Puts a record, if there is room for it.
    fn put(&mut self, record: impl FnOnce(&mut Vec<u8>)) -> bool {
        let before = self.pending.len();
        record(&mut self.pending);
        match self.room.checked_sub(self.pending.len() - before) {
            Some(room) => {
                self.room = room;
                true
            }
            None => {
                self.pending.truncate(before);
                false
            }
        }
    }

    fn full(&self, name: Vec<u8>) -> Step {
        Step::Full(TreeCursor { path: self.path.clone(), name })
    }

    /// Notes a directory that is to be visited, as long as all before it are known.
    fn note(&mut self, name: Component) {
        let has_room = self.waiting < MOST_WAITING;
        let weight = weight(&name);
        let level = self.level();
        if !level.is_whole {
            return;
        }
        if !has_room {
            level.is_whole = false;
            return;
        }
        level.scanned = name.as_bytes().to_vec();
        level.known.push_back(name);
        self.waiting += weight;
    }

    /// Goes to the next directory.
    fn go_on<F: Files>(&mut self, files: &mut F) -> Result<Step, Failure> {
        let level = self.level();
        level.is_scanned |= level.known.is_empty() && !level.is_whole;
        if level.is_scanned {
            return self.scan(files).map(|()| Step::Goes);
        }
        let Some(name) = level.known.pop_front() else {
            self.levels.pop();
            self.path = self.path.parent();
            return Ok(if self.levels.is_empty() { Step::Done } else { Step::Goes });
        };
        self.waiting -= weight(&name);
        // Its entry was not noted if it were too long.
        if self.path.push(name).is_ok() {
            self.levels.push(Level { is_whole: true, ..Level::default() });
            (self.listing, self.is_named) = (Some(Vec::new()), false);
        }
        Ok(Step::Goes)
    }

    /// Reads the directory again for those in it that are not known: behind a cursor, or because they were too many.
    fn scan<F: Files>(&mut self, files: &mut F) -> Result<(), Failure> {
        let scanned = std::mem::take(&mut self.level().scanned);
        // However deep the tree is, its levels together stay near the bound.
        let most = if self.waiting < MOST_WAITING { PER_STEP } else { PER_FULL_STEP };
        let page = match files.list(&self.place, &self.path, &scanned, most) {
            Ok(page) => page,
            Err(failure) if is_gone(&failure) => ListPage::default(),
            // The records of its entries went before, and those of others may have.
            Err(Failure { code, message }) => return Err(Failure::new(code, format!("{}: {message}", self.path))),
        };
        let directories = page.entries.into_iter().filter(|entry| self.is_visited(entry)).map(|entry| entry.name);
        let found: Vec<Component> = directories.collect();
        self.waiting += found.iter().map(weight).sum::<usize>();
        let is_full = self.waiting >= MOST_WAITING;
        let level = self.level();
        level.known.extend(found);
        level.is_whole = page.next.is_empty();
        level.scanned = page.next;
        level.is_scanned = !level.is_whole && (level.known.is_empty() || !is_full);
        Ok(())
    }

    /// Whether an entry of the directory is one that is listed, too.
    fn is_visited(&self, entry: &ListedEntry) -> bool {
        entry.info.kind == NodeKind::Directory && self.path.components().len() + 1 < self.depth
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().expect("a walk ends with its last level")
    }
}

fn weight(name: &Component) -> usize {
    PER_NAME + name.as_bytes().len()
}

/// Whether a directory has gone, or given way to something else, since its entry was read.
fn is_gone(failure: &Failure) -> bool {
    matches!(failure.code, FailCode::NotFound | FailCode::NotDirectory)
}
