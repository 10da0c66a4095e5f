//! The meaning of a list of places: the direction of the data.

use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use farhaul_disk::{DiskSource, Selection, Wording};
use farhaul_session::{Component, NameList, RelPath, own_name};

use super::requested_paths::{RequestedPaths, top_of};
use crate::error::{Code, Error};
use crate::location::{HostPort, Location, ServerPlace, SshPlace};
use crate::remote::Other;
use crate::remote::messages::Task;
use crate::remote::scope::{PathText, ScopeText};
use crate::session::file::too_many_for_one;
use crate::text::reason;

/// Most bytes and files of small sources: with all that is said about them, they fit in one opening.
const SMALL: u64 = 100 << 10;
const FEW: usize = 32;

#[cfg(test)]
mod tests;

/// A possible copy.
#[derive(Debug)]
pub(super) enum Plan {
    Push(PushPlan),
    Pull(PullPlan),
    /// From stdin.
    Feed(FeedPlan),
    /// To stdout.
    Fetch(FetchPlan),
    /// Between two other hosts.
    Between(BetweenPlan),
}

/// The other end of a copy.
#[derive(Clone, Debug)]
pub(super) enum RemoteEnd {
    /// A running `serve`.
    Server(HostPort),
    /// A program that ssh starts, and its part.
    Ssh { host: String, task: Task },
    /// Another remote program, which ssh started elsewhere.
    Other(Other),
}

#[derive(Debug)]
pub(super) struct PushPlan {
    pub(super) sources: Vec<PathBuf>,
    /// Whether sources may be patterns. A shell has expanded those of this machine's user.
    pub(super) wording: Wording,
    pub(super) to: RemoteEnd,
    /// The target below the root of a server.
    pub(super) target: RelPath,
    /// Whether the target must be a directory: for several sources, for a source without a name (`.`, `..`), and for listed names.
    pub(super) is_directory: bool,
    /// The names that the copy of the content of the only source is restricted to.
    pub(super) names: Option<Arc<NameList>>,
    /// The target as it was typed.
    pub(super) shown: String,
}

#[derive(Debug)]
pub(super) struct PullPlan {
    pub(super) from: RemoteEnd,
    pub(super) requested: RequestedPaths,
    pub(super) to: PathBuf,
}

#[derive(Debug)]
pub(super) struct FeedPlan {
    pub(super) to: RemoteEnd,
    /// An existing directory, and the name of the new file in it.
    pub(super) directory: RelPath,
    pub(super) name: RelPath,
    /// The target as it was typed.
    pub(super) shown: String,
}

#[derive(Debug)]
pub(super) struct FetchPlan {
    pub(super) from: RemoteEnd,
    pub(super) requested: RequestedPaths,
}

#[derive(Debug)]
pub(super) struct BetweenPlan {
    pub(super) from: String,
    pub(super) to: SshPlace,
    /// Whether the target must be a directory.
    pub(super) is_directory: bool,
    /// What the source sends.
    pub(super) scope: ScopeText,
    /// The same by the names that arrive, which are all that the target takes.
    pub(super) arriving: ScopeText,
    /// Whether the entries at the root are all of a directory, whose content is copied.
    pub(super) is_whole: bool,
}

impl Plan {
    /// The meaning of `places`. `recursive` is for directories.
    pub(super) fn of(places: &[Location], recursive: bool) -> Result<Self, Error> {
        let (to, from) = places.split_last().expect("the command line takes no less than one place");
        if from.is_empty() {
            return Err(Error::usage("missing: <DST>, the target; `farhaul copy --help` explains the options"));
        }
        match (from, to) {
            ([Location::Standard], to) => return FeedPlan::to(to).map(Self::Feed),
            ([Location::Remote(place)], Location::Standard) if !place.is_directory => {
                let from = RemoteEnd::Server(place.server.clone());
                return Ok(Self::Fetch(FetchPlan { from, requested: RequestedPaths::of_server(&[place]) }));
            }
            ([Location::Ssh(place)], Location::Standard) if !place.is_directory() => {
                let from = RemoteEnd::sending(&place.host, &[place]);
                return Ok(Self::Fetch(FetchPlan { from, requested: RequestedPaths::over_ssh(&[place]) }));
            }
            _ if places.contains(&Location::Standard) => return Err(Error::usage(ONE_FILE)),
            _ => {}
        }
        let local: Vec<PathBuf> = from.iter().filter_map(local).collect();
        let remote: Vec<&ServerPlace> = from.iter().filter_map(remote).collect();
        let ssh: Vec<&SshPlace> = from.iter().filter_map(ssh).collect();
        match (to, local.len() == from.len(), remote.len() == from.len(), ssh.len() == from.len()) {
            (Location::Remote(to), true, ..) => Ok(Self::Push(PushPlan::to_server(local, to))),
            (Location::Ssh(to), true, ..) => Ok(Self::Push(PushPlan::over_ssh(local, to, recursive))),
            (Location::Local(to), _, true, _) => PullPlan::from_server(&remote, to).map(Self::Pull),
            (Location::Local(to), _, _, true) => PullPlan::over_ssh(&ssh, to).map(Self::Pull),
            (Location::Ssh(to), _, _, true) => BetweenPlan::of(&ssh, to, recursive).map(Self::Between),
            (Location::Local(_), true, ..) => Err(Error::usage(
                "both ends are on this machine: use `cp`, or write the remote end as host:path or udt://host:port/path",
            )),
            _ => Err(Error::usage(
                "the sources are on this machine, or all on one other; a copy between two servers, or with local and \
                 remote sources, does not exist",
            )),
        }
    }
}

impl Plan {
    /// Whether the entries at the root are all of a directory, whose content is copied.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            Self::Push(plan) => plan.is_whole(),
            Self::Pull(plan) => plan.is_whole(),
            Self::Between(plan) => plan.is_whole,
            Self::Feed(_) | Self::Fetch(_) => false,
        }
    }

    /// Whether everything arrives in a directory of the target's name, whatever is there.
    pub(super) fn is_into_directory(&self) -> bool {
        match self {
            Self::Push(plan) => plan.is_directory || plan.sources.len() > 1,
            Self::Pull(plan) => plan.is_directory(),
            Self::Between(plan) => plan.is_directory,
            Self::Feed(_) | Self::Fetch(_) => false,
        }
    }

    /// Restricts it to these names in its only source.
    ///
    /// # Errors
    /// It has several sources, or none that is a directory.
    pub(super) fn restrict(&mut self, names: Arc<NameList>) -> Result<(), Error> {
        match self {
            Self::Push(plan) if plan.sources.len() == 1 => plan.restrict(names),
            Self::Pull(plan) if plan.requested.paths.len() == 1 => plan.requested.restrict(names),
            Self::Between(plan) if plan.scope.paths.len() == 1 => plan.restrict(&names)?,
            Self::Push(_) | Self::Pull(_) | Self::Between(_) => {
                return Err(Error::usage("a list of names needs one source, the directory that the names are in"));
            }
            Self::Feed(_) | Self::Fetch(_) => {
                return Err(Error::usage("a list of names needs directories as source and target, not -"));
            }
        }
        Ok(())
    }

    /// Whether ssh reaches one of the ends.
    pub(super) const fn uses_ssh(&self) -> bool {
        match self {
            Self::Push(PushPlan { to: far, .. })
            | Self::Feed(FeedPlan { to: far, .. })
            | Self::Pull(PullPlan { from: far, .. })
            | Self::Fetch(FetchPlan { from: far, .. }) => matches!(far, RemoteEnd::Ssh { .. }),
            Self::Between(_) => true,
        }
    }
}

const ONE_FILE: &str =
    "- is stdin or stdout, as one end of a copy of one file: `copy - udt://host:port/NAME` or `copy host:NAME -`";

impl RemoteEnd {
    /// A remote program that sends these places.
    fn sending(host: &str, places: &[&SshPlace]) -> Self {
        Self::Ssh { host: host.to_owned(), task: Task::Send { paths: paths_of(places) } }
    }

    /// A remote program that stores at `target` what is in this scope, and nothing else.
    fn receiving(host: &str, target: &[u8], is_directory: bool, scope: ScopeText) -> Self {
        let task = Task::Receive { target: PathText::new(target), is_directory, scope };
        Self::Ssh { host: host.to_owned(), task }
    }
}

impl fmt::Display for RemoteEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(server) => server.fmt(f),
            Self::Ssh { host, .. } => f.write_str(host),
            Self::Other(other) => f.write_str(&other.name),
        }
    }
}

impl FeedPlan {
    fn to(to: &Location) -> Result<Self, Error> {
        let nameless =
            || Error::usage(format!("stdin has no name: write the name of the new file, {}NAME", start_of_names(to)));
        let shown = to.to_string();
        match to {
            Location::Remote(to) => {
                let name = to.path.split_last().filter(|_| !to.is_directory).and_then(|(name, parents)| {
                    let directory = parents.iter().try_fold(RelPath::root(), |path, name| path.join(name.clone()));
                    directory.and_then(|directory| Ok((directory, RelPath::root().join(name.clone())?))).ok()
                });
                let (directory, name) = name.ok_or_else(nameless)?;
                Ok(Self { directory, name, to: RemoteEnd::Server(to.server.clone()), shown })
            }
            Location::Ssh(to) => {
                let (directory, name) = to.split_name().ok_or_else(nameless)?;
                let to = RemoteEnd::receiving(&to.host, &directory, true, ScopeText::named([&name], false));
                Ok(Self { directory: RelPath::root(), name, to, shown })
            }
            _ => Err(Error::usage(ONE_FILE)),
        }
    }
}

/// The text of a target up to the name of a new file in it.
fn start_of_names(to: &Location) -> String {
    match to {
        Location::Ssh(place) if place.path == b"." => format!("{}:", place.host),
        to => {
            let text = to.to_string();
            let end = if text.ends_with('/') { "" } else { "/" };
            text + end
        }
    }
}

/// Whether these sources need a directory as their target.
fn need_directory(sources: &[PathBuf]) -> bool {
    sources.len() > 1 || sources.iter().any(|path| own_name(path.as_os_str().as_bytes()).is_none())
}

/// The name that a source of this machine arrives under. The root for one without a name, whose content arrives.
fn arrives_as(source: &Path) -> RelPath {
    let name = own_name(source.as_os_str().as_bytes()).and_then(|name| Component::new(name).ok());
    name.and_then(|name| RelPath::root().join(name).ok()).unwrap_or_else(RelPath::root)
}

impl PushPlan {
    fn to_server(sources: Vec<PathBuf>, to: &ServerPlace) -> Self {
        let is_directory = to.is_directory || need_directory(&sources);
        let (target, shown) = (to.path.clone(), to.to_string());
        let to = RemoteEnd::Server(to.server.clone());
        Self { sources, wording: Wording::Literal, to, target, is_directory, names: None, shown }
    }

    fn over_ssh(sources: Vec<PathBuf>, to: &SshPlace, recursive: bool) -> Self {
        let is_directory = to.is_directory() || need_directory(&sources);
        let names: Vec<RelPath> = sources.iter().map(|source| arrives_as(source)).collect();
        let scope = ScopeText::named(&names, recursive);
        let (far, shown) = (RemoteEnd::receiving(&to.host, &to.path, is_directory, scope), to.to_string());
        let target = RelPath::root();
        Self { sources, wording: Wording::Literal, to: far, target, is_directory, names: None, shown }
    }

    /// The sources to another remote program.
    pub(super) fn to_other(sources: Vec<PathBuf>, to: Other) -> Self {
        let is_directory = to.is_directory || need_directory(&sources);
        // The place is the local program's affair. The slash keeps what it says about a directory.
        let shown = format!("other:{}", if to.is_directory { "target/" } else { "target" });
        let (to, target) = (RemoteEnd::Other(to), RelPath::root());
        Self { sources, wording: Wording::Patterns, to, target, is_directory, names: None, shown }
    }

    /// Whether the entries at the root are all of a directory, whose content is copied.
    pub(super) fn is_whole(&self) -> bool {
        self.names.is_none() && matches!(&self.sources[..], [only] if own_name(only.as_os_str().as_bytes()).is_none())
    }

    /// Restricts it to these names in its only source, which go into a directory.
    fn restrict(&mut self, names: Arc<NameList>) {
        (self.names, self.is_directory) = (Some(names), true);
        if let RemoteEnd::Ssh { task: Task::Receive { is_directory, scope, .. }, .. } = &mut self.to {
            (*is_directory, *scope) = (true, ScopeText::of_directory(true));
        }
    }

    /// The size of the sources in bytes, if all are files that exist.
    pub(super) fn size(&self) -> Option<u64> {
        let size = |path: &PathBuf| path.metadata().ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len());
        self.sources
            .iter()
            .map(size)
            .sum::<Option<u64>>()
            .filter(|_| self.wording == Wording::Literal && self.names.is_none())
    }

    /// Whether the sources are a few files with little content, which go through ssh sooner than UDP could begin. Some files of the
    /// system have content and no size.
    pub(super) fn is_small(&self) -> bool {
        self.sources.len() <= FEW && self.size().is_some_and(|size| (1..=SMALL).contains(&size))
    }

    /// Checks that all sources exist, unless they may be patterns.
    pub(super) fn check_sources(&self) -> Result<(), Error> {
        if self.wording == Wording::Patterns {
            return Ok(());
        }
        for path in &self.sources {
            path.metadata().map_err(|error| {
                let message = format!("cannot read {}: {}; nothing was copied", path.display(), reason(&error));
                Error::new(Code::FilesFailed, message)
            })?;
        }
        Ok(())
    }

    /// What it sends, and the names at the top of the copy. `recursive` is for directories.
    pub(super) fn source(&self, recursive: bool) -> Result<(DiskSource, Vec<Vec<u8>>), Error> {
        let (Some(names), [base, ..]) = (&self.names, &self.sources[..]) else {
            let selection = self.select(recursive)?;
            let names = selection.names().map(|name| name.as_bytes().to_vec()).collect();
            return Ok((DiskSource::of(selection), names));
        };
        let source = DiskSource::by_names(base, Arc::clone(names), recursive).map_err(|error| {
            let why = reason(&error);
            Error::new(Code::FilesFailed, format!("cannot read {}: {why}; nothing was copied", base.display()))
        })?;
        Ok((source, top_of(names)))
    }

    /// Selects the sources. `recursive` is for directories.
    fn select(&self, recursive: bool) -> Result<Selection, Error> {
        let selected = Selection::named(&self.sources, self.wording, recursive).map_err(|error| {
            let mut alone = self.sources.iter().zip(Selection::each_named(&self.sources, self.wording, recursive));
            let what = match alone.find_map(|(path, alone)| alone.err().map(|error| (path, error))) {
                Some((path, error)) => format!("cannot read {}: {}", path.display(), reason(&error)),
                None => format!("cannot read the sources: {}", reason(&error)),
            };
            Error::new(Code::FilesFailed, format!("{what}; nothing was copied"))
        })?;
        match &self.to {
            RemoteEnd::Other(other) if other.takes_one && selected.len() > 1 => {
                let why = too_many_for_one(selected.len());
                Err(Error::new(Code::FilesFailed, format!("cannot copy the sources: {why}; nothing was copied")))
            }
            _ => Ok(selected),
        }
    }
}

impl PullPlan {
    fn from_server(places: &[&ServerPlace], to: &Path) -> Result<Self, Error> {
        let server = &places[0].server;
        if places.iter().any(|place| place.server != *server) {
            return Err(Error::usage("one copy has one source server; copy from each server separately"));
        }
        let from = RemoteEnd::Server(server.clone());
        Ok(Self { from, requested: RequestedPaths::of_server(places), to: to.to_owned() })
    }

    fn over_ssh(places: &[&SshPlace], to: &Path) -> Result<Self, Error> {
        let from = RemoteEnd::sending(one_host(places)?, places);
        Ok(Self { from, requested: RequestedPaths::over_ssh(places), to: to.to_owned() })
    }

    /// Whether the entries at the root are all of a directory, whose content is copied.
    pub(super) fn is_whole(&self) -> bool {
        matches!(&self.requested.paths[..], [only] if only.is_root()) && self.requested.names.is_none()
    }

    /// Whether the target must be a directory: for several sources, or for the root, which has no name.
    pub(super) fn is_directory(&self) -> bool {
        self.requested.paths.len() > 1
            || self.requested.names.is_some()
            || self.requested.paths.iter().any(RelPath::is_root)
            || self.to.as_os_str().as_encoded_bytes().ends_with(b"/")
            || own_name(self.to.as_os_str().as_bytes()).is_none()
    }
}

impl BetweenPlan {
    fn of(from: &[&SshPlace], to: &SshPlace, recursive: bool) -> Result<Self, Error> {
        let host = one_host(from)?.to_owned();
        let is_directory = to.is_directory() || from.len() > 1 || from.iter().any(|place| place.name().is_root());
        let patterns = from.iter().any(|place| place.has_pattern());
        let names = from.iter().map(|place| PathText::new(&place.name().to_bytes())).collect();
        let arriving = ScopeText::of(names, patterns, recursive);
        let scope = ScopeText::of(paths_of(from), patterns, recursive);
        let is_whole = matches!(from, [only] if only.name().is_root());
        Ok(Self { from: host, to: to.clone(), is_directory, scope, arriving, is_whole })
    }

    /// Restricts it to these names in its only source.
    fn restrict(&mut self, names: &NameList) -> Result<(), Error> {
        let restricted = |scope: ScopeText| {
            scope.restricted(names).ok_or_else(|| {
                let why = "the list of names is longer than 3 MiB, which does not reach a copy between two other hosts";
                Error::usage(why).remedy("divide the list, and copy once for each part")
            })
        };
        (self.is_directory, self.is_whole) = (true, false);
        self.arriving = restricted(ScopeText::of_directory(self.scope.recursive))?;
        self.scope = restricted(self.scope.clone())?;
        Ok(())
    }
}

/// The paths of these places, as their host has them.
fn paths_of(places: &[&SshPlace]) -> Vec<PathText> {
    places.iter().map(|place| PathText::new(&place.path)).collect()
}

/// The host of all sources.
fn one_host<'a>(places: &[&'a SshPlace]) -> Result<&'a str, Error> {
    let host = &places[0].host;
    if places.iter().any(|place| place.host != *host) {
        return Err(Error::usage("one copy has one source host; copy from each host separately"));
    }
    Ok(host)
}

fn local(place: &Location) -> Option<PathBuf> {
    if let Location::Local(path) = place { Some(path.clone()) } else { None }
}

const fn remote(place: &Location) -> Option<&ServerPlace> {
    if let Location::Remote(place) = place { Some(place) } else { None }
}

const fn ssh(place: &Location) -> Option<&SshPlace> {
    if let Location::Ssh(place) = place { Some(place) } else { None }
}
