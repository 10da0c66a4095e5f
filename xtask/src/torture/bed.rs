//! The bed of one row: a scratch folder, a tree to copy, processes, and the judgement of what is left.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};

use super::process::{Ended, Process, Running};
use crate::clock::{Stopwatch, pause};
use crate::suite::Extent;

/// Files of the tree: names and sizes. Small and large ones, several chunks, empty, in directories.
const TREE: &[(&str, usize)] =
    &[("a", 10), ("b", 3_000_000), ("d/c", 200_000), ("d/e", 0), ("d/deep/er/f", 70_000), ("z", 5_500_000)];

/// The longest time until a copy is in the middle of a file.
const BEGIN: Duration = Duration::from_secs(20);
/// Bytes of a journal before its first chunk, for names of one letter, and of a chunk (crates/disk/src/journal.rs).
const JOURNAL_HEADER: u64 = 39;
const JOURNAL_RECORD: u64 = 48;

/// A scratch folder and the program.
pub(super) struct Bed {
    root: PathBuf,
    program: PathBuf,
    extent: Extent,
}

impl Bed {
    pub(super) fn new(program: &Path, id: &str, extent: Extent) -> Result<Self> {
        let root = std::env::temp_dir().join(format!("farhaul-torture-{}-{id}", std::process::id()));
        fs::create_dir_all(&root)?;
        let bed = Self { root, program: program.to_owned(), extent };
        for (number, (name, len)) in (1u64..).zip(TREE) {
            let path = bed.path(&format!("root/t/{name}"));
            fs::create_dir_all(path.parent().context("it has a parent")?)?;
            fs::write(path, content(number, *len))?;
        }
        Ok(bed)
    }

    /// A measure of a row: one for the tests, and one for all faults.
    pub(super) fn by_extent<T>(&self, short: T, long: T) -> T {
        match self.extent {
            Extent::Short => short,
            Extent::Long => long,
        }
    }

    /// Cuts the large files of the tree to this size.
    pub(super) fn shorten(&self, size: u64) -> Result<()> {
        for name in ["b", "z"] {
            fs::File::options().write(true).open(self.path("root/t").join(name))?.set_len(size)?;
        }
        Ok(())
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.root.join(below)
    }

    /// The path as an argument.
    pub(super) fn at(&self, below: &str) -> String {
        self.path(below).to_string_lossy().into_owned()
    }

    /// An empty target, with an older file in it.
    pub(super) fn empty_target(&self) -> Result<()> {
        let _ = fs::remove_dir_all(self.path("to"));
        fs::create_dir_all(self.path("to/t"))?;
        Ok(fs::write(self.path("to/t/b"), OLD)?)
    }

    /// The program with these arguments, behind a wrapper.
    pub(super) fn command(&self, wrapper: &[&str], arguments: &[&str]) -> Command {
        let mut words = wrapper.iter().map(ToString::to_string).collect::<Vec<_>>();
        words.push(self.program.to_string_lossy().into_owned());
        words.extend(arguments.iter().map(ToString::to_string));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        // Rows share neither keys nor what is remembered of paths, with one another or with the user.
        for folder in ["XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME"] {
            command.env(folder, self.path("config"));
        }
        // The rows look at the first failure.
        command.env("FARHAUL_GIVE_UP", "0s");
        command
    }

    /// A server of the tree, or of the target. It waits 2 s for a peer that is silent, unless the options say otherwise.
    pub(super) fn server(&self, wrapper: &[&str], root: &str, options: &[&str]) -> Result<Process> {
        self.server_at(wrapper, "127.0.0.1:0", root, options)
    }

    /// The same at another address.
    pub(super) fn server_at(&self, wrapper: &[&str], at: &str, root: &str, options: &[&str]) -> Result<Process> {
        let root = self.at(root);
        let serve = ["serve", "--json", "--listen", at, "--root", &root];
        let short: &[&str] = if options.contains(&"--timeout") { &[] } else { &["--timeout", "2s"] };
        Process::begin(self.command(wrapper, &[&serve[..], short, options].concat()))
    }

    /// A relay to this address.
    pub(super) fn relay(&self, to: &str, path: &[&str]) -> Result<Process> {
        self.relay_at("127.0.0.1:0", to, path)
    }

    /// A relay at one address to another.
    pub(super) fn relay_at(&self, at: &str, to: &str, path: &[&str]) -> Result<Process> {
        let relay = ["relay", "--json", "--listen", at, "--to", to];
        Process::begin(self.command(&[], &[&relay[..], path].concat()))
    }

    /// Starts to pull the tree from this address.
    pub(super) fn pull(&self, wrapper: &[&str], address: &str, options: &[&str]) -> Result<Running> {
        let (url, to) = (format!("udt://{address}/t"), self.at("to/"));
        Running::begin(self.command(wrapper, &[&["copy", "-a", "--json"], options, &[&url, &to]].concat()))
    }

    /// Starts to pull the tree to another folder.
    pub(super) fn pull_to(&self, folder: &str, address: &str, options: &[&str]) -> Result<Running> {
        fs::create_dir_all(self.path(folder))?;
        let (url, to) = (format!("udt://{address}/t"), self.at(folder));
        Running::begin(self.command(&[], &[&["copy", "-a", "--json"], options, &[&url, &to]].concat()))
    }

    /// Starts to pull one file of the root.
    pub(super) fn pull_of(&self, name: &str, address: &str, options: &[&str]) -> Result<Running> {
        let (url, to) = (format!("udt://{address}/{name}"), self.at("to/"));
        Running::begin(self.command(&[], &[&["copy", "-a", "--json"], options, &[&url, &to]].concat()))
    }

    /// Lists what this address serves.
    pub(super) fn list(&self, address: &str, options: &[&str]) -> Result<Running> {
        let url = format!("udt://{address}/");
        Running::begin(self.command(&[], &[&["ls", "--json"], options, &[&url]].concat()))
    }

    /// Starts to push the tree to this address.
    pub(super) fn push(&self, wrapper: &[&str], address: &str, options: &[&str]) -> Result<Running> {
        let (url, from) = (format!("udt://{address}/"), self.at("root/t"));
        Running::begin(self.command(wrapper, &[&["copy", "-a", "--json"], options, &[&from, &url]].concat()))
    }

    /// Why this machine has no networks of its own for an emulation.
    pub(super) fn lacks_networks(&self) -> Option<String> {
        let run = self.command(&[], &["emulate", "--quiet", "--", "true"]).output();
        match run {
            Ok(output) if output.status.success() => None,
            Ok(output) => Some(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
            Err(error) => Some(error.to_string()),
        }
    }

    /// Starts to push the tree between two hosts of an emulated path.
    pub(super) fn push_over(&self, path: &[&str], serve: &[&str], options: &[&str]) -> Result<Running> {
        let program = self.program.to_string_lossy();
        let words = |all: &[&str]| all.iter().map(|word| format!(" '{word}'")).collect::<String>();
        let serve =
            format!("exec '{program}' serve --timeout 20s --listen :9000 --root '{}'{}", self.at("to"), words(serve));
        let copy = format!(
            "exec '{program}' copy -a --json{} '{}' udt://$FARHAUL_PEER:9000/",
            words(options),
            self.at("root/t")
        );
        let emulate = [&["emulate", "--quiet"], path, &["--serve", &serve, "--", "sh", "-c", &copy]].concat();
        Running::begin(self.command(&[], &emulate))
    }

    /// Waits until the copy has made the directory of the tree: both sides have met. A busy machine takes its time.
    pub(super) fn has_begun(&self) -> Result<()> {
        let began = Stopwatch::start();
        while !self.path("to/t").exists() {
            ensure!(began.elapsed() < BEGIN, "the copy does not begin");
            pause(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Waits until the journal of this file notes more than so many chunks: the copy is in the middle of it. A busy machine takes its
    /// time. Returns how many it notes.
    pub(super) fn is_in_the_middle_of(&self, name: &str, chunks: u64) -> Result<u64> {
        let (start, began) = (format!(".{name}."), Stopwatch::start());
        let noted = |path: PathBuf| {
            let file = path.file_name()?.to_string_lossy().into_owned();
            let is_its = file.starts_with(&start) && file.ends_with(".fhjournal");
            is_its.then(|| path.metadata().map_or(0, |file| file.len().saturating_sub(JOURNAL_HEADER) / JOURNAL_RECORD))
        };
        loop {
            let all = fs::read_dir(self.path("to/t")).into_iter().flatten().flatten();
            match all.filter_map(|entry| noted(entry.path())).max() {
                Some(noted) if noted > chunks => return Ok(noted),
                _ => ensure!(began.elapsed() < BEGIN, "no copy of {name} comes to its middle"),
            }
            pause(Duration::from_millis(5));
        }
    }

    /// Checks that the target is the whole tree and nothing else, with the times and modes of its files.
    pub(super) fn is_whole(&self) -> Result<()> {
        self.is_whole_at("to")
    }

    /// The same for the tree in this folder.
    pub(super) fn is_whole_at(&self, folder: &str) -> Result<()> {
        let (want, got) = (tree(&self.path("root/t"))?, tree(&self.path(folder).join("t"))?);
        for (path, content) in &want {
            ensure!(got.get(path) == Some(content), "{path} is not as at the source");
        }
        if let Some(path) = got.keys().find(|path| !want.contains_key(*path)) {
            bail!("{path} is left over");
        }
        let (want, got) = (stamps(&self.path("root/t"))?, stamps(&self.path(folder).join("t"))?);
        if let Some((path, _)) = want.iter().find(|(path, stamp)| got.get(*path) != Some(*stamp)) {
            bail!("{path} has another mode or time than at the source");
        }
        Ok(())
    }

    /// Checks that everything under a final name is the source's, or the older file.
    pub(super) fn has_no_wrong_byte(&self) -> Result<()> {
        let (want, got) = (tree(&self.path("root/t"))?, tree(&self.path("to/t")).unwrap_or_default());
        for (path, content) in got {
            let is_temporary = path.ends_with(".fhpart") || path.ends_with(".fhjournal");
            let is_right = want.get(&path) == Some(&content) || path == "b" && content == OLD;
            ensure!(is_temporary || is_right, "{path} has wrong bytes under its final name");
        }
        Ok(())
    }

    /// Checks that a copy that failed with one of these codes left nothing wrong, and that the same copy succeeds then.
    pub(super) fn fails_cleanly(
        &self,
        run: &Ended,
        codes: &[i32],
        again: impl FnOnce() -> Result<Running>,
    ) -> Result<()> {
        ensure!(
            run.code.is_none_or(|code| code == 0 || codes.contains(&code)),
            "exit code {:?}: {}",
            run.code,
            run.stderr
        );
        let is_told = |code| run.end["event"] == "end" && run.end["exit_code"] == code;
        ensure!(run.code.is_none_or(is_told), "exit code {:?}, and the last record is {}", run.code, run.end);
        self.has_no_wrong_byte()?;
        let again = again()?.end()?;
        ensure!(again.code == Some(0), "the same copy again: exit code {:?}: {}", again.code, again.stderr);
        self.is_whole()
    }
}

/// What stood at the target before.
pub(super) const OLD: &[u8] = b"an older file";

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Bytes that no chunk has twice.
fn content(number: u64, len: usize) -> Vec<u8> {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// The files below a folder, by their names from there, escaped.
fn files(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut all = BTreeMap::new();
    let mut rest = vec![root.to_owned()];
    while let Some(folder) = rest.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() {
                rest.push(path);
            } else {
                let name = path.strip_prefix(root)?.as_os_str().as_encoded_bytes().escape_ascii().to_string();
                all.insert(name, path);
            }
        }
    }
    Ok(all)
}

/// The same with their content.
pub(super) fn tree(root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    files(root)?.into_iter().map(|(name, path)| Ok((name, fs::read(path)?))).collect()
}

/// The same with their modes and times.
fn stamps(root: &Path) -> Result<BTreeMap<String, (u32, SystemTime)>> {
    let stamp = |path: PathBuf| path.metadata().and_then(|metadata| Ok((metadata.mode(), metadata.modified()?)));
    files(root)?.into_iter().map(|(name, path)| Ok((name, stamp(path)?))).collect()
}
