//! The entries of a foreign disk, in memory, and the requests of the kernel.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, LockOwner,
    OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use unicode_normalization::UnicodeNormalization;

use super::Habits;

/// The kernel keeps no answer.
const FRESH: Duration = Duration::ZERO;
const BLOCK: u32 = 4096;
const GIGABYTE: u64 = 1 << 30;

pub(super) struct Memory {
    habits: Habits,
    state: Mutex<DiskState>,
}

#[derive(Default)]
struct DiskState {
    nodes: BTreeMap<u64, Node>,
    /// By directory and by what the file system looks at in a name: the stored spelling, and the node.
    names: BTreeMap<(u64, Vec<u8>), (OsString, u64)>,
    /// Numbers of spellings: the node of each, and the number of each spelling.
    aliases: BTreeMap<u64, u64>,
    spellings: BTreeMap<(u64, OsString), u64>,
    last: u64,
    made: u64,
}

struct Node {
    attr: FileAttr,
    /// The content of a file, the target of a link.
    content: Vec<u8>,
    attributes: BTreeMap<OsString, Vec<u8>>,
}

impl Memory {
    pub(super) fn new(habits: Habits) -> Self {
        let mut state = DiskState { last: 1, ..DiskState::default() };
        state.nodes.insert(1, Node::new(1, FileType::Directory, 0o755, (0, 0)));
        Self { habits, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the file system looks at in a name.
    fn key(&self, name: &OsStr) -> Vec<u8> {
        let Ok(text) = str::from_utf8(name.as_bytes()) else { return name.as_bytes().to_vec() };
        let text: String = if self.habits.decomposes { text.nfd().collect() } else { text.to_owned() };
        if self.habits.ignores_case { text.to_lowercase().into_bytes() } else { text.into_bytes() }
    }

    /// A name as it is stored.
    fn stored(&self, name: &OsStr) -> OsString {
        match name.to_str() {
            Some(text) if self.habits.decomposes => text.nfd().collect::<String>().into(),
            _ => name.to_owned(),
        }
    }

    fn check_name(&self, name: &OsStr) -> Result<(), Errno> {
        let bytes = name.as_bytes();
        let is_refused = bytes.iter().any(|byte| b":?".contains(byte)) || bytes.ends_with(b".");
        if self.habits.refuses_names && is_refused { Err(Errno::EINVAL) } else { Ok(()) }
    }

    fn rounded(&self, time: SystemTime) -> SystemTime {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let kept = since - since % self.habits.tick.as_nanos().max(1);
        UNIX_EPOCH + Duration::new((kept / 1_000_000_000) as u64, (kept % 1_000_000_000) as u32)
    }

    /// The attributes of the entry of this spelling, with its number.
    fn found(&self, state: &mut DiskState, parent: u64, name: &OsStr) -> Result<FileAttr, Errno> {
        let parent = state.real(parent);
        let node = state.names.get(&(parent, self.key(name))).ok_or(Errno::ENOENT)?.1;
        let mut attr = state.nodes[&node].attr;
        if self.habits.numbers_spellings {
            let DiskState { spellings, last, .. } = &mut *state;
            let number = *spellings.entry((parent, name.to_owned())).or_insert_with(|| {
                *last += 1;
                *last
            });
            state.aliases.insert(number, node);
            attr.ino = INodeNo(number);
        }
        Ok(attr)
    }

    fn make(
        &self,
        (parent, name): (INodeNo, &OsStr),
        kind: FileType,
        mode: u32,
        request: &Request,
    ) -> Result<FileAttr, Errno> {
        self.check_name(name)?;
        let mut state = self.state();
        let directory = state.real(parent.0);
        let key = (directory, self.key(name));
        if state.names.contains_key(&key) {
            return Err(Errno::EEXIST);
        }
        if state.made >= self.habits.inodes {
            return Err(Errno::ENOSPC);
        }
        state.made += 1;
        state.last += 1;
        let number = state.last;
        state.nodes.insert(number, Node::new(number, kind, mode, (request.uid(), request.gid())));
        state.names.insert(key, (self.stored(name), number));
        self.found(&mut state, directory, name)
    }

    fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> Result<(), Errno> {
        let mut state = self.state();
        let parent = state.real(parent);
        let key = (parent, self.key(name));
        let node = state.names.get(&key).ok_or(Errno::ENOENT)?.1;
        if (state.nodes[&node].attr.kind == FileType::Directory) != is_directory {
            return Err(if is_directory { Errno::ENOTDIR } else { Errno::EISDIR });
        }
        if state.names.keys().any(|(directory, _)| *directory == node) {
            return Err(Errno::ENOTEMPTY);
        }
        state.names.remove(&key);
        state.spellings.retain(|(directory, spelling), _| *directory != parent || self.key(spelling) != key.1);
        state.nodes.get_mut(&node).ok_or(Errno::EIO)?.attr.nlink -= 1;
        state.made -= 1;
        Ok(())
    }

    fn renamed(&self, from: (u64, &OsStr), to: (u64, &OsStr), flags: RenameFlags) -> Result<(), Errno> {
        self.check_name(to.1)?;
        if !flags.is_empty() && !self.habits.rename_flags {
            return Err(Errno::EINVAL);
        }
        let mut state = self.state();
        let (from, to) = ((state.real(from.0), from.1), (state.real(to.0), to.1));
        let (from_key, to_key) = ((from.0, self.key(from.1)), (to.0, self.key(to.1)));
        let moved = state.names.get(&from_key).cloned().ok_or(Errno::ENOENT)?;
        let there = state.names.get(&to_key).cloned().filter(|_| from_key != to_key);
        let spelling = there.as_ref().map_or_else(|| self.stored(to.1), |(spelling, _)| spelling.clone());
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            let there = there.ok_or(Errno::ENOENT)?;
            state.names.insert(from_key, (moved.0, there.1));
        } else if let Some((_, node)) = there {
            if flags.contains(RenameFlags::RENAME_NOREPLACE) {
                return Err(Errno::EEXIST);
            }
            state.nodes.get_mut(&node).ok_or(Errno::EIO)?.attr.nlink -= 1;
            state.made -= 1;
            state.names.remove(&from_key);
        } else {
            state.names.remove(&from_key);
        }
        state.names.insert(to_key, (spelling, moved.1));
        // The kernel moves its entries along.
        let numbers = [from, to].map(|(parent, name)| state.spellings.remove(&(parent, name.to_owned())));
        let [of_from, of_to] = numbers;
        state.spellings.extend(of_from.map(|number| ((to.0, to.1.to_owned()), number)));
        if flags.contains(RenameFlags::RENAME_EXCHANGE) {
            state.spellings.extend(of_to.map(|number| ((from.0, from.1.to_owned()), number)));
        }
        Ok(())
    }
}

impl DiskState {
    /// The node of a number.
    fn real(&self, number: u64) -> u64 {
        self.aliases.get(&number).copied().unwrap_or(number)
    }

    fn node(&mut self, number: INodeNo) -> Result<&mut Node, Errno> {
        let node = self.real(number.0);
        self.nodes.get_mut(&node).ok_or(Errno::ENOENT)
    }

    /// The attributes under the number by which they were asked for.
    fn attr(&mut self, number: INodeNo) -> Result<FileAttr, Errno> {
        Ok(FileAttr { ino: number, ..self.node(number)?.attr })
    }
}

impl Node {
    fn new(number: u64, kind: FileType, mode: u32, (uid, gid): (u32, u32)) -> Self {
        let (size, blocks, rdev, flags, time) = (0, 0, 0, 0, UNIX_EPOCH);
        let (ino, perm, nlink) = (INodeNo(number), (mode & 0o7777) as u16, 1);
        let (atime, mtime, ctime, crtime) = (time, time, time, time);
        let attr = FileAttr {
            ino,
            size,
            blocks,
            atime,
            mtime,
            ctime,
            crtime,
            kind,
            perm,
            nlink,
            uid,
            gid,
            rdev,
            blksize: BLOCK,
            flags,
        };
        Self { attr, content: Vec::new(), attributes: BTreeMap::new() }
    }

    fn resize(&mut self, len: usize) {
        self.content.resize(len, 0);
        self.attr.size = len as u64;
        self.attr.blocks = self.attr.size.div_ceil(512);
    }
}

/// Answers with an entry, or an error.
fn enter(reply: ReplyEntry, made: Result<FileAttr, Errno>) {
    match made {
        Ok(attr) => reply.entry(&FRESH, &attr, Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn end(reply: ReplyEmpty, done: Result<(), Errno>) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

/// Answers a request for bytes that may ask for their number alone.
fn give(reply: ReplyXattr, size: u32, bytes: Result<&[u8], Errno>) {
    match bytes {
        Ok(bytes) if size == 0 => reply.size(bytes.len() as u32),
        Ok(bytes) if bytes.len() > size as usize => reply.error(Errno::ERANGE),
        Ok(bytes) => reply.data(bytes),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Memory {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        enter(reply, self.found(&mut self.state(), parent.0, name));
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.state().attr(ino) {
            Ok(attr) => reply.attr(&FRESH, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        if !self.habits.modes && (mode.is_some() || uid.is_some() || gid.is_some()) {
            return reply.error(Errno::EPERM);
        }
        let mut state = self.state();
        let Ok(node) = state.node(ino) else { return reply.error(Errno::ENOENT) };
        node.attr.perm = mode.map_or(node.attr.perm, |mode| (mode & 0o7777) as u16);
        (node.attr.uid, node.attr.gid) = (uid.unwrap_or(node.attr.uid), gid.unwrap_or(node.attr.gid));
        if let Some(size) = size {
            node.resize(size as usize);
        }
        node.attr.mtime = match mtime {
            Some(TimeOrNow::SpecificTime(time)) => self.rounded(time),
            // Its clock stands still.
            Some(TimeOrNow::Now) => UNIX_EPOCH,
            None => node.attr.mtime,
        };
        reply.attr(&FRESH, &FileAttr { ino, ..node.attr });
    }

    fn readlink(&self, _: &Request, ino: INodeNo, reply: ReplyData) {
        match self.state().node(ino) {
            Ok(node) => reply.data(&node.content),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(&self, request: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        enter(reply, self.make((parent, name), FileType::Directory, mode & !umask, request));
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        end(reply, self.remove(parent.0, name, false));
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        end(reply, self.remove(parent.0, name, true));
    }

    fn symlink(&self, request: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        if !self.habits.symlinks {
            return reply.error(Errno::EPERM);
        }
        let made = self.make((parent, name), FileType::Symlink, 0o777, request).and_then(|attr| {
            let mut state = self.state();
            let node = state.node(attr.ino)?;
            node.content = target.as_os_str().as_bytes().to_vec();
            node.attr.size = node.content.len() as u64;
            state.attr(attr.ino)
        });
        enter(reply, made);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        end(reply, self.renamed((parent.0, name), (newparent.0, newname), flags));
    }

    fn link(&self, _: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        if !self.habits.hard_links {
            return reply.error(Errno::EPERM);
        }
        let mut state = self.state();
        let (node, parent) = (state.real(ino.0), state.real(newparent.0));
        let key = (parent, self.key(newname));
        if state.names.contains_key(&key) {
            return reply.error(Errno::EEXIST);
        }
        state.names.insert(key, (self.stored(newname), node));
        state.made += 1;
        if let Ok(node) = state.node(ino) {
            node.attr.nlink += 1;
        }
        enter(reply, self.found(&mut state, parent, newname));
    }

    fn read(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().node(ino) {
            Ok(Node { content, .. }) => {
                let start = content.len().min(offset as usize);
                reply.data(&content[start..content.len().min(start + size as usize)]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        ino: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.state().node(ino) {
            Ok(node) => {
                let start = offset as usize;
                node.resize(node.content.len().max(start + data.len()));
                node.content[start..start + data.len()].copy_from_slice(data);
                reply.written(data.len() as u32);
            }
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(&self, _: &Request, ino: INodeNo, _: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let mut state = self.state();
        let directory = state.real(ino.0);
        let names: Vec<OsString> = state
            .names
            .range((directory, Vec::new())..(directory + 1, Vec::new()))
            .map(|(_, (spelling, _))| spelling.clone())
            .collect();
        for (name, next) in names.iter().zip(1..).skip(offset as usize) {
            let Ok(attr) = self.found(&mut state, directory, name) else { continue };
            if reply.add(attr.ino, next, attr.kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let (blocks, inodes) = (GIGABYTE / u64::from(BLOCK), self.habits.inodes);
        let left = inodes.saturating_sub(self.state().made);
        reply.statfs(blocks, blocks, blocks, inodes, left, BLOCK, 255, BLOCK);
    }

    fn setxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, value: &[u8], _: i32, _: u32, reply: ReplyEmpty) {
        let Some((most, error)) = self.habits.attributes else { return reply.error(Errno::EOPNOTSUPP) };
        if value.len() > most {
            return reply.error(Errno::from_i32(error));
        }
        let set = |node: &mut Node| drop(node.attributes.insert(name.to_owned(), value.to_owned()));
        end(reply, self.state().node(ino).map(set));
    }

    fn getxattr(&self, _: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        if self.habits.attributes.is_none() {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let mut state = self.state();
        let value = state.node(ino).and_then(|node| node.attributes.get(name).ok_or(Errno::ENODATA));
        give(reply, size, value.map(Vec::as_slice));
    }

    fn listxattr(&self, _: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        if self.habits.attributes.is_none() {
            return reply.error(Errno::EOPNOTSUPP);
        }
        let list = |node: &mut Node| {
            node.attributes.keys().flat_map(|name| [name.clone().into_vec(), vec![0]].concat()).collect::<Vec<u8>>()
        };
        let list = self.state().node(ino).map(list);
        give(reply, size, list.as_deref().map_err(|error| *error));
    }

    fn removexattr(&self, _: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let mut state = self.state();
        let removed = state.node(ino).and_then(|node| node.attributes.remove(name).ok_or(Errno::ENODATA));
        end(reply, removed.map(drop));
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        match self.make((parent, name), FileType::RegularFile, mode & !umask, request) {
            Ok(attr) => reply.created(&FRESH, &attr, Generation(0), FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }
}
