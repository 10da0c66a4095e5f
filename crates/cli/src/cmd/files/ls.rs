//! `ls`: the entries of directories on another host.

use std::fmt::Write as _;

use clap::Args;
use farhaul_session::{FileInfo, ListedEntry, Mtime, NodeKind, escape};
use farhaul_transfer::{Error, RemoteFiles, RemotePlace, TreeItem};

use super::{Visit, remote};
use crate::cmd::Context;
use crate::exit::Fault;
use crate::options::FilesOptions;
use crate::output::json::{EntryRecord, Record};
use crate::output::print;
use crate::values::{Location, location};

/// Deepest directories that -R lists.
const MOST_DEPTH: usize = 1024;
/// Text that is collected before it is printed.
const BLOCK: usize = 32 << 10;

/// List directories of another host
///
/// A place is host:path over SSH, or udt://host:port/path below the root of a running `farhaul serve`. Names are in the order of their
/// bytes, hidden ones among them, and printed with escapes. Times are in UTC.
///
///     farhaul ls far.example:                     the home directory there
///     farhaul ls -l udt://host:9000/data/
///     farhaul ls -R --json far.example:run42      one record per entry
#[derive(Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct LsArgs {
    /// Directories or files
    #[arg(required = true, value_name = "PLACE", value_parser = location())]
    pub(crate) places: Vec<Location>,
    /// Print mode, owner, group, size and time of each entry, and the target of a symbolic link
    ///
    /// Owners and groups are names of the host with the entries, or numbers without a name, or - if the server does not tell.
    #[arg(short, long)]
    long: bool,
    /// List directories below, too
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    pub(crate) options: FilesOptions,
}

pub(crate) fn run(args: &LsArgs, context: &Context) -> Result<(), Fault> {
    let places = remote(&args.places)?;
    let mut visit = Visit::begin("ls", &places, (&args.options, false), context);
    visit.set("recursive", args.recursive);
    let is_named = places.len() > 1 || args.recursive;
    let mut is_first = true;
    visit.each(&places, |visit, files, place| {
        let mut list = Listing { visit, files, place, args, text: String::new() };
        let listed = list.place(is_named, is_first);
        list.flush();
        is_first = false;
        listed
    })
}

/// The listing of one place.
struct Listing<'a, 'b> {
    visit: &'a mut Visit<'b>,
    files: &'a RemoteFiles,
    place: &'a RemotePlace,
    args: &'a LsArgs,
    /// Lines to be printed.
    text: String,
}

impl Listing<'_, '_> {
    fn place(&mut self, is_named: bool, is_first: bool) -> Result<(), Error> {
        let path = &self.place.path;
        let Err(error) = self.directory(path, is_named, is_first) else { return Ok(()) };
        // What is no directory may be a file.
        match self.files.stat(path) {
            Ok(info) if info.kind != NodeKind::Directory => {
                self.entry(path, path, &info);
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn directory(&mut self, path: &[u8], is_named: bool, is_first: bool) -> Result<(), Error> {
        let depth = if self.args.recursive { MOST_DEPTH } else { 1 };
        let (mut at, mut is_first, mut failed) = (path.to_vec(), is_first, Ok(()));
        for item in self.files.list_tree(path, depth) {
            match item? {
                TreeItem::Directory(below) => {
                    at = if below.is_root() { path.to_vec() } else { joined(path, &below.to_bytes()) };
                    if is_named {
                        let space = if std::mem::take(&mut is_first) { "" } else { "\n" };
                        self.line(&format!("{space}{}:", self_name(self, &at)));
                    }
                }
                TreeItem::Entry(ListedEntry { name, info }) => {
                    self.entry(&joined(&at, name.as_bytes()), name.as_bytes(), &info);
                }
                // The others are listed all the same.
                TreeItem::Failed(error) if failed.is_ok() => failed = Err(error),
                TreeItem::Failed(error) => {
                    self.flush();
                    self.visit.output.warn(&error.to_string());
                }
            }
        }
        failed
    }

    fn entry(&mut self, path: &[u8], name: &[u8], info: &FileInfo) {
        if self.visit.output.is_json() {
            return self.visit.output.record(&Record::Entry(EntryRecord::of(path, info)));
        }
        let line = match self.args.long {
            true => long(name, info),
            false => escape(name),
        };
        self.line(&line);
    }

    fn line(&mut self, line: &str) {
        if self.visit.output.is_json() {
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
        if self.text.len() >= BLOCK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            print(&self.text);
            self.text.clear();
        }
    }
}

/// The name of a directory above its entries.
fn self_name(list: &Listing<'_, '_>, path: &[u8]) -> String {
    list.place.host.shown(path)
}

/// A path with one more name.
fn joined(path: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if path.is_empty() || path.ends_with(b"/") { b"" } else { b"/" };
    [path, slash, name].concat()
}

/// An entry as `ls -l` prints it, with the time in UTC.
fn long(name: &[u8], info: &FileInfo) -> String {
    let (user, group) = owner(info);
    let (mode, time, name) = (mode(info), utc(info.mtime), escape(name));
    let mut line = format!("{mode} {user:<8} {group:<8} {:>14} {time} {name}", info.size);
    if let Some(target) = &info.target {
        write!(line, " -> {}", escape(target)).expect("writing to a String cannot fail");
    }
    line
}

/// User and group by their names, or by numbers without names. `-` if the server does not tell.
fn owner(info: &FileInfo) -> (String, String) {
    let shown = |name: &[u8], id: u32| if name.is_empty() { id.to_string() } else { escape(name) };
    match &info.owner {
        Some(owner) => (shown(&owner.user, owner.uid), shown(&owner.group, owner.gid)),
        None => ("-".to_owned(), "-".to_owned()),
    }
}

/// Kind and permissions in ten letters.
fn mode(info: &FileInfo) -> String {
    let kind = match info.kind {
        NodeKind::File => '-',
        NodeKind::Directory => 'd',
        NodeKind::Link => 'l',
        NodeKind::Other => '?',
    };
    let mut text = String::from(kind);
    for (shift, special, (without, with)) in [(6, 0o4000, ('S', 's')), (3, 0o2000, ('S', 's')), (0, 0o1000, ('T', 't'))]
    {
        let bits = info.mode >> shift;
        let is_special = info.mode & special != 0;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (is_special, bits & 1 != 0) {
            (false, false) => '-',
            (false, true) => 'x',
            (true, false) => without,
            (true, true) => with,
        });
    }
    text
}

/// A time in UTC, to the second.
fn utc(mtime: Mtime) -> String {
    const DAY: i64 = 86_400;
    let (days, second) = (mtime.seconds.div_euclid(DAY), mtime.seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
}

/// The date of a day since 1970-01-01, in the Gregorian calendar: years begin in March, so that the leap day is the last one.
const fn date(days: i64) -> (i64, i64, i64) {
    const ERA: i64 = 146_097;
    // Days since 0000-03-01.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (month_of_year, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + 400 * era + carry, month_of_year, of_year - (153 * month + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use farhaul_session::Owner;

    use super::*;

    #[test]
    fn times_are_dates_of_the_gregorian_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00"),
            (-1, "1969-12-31 23:59:59"),
            (951_827_696, "2000-02-29 12:34:56"),
            (4_107_542_400, "2100-03-01 00:00:00"),
            (1_795_794_605, "2026-11-27 15:50:05"),
            (-62_135_596_800, "0001-01-01 00:00:00"),
        ] {
            assert_eq!(utc(Mtime { seconds, nanos: 999 }), text, "{seconds}");
        }
        // A hostile server may say anything.
        utc(Mtime { seconds: i64::MAX, nanos: 0 });
        utc(Mtime { seconds: i64::MIN, nanos: 0 });
    }

    #[test]
    fn an_entry_is_one_line_that_controls_no_terminal() {
        let mtime = Mtime { seconds: 951_827_696, nanos: 0 };
        let target = Some(b"to\x1b[2J".to_vec());
        let link = FileInfo { kind: NodeKind::Link, size: 0, mode: 0o777, mtime, ctime: None, target, owner: None };
        let line = "lrwxrwxrwx -        -                     0 2000-02-29 12:34:56 a\\nb -> to\\x1b[2J";
        assert_eq!(long(b"a\nb", &link), line);
        let owner = Some(Owner { uid: 1, gid: 4711, user: b"me\x1b".to_vec(), group: Vec::new() });
        assert!(long(b"a", &FileInfo { owner, ..link.clone() }).starts_with("lrwxrwxrwx me\\x1b   4711     "));
        for (bits, text) in [(0o4755, "rwsr-xr-x"), (0o2640, "rw-r-S---"), (0o1777, "rwxrwxrwt"), (0o1000, "--------T")]
        {
            assert_eq!(mode(&FileInfo { kind: NodeKind::File, mode: bits, ..link.clone() }), format!("-{text}"));
        }
    }

    #[test]
    fn paths_have_one_slash_between_names() {
        assert_eq!(
            (joined(b"", b"a"), joined(b"d", b"a"), joined(b"/", b"a")),
            (b"a".to_vec(), b"d/a".to_vec(), b"/a".to_vec())
        );
    }
}
