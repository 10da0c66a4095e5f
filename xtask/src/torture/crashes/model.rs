//! Files and names after a power loss: what was synced stays, and of the rest any part.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};

use super::record::{Call, What};

/// A change of a file or a name, which a crash keeps or loses whole.
#[derive(Debug)]
struct Change {
    begin: f64,
    end: f64,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Write {
        file: usize,
        offset: usize,
        data: Vec<u8>,
    },
    Truncate {
        file: usize,
        len: usize,
    },
    /// The names that appear, and those that go.
    Names {
        appear: Vec<(String, usize)>,
        go: Vec<String>,
    },
    Directory(String),
}

/// A call after which earlier changes stay.
#[derive(Debug)]
struct Sync {
    begin: f64,
    end: f64,
    /// `None` for everything.
    target: Option<Target>,
}

#[derive(Debug, PartialEq, Eq)]
enum Target {
    File(usize),
    /// The names in a directory.
    Directory(String),
}

/// The content of a write that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The file is as if it had never been.
    Whole,
    /// Its place has zeros, as on file systems that note the length first.
    Zeroed,
}

/// A recorded run.
#[derive(Debug, Default)]
pub(super) struct Model {
    changes: Vec<Change>,
    syncs: Vec<Sync>,
    /// The first content of each file.
    files: Vec<Vec<u8>>,
    before: BTreeMap<String, usize>,
    directories: BTreeSet<String>,
}

/// What a crash left.
#[derive(Debug)]
pub(super) struct Left<'a> {
    model: &'a Model,
    names: BTreeMap<String, usize>,
    pub(super) directories: BTreeSet<String>,
    /// The changes that count.
    kept: Vec<bool>,
    instant: f64,
    lost: Lost,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl Model {
    /// A run from these files and directories on.
    pub(super) fn new(
        before: BTreeMap<String, Vec<u8>>,
        directories: BTreeSet<String>,
        calls: Vec<Call>,
    ) -> Result<Self> {
        let mut model = Self { directories, ..Self::default() };
        for (path, content) in before {
            model.before.insert(path, model.files.len());
            model.files.push(content);
        }
        let mut live = model.before.clone();
        let mut lens: Vec<usize> = model.files.iter().map(Vec::len).collect();
        for Call { begin, end, what } in calls {
            let file = |live: &BTreeMap<String, usize>, path: &str| {
                live.get(path).copied().with_context(|| format!("{path} is no file of the model"))
            };
            let kind = match what {
                // The program opens to create, and the file may be there.
                What::Create(path) if live.contains_key(&path) => continue,
                What::Create(path) => {
                    model.files.push(Vec::new());
                    lens.push(0);
                    live.insert(path.clone(), model.files.len() - 1);
                    Kind::Names { appear: vec![(path, model.files.len() - 1)], go: Vec::new() }
                }
                What::Write(path, offset, data) => {
                    let file = file(&live, &path)?;
                    let offset = offset.map_or(Ok(lens[file]), usize::try_from)?;
                    lens[file] = lens[file].max(offset + data.len());
                    Kind::Write { file, offset, data }
                }
                What::Truncate(path, len) => {
                    let (file, len) = (file(&live, &path)?, usize::try_from(len)?);
                    lens[file] = len;
                    Kind::Truncate { file, len }
                }
                What::Rename(from, to) => {
                    let file = file(&live, &from)?;
                    live.remove(&from);
                    live.insert(to.clone(), file);
                    Kind::Names { appear: vec![(to, file)], go: vec![from] }
                }
                What::Exchange(one, other) => {
                    let (of_one, of_other) = (file(&live, &one)?, file(&live, &other)?);
                    live.insert(one.clone(), of_other);
                    live.insert(other.clone(), of_one);
                    Kind::Names { appear: vec![(one, of_other), (other, of_one)], go: Vec::new() }
                }
                What::Unlink(path) => {
                    live.remove(&path);
                    Kind::Names { appear: Vec::new(), go: vec![path] }
                }
                What::MakeDirectory(path) => Kind::Directory(path),
                What::Sync(path) => {
                    let target = live.get(&path).map_or(Target::Directory(path), |file| Target::File(*file));
                    model.syncs.push(Sync { begin, end, target: Some(target) });
                    continue;
                }
                What::SyncAll => {
                    model.syncs.push(Sync { begin, end, target: None });
                    continue;
                }
            };
            model.changes.push(Change { begin, end, kind });
        }
        Ok(model)
    }

    /// The instants before which a crash leaves another state: each begin of a call, each end of a sync, and the end of all.
    pub(super) fn instants(&self) -> Vec<f64> {
        let begins = self.changes.iter().map(|change| change.begin);
        let mut all: Vec<f64> = begins.chain(self.syncs.iter().map(|sync| sync.end)).collect();
        all.push(f64::INFINITY);
        all.sort_by(f64::total_cmp);
        all
    }

    /// Whether a change was synced before this instant.
    fn is_durable(&self, change: &Change, instant: f64) -> bool {
        self.syncs.iter().filter(|sync| sync.begin >= change.end && sync.end <= instant).any(|sync| {
            match &sync.target {
                None => true,
                Some(Target::File(synced)) => match &change.kind {
                    Kind::Write { file, .. } | Kind::Truncate { file, .. } => file == synced,
                    _ => false,
                },
                Some(Target::Directory(synced)) => match &change.kind {
                    Kind::Names { appear, go } => {
                        appear.iter().map(|(path, _)| path).chain(go).all(|path| parent(path) == synced)
                    }
                    Kind::Directory(path) => parent(path) == synced,
                    _ => false,
                },
            }
        })
    }

    /// The state after a crash at this instant. Of the changes that were not synced, those stay that `stays` says.
    pub(super) fn after(&self, instant: f64, lost: Lost, mut stays: impl FnMut() -> bool) -> Left<'_> {
        let (mut names, mut directories) = (self.before.clone(), self.directories.clone());
        let mut kept = vec![false; self.changes.len()];
        for (change, kept) in self.changes.iter().zip(&mut kept).filter(|(change, _)| change.begin < instant) {
            *kept = self.is_durable(change, instant) || stays();
            match &change.kind {
                Kind::Names { appear, go } if *kept => {
                    names.retain(|path, _| !go.contains(path));
                    names.extend(appear.iter().cloned());
                }
                Kind::Directory(path) if *kept => drop(directories.insert(path.clone())),
                _ => {}
            }
        }
        // Without its directory, nothing has a name.
        let is_reachable = |path: &str, all: &BTreeSet<String>| {
            self.directories.iter().any(|root| {
                path.strip_prefix(root.as_str()).is_some_and(|below| {
                    below.match_indices('/').skip(1).all(|(at, _)| all.contains(&path[..root.len() + at]))
                })
            })
        };
        let all = directories.clone();
        directories.retain(|path| is_reachable(path, &all));
        names.retain(|path, _| is_reachable(path, &all));
        Left { model: self, names, directories, kept, instant, lost }
    }
}

impl Left<'_> {
    /// The files that have names.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(String::as_str)
    }

    /// The content of the file with this name.
    pub(super) fn content(&self, name: &str) -> Option<Vec<u8>> {
        let of = *self.names.get(name)?;
        let mut content = self.model.files[of].clone();
        let changes = self.model.changes.iter().zip(&self.kept);
        for (change, kept) in changes.filter(|(change, _)| change.begin < self.instant) {
            match &change.kind {
                Kind::Write { file, offset, data } if *file == of && (*kept || self.lost == Lost::Zeroed) => {
                    let end = offset + data.len();
                    content.resize(content.len().max(end), 0);
                    match kept {
                        true => content[*offset..end].copy_from_slice(data),
                        false => content[*offset..end].fill(0),
                    }
                }
                Kind::Truncate { file, len } if *file == of && *kept => content.resize(*len, 0),
                _ => {}
            }
        }
        Some(content)
    }
}
