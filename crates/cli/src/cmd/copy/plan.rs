//! The meaning of a list of places: the direction of the data.

use std::path::{Path, PathBuf};

use farhaul_session::RelPath;

use crate::exit::{Code, Fault};
use crate::output::human::reason;
use crate::values::{HostPort, Location, Place};

/// A possible copy.
#[derive(Debug)]
pub(super) enum Plan {
    Push(PushPlan),
    Pull(PullPlan),
    /// From stdin.
    Feed(FeedPlan),
    /// To stdout.
    Fetch(FetchPlan),
}

#[derive(Debug)]
pub(super) struct PushPlan {
    pub(super) sources: Vec<PathBuf>,
    pub(super) to: Place,
}

#[derive(Debug)]
pub(super) struct PullPlan {
    pub(super) server: HostPort,
    pub(super) paths: Vec<RelPath>,
    pub(super) to: PathBuf,
}

#[derive(Debug)]
pub(super) struct FeedPlan {
    /// An existing directory, and the name of the new file in it.
    pub(super) directory: RelPath,
    pub(super) name: RelPath,
    pub(super) to: Place,
}

#[derive(Debug)]
pub(super) struct FetchPlan {
    pub(super) server: HostPort,
    pub(super) path: RelPath,
}

impl Plan {
    pub(super) fn of(places: &[Location]) -> Result<Self, Fault> {
        let (to, from) = places.split_last().expect("the command line takes no less than one place");
        if from.is_empty() {
            return Err(Fault::usage("missing: <DST>, the target; `farhaul copy --help` explains the options"));
        }
        match (from, to) {
            ([Location::Standard], Location::Remote(to)) => return FeedPlan::to(to).map(Self::Feed),
            ([Location::Remote(Place { server, path, is_directory: false })], Location::Standard) => {
                return Ok(Self::Fetch(FetchPlan { server: server.clone(), path: path.clone() }));
            }
            _ if places.contains(&Location::Standard) => {
                return Err(Fault::usage(
                    "- is stdin or stdout, as one end of a copy of one file: `copy - udt://host:port/NAME` or \
                     `copy udt://host:port/NAME -`",
                ));
            }
            _ => {}
        }
        let local: Vec<PathBuf> = from.iter().filter_map(local).collect();
        let remote: Vec<&Place> = from.iter().filter_map(remote).collect();
        match to {
            Location::Remote(to) if remote.is_empty() => Ok(Self::Push(PushPlan { sources: local, to: to.clone() })),
            Location::Local(to) if local.is_empty() => {
                let server = remote[0].server.clone();
                if remote.iter().any(|place| place.server != server) {
                    return Err(Fault::usage("one copy has one source server; copy from each server separately"));
                }
                let paths = remote.iter().map(|place| place.path.clone()).collect();
                Ok(Self::Pull(PullPlan { server, paths, to: to.clone() }))
            }
            Location::Local(_) if remote.is_empty() => Err(Fault::usage(
                "both ends are on this machine: use `cp`, or write the far end as udt://host:port/path",
            )),
            _ => Err(Fault::usage(
                "exactly one end must be on this machine; a copy cannot connect two servers, or have local and remote \
                 sources",
            )),
        }
    }
}

impl FeedPlan {
    fn to(to: &Place) -> Result<Self, Fault> {
        let name = to.path.split_last().filter(|_| !to.is_directory).and_then(|(name, parents)| {
            let directory = parents.iter().try_fold(RelPath::root(), |path, name| path.join(name.clone()));
            directory.and_then(|directory| Ok((directory, RelPath::root().join(name.clone())?))).ok()
        });
        let (directory, name) =
            name.ok_or_else(|| Fault::usage(format!("stdin has no name: write the name of the new file, {to}NAME")))?;
        Ok(Self { directory, name, to: to.clone() })
    }
}

impl PushPlan {
    /// Whether the target must be a directory: for several sources, or for a source without a name (`.`, `..`).
    pub(super) fn is_directory(&self) -> bool {
        self.to.is_directory || self.sources.len() > 1 || self.sources.iter().any(|path| path.file_name().is_none())
    }

    /// Checks that all sources exist. Returns their size in bytes, if no directory is among them.
    pub(super) fn check_sources(&self) -> Result<Option<u64>, Fault> {
        let mut total = Some(0u64);
        for path in &self.sources {
            let metadata = path.metadata().map_err(|error| {
                Fault::new(
                    Code::FilesFailed,
                    format!("cannot read {}: {}; nothing was copied", path.display(), reason(&error)),
                )
            })?;
            let size = metadata.is_file().then_some(metadata.len());
            total = total.zip(size).map(|(total, size)| total.saturating_add(size));
        }
        Ok(total)
    }
}

impl PullPlan {
    /// Whether the target must be a directory: for several sources, or for the root, which has no name.
    pub(super) fn is_directory(&self) -> bool {
        self.paths.len() > 1
            || self.paths.iter().any(RelPath::is_root)
            || self.to.as_os_str().as_encoded_bytes().ends_with(b"/")
            || self.to == Path::new(".")
    }
}

fn local(place: &Location) -> Option<PathBuf> {
    match place {
        Location::Local(path) => Some(path.clone()),
        Location::Remote(_) | Location::Original(_) | Location::Standard => None,
    }
}

const fn remote(place: &Location) -> Option<&Place> {
    match place {
        Location::Remote(place) => Some(place),
        Location::Local(_) | Location::Original(_) | Location::Standard => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(places: &[&str]) -> Result<Plan, Fault> {
        Plan::of(&places.iter().map(|place| Location::read(place.as_ref()).unwrap()).collect::<Vec<_>>())
    }

    #[test]
    fn the_remote_end_decides_the_direction() {
        assert!(matches!(plan(&["a", "b", "udt://h:1/"]), Ok(Plan::Push(push)) if push.sources.len() == 2));
        assert!(matches!(plan(&["udt://h:1/a", "udt://h:1/b", "."]), Ok(Plan::Pull(pull)) if pull.is_directory()));
    }

    #[test]
    fn sources_without_a_name_go_into_a_directory() {
        for source in [".", "..", "a/..", "/"] {
            let Ok(Plan::Push(push)) = plan(&[source, "udt://h:1/new"]) else { panic!() };
            assert!(push.is_directory(), "{source}");
        }
        let Ok(Plan::Push(push)) = plan(&["tree/.", "udt://h:1/new"]) else { panic!() };
        assert!(!push.is_directory());
        for (source, is_directory) in [("udt://h:1/", true), ("udt://h:1", true), ("udt://h:1/d", false)] {
            let Ok(Plan::Pull(pull)) = plan(&[source, "new"]) else { panic!() };
            assert_eq!(pull.is_directory(), is_directory, "{source}");
        }
    }

    #[test]
    fn stdin_gets_the_last_name_of_the_target() {
        let Ok(Plan::Feed(feed)) = plan(&["-", "udt://h:1/d/e/name"]) else { panic!() };
        assert_eq!((feed.directory.to_string(), feed.name.to_string()), ("d/e".into(), "name".into()));
        let Ok(Plan::Feed(feed)) = plan(&["-", "udt://h:1/name"]) else { panic!() };
        assert!(feed.directory.is_root());
        assert!(matches!(plan(&["udt://h:1/d/x", "-"]), Ok(Plan::Fetch(fetch)) if fetch.path.to_string() == "d/x"));
    }

    #[test]
    fn impossible_copies_are_usage_errors() {
        for places in [
            &["a", "b"][..],
            &["udt://h:1/a", "udt://h:1/b"],
            &["udt://h:1/a", "udt://g:1/b", "."],
            &["a", "udt://h:1/b", "."],
            &["-", "udt://h:1/"],
            &["-", "udt://h:1/d/"],
            &["-", "a", "udt://h:1/d"],
            &["-", "-"],
            &["-", "a"],
            &["udt://h:1/", "-"],
            &["udt://h:1/a", "udt://h:1/b", "-"],
        ] {
            assert_eq!(plan(places).unwrap_err().code, Code::Usage, "{places:?}");
        }
    }
}
