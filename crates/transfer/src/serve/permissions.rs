//! What a client may do here: the paths, and the caps of its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use farhaul::security::{Grant, PathGrant};
use farhaul_disk::{Directory, Held, HeldDirectories, Place, Right};
use farhaul_keys::{Permit, Usage, Usages};
use farhaul_session::{AbortCode, RelPath, Request};
use farhaul_units::Rate;

use crate::admission::Rights;

const NOT_ADMITTED: &str = "your key is not admitted any more";
const NO_DELETE: &str = "your key may not delete there: its line in authorized_keys needs path=DIR,delete";
const NO_WRITE: &str = "your key may not write there: its line in authorized_keys needs path=DIR,write";
const NO_READ: &str = "your key may not read there: its line in authorized_keys names other paths";

/// The permissions of all clients of a server.
#[derive(Debug)]
pub(crate) struct Permissions {
    /// The root without links in its path.
    path: PathBuf,
    directories: HeldDirectories,
    read_only: bool,
    usages: Usages,
    /// The sessions of all plain clients, of whom nobody can be told from another one.
    plain: Usage,
    /// Those of all keys that stand in no file, for the same reason.
    unlisted: Usage,
    /// Cap of the rate of the latter.
    unlisted_rate: Rate,
}

/// What the client of one session may do.
#[derive(Debug)]
pub(crate) struct Client<'a> {
    permissions: &'a Permissions,
    rights: Rights,
    /// The directories of keys as they were when the session began.
    held: Arc<Held>,
}

/// What a request of a client is given: the places that it names, and the permit of its session.
#[derive(Debug)]
pub(crate) struct Allowed {
    /// The target of a push, or the sources of a pull.
    pub(crate) places: Vec<Place>,
    pub(crate) permit: Permit,
    /// Links of the client are stored so that they lead nowhere.
    pub(crate) munges_links: bool,
}

/// Why a request is refused.
pub(crate) type Refused = (AbortCode, String);

impl Permissions {
    /// The permissions below the root at `path`, for keys with these directories and usages. Keys that stand in no file share
    /// `unlisted_rate`.
    pub(crate) fn new(
        (path, directories): (PathBuf, HeldDirectories),
        read_only: bool,
        usages: Usages,
        unlisted_rate: Rate,
    ) -> Self {
        let (plain, unlisted) = (Usage::default(), Usage::default());
        Self { path, directories, read_only, usages, plain, unlisted, unlisted_rate }
    }

    /// Caps the rate of all keys together that stand in no file.
    pub(crate) const fn cap_unlisted(&mut self, rate: Rate) {
        self.unlisted_rate = rate;
    }

    /// The root without links in its path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) const fn root(&self) -> &Arc<Directory> {
        self.directories.root()
    }

    /// The directories of keys that grant nothing, each with the reason.
    pub(crate) fn missing(&self) -> Vec<String> {
        self.directories.now().missing().collect()
    }

    /// A client with these rights, whose session begins now.
    pub(crate) fn of(&self, rights: Rights) -> Client<'_> {
        Client { permissions: self, rights, held: self.directories.now() }
    }
}

impl Client<'_> {
    /// What the request is given, if the client has the rights and its caps leave room for one more session.
    pub(crate) fn allows(&self, request: &Request) -> Result<Allowed, Refused> {
        let places = match request {
            Request::Push(push) => {
                if push.rules.delete.is_some() {
                    self.place(Right::Delete, &push.target)?;
                }
                vec![self.place(Right::Write, &push.target)?]
            }
            Request::Pull(pull) => pull.scope.paths.iter().map(|path| self.entry(path)).collect::<Result<_, _>>()?,
            Request::Files => Vec::new(),
            _ => {
                let why = "this server has files; `farhaul bench --listen` measures";
                return Err((AbortCode::WrongService, why.to_owned()));
            }
        };
        let munges_links = matches!(&self.rights, Rights::Granted(grant) if grant.munges_links);
        Ok(Allowed { places, permit: self.begins()?, munges_links })
    }

    /// Begins a session within the caps of the client.
    fn begins(&self) -> Result<Permit, Refused> {
        let Permissions { usages, plain, unlisted, unlisted_rate, .. } = self.permissions;
        match &self.rights {
            Rights::Granted(grant) => usages.begin(grant).map_err(|full| (AbortCode::Busy, full.0.to_owned())),
            Rights::Plain { rate, .. } => Ok(plain.begin(*rate)),
            Rights::Unlisted => Ok(unlisted.begin(*unlisted_rate)),
            Rights::All => Ok(Permit::default()),
            Rights::None => Err(refused(NOT_ADMITTED)),
        }
    }

    /// Where a path below the root leads, if the client has this right there.
    pub(crate) fn place(&self, right: Right, path: &RelPath) -> Result<Place, Refused> {
        let granted = self.granted(right)?;
        let places = granted.iter().flat_map(|grant| those(grant, right));
        let places = places.filter_map(|granted| self.held.place(&granted.path, path));
        match granted {
            Some(_) => places.min_by_key(|place| place.below.components().len()).ok_or_else(|| refused(lacks(right))),
            None => Ok(self.below_root(path)),
        }
    }

    /// Where an entry is that is sent under its own name.
    fn entry(&self, path: &RelPath) -> Result<Place, Refused> {
        let Some(grant) = self.granted(Right::Read)? else { return Ok(self.below_root(path)) };
        let entries = those(grant, Right::Read).filter_map(|granted| self.held.entry(&granted.path, path));
        let found = entries.reduce(|one, other| match (&one, &other) {
            (Ok(_), _) => one,
            _ => other,
        });
        found.ok_or_else(|| refused(lacks(Right::Read)))?.map_err(refused)
    }

    fn below_root(&self, path: &RelPath) -> Place {
        Place { start: Arc::clone(self.permissions.root()), below: path.clone() }
    }

    /// The grant whose directories have this right; `None` if the client has it below the whole root.
    fn granted(&self, right: Right) -> Result<Option<&Grant>, Refused> {
        if right != Right::Read && self.permissions.read_only {
            return Err(refused("this server is read-only"));
        }
        match (&self.rights, right) {
            (Rights::None, _) => Err(refused(NOT_ADMITTED)),
            (Rights::Granted(grant), Right::Read) if grant.paths.is_empty() => Ok(None),
            (Rights::Granted(grant), _) => Ok(Some(grant)),
            (Rights::Plain { write: false, .. }, Right::Write) => Err(refused(
                "plain clients may only read here: connect without ‹plain›, or the daemon's file needs write = true in [plain]",
            )),
            (Rights::Plain { delete: false, .. }, Right::Delete) => Err(refused(
                "plain clients may not delete here: connect without ‹plain›, or the daemon's file needs delete = true in [plain]",
            )),
            (Rights::Unlisted, Right::Write | Right::Delete) => Err(refused(lacks(right))),
            (Rights::All | Rights::Plain { .. } | Rights::Unlisted, _) => Ok(None),
        }
    }
}

/// The directories of a grant with this right.
fn those(grant: &Grant, right: Right) -> impl Iterator<Item = &PathGrant> {
    grant.paths.iter().filter(move |path| match right {
        Right::Read => true,
        Right::Write => path.write,
        Right::Delete => path.delete,
    })
}

const fn lacks(right: Right) -> &'static str {
    match right {
        Right::Read => NO_READ,
        Right::Write => NO_WRITE,
        Right::Delete => NO_DELETE,
    }
}

fn refused(why: &str) -> Refused {
    (AbortCode::Refused, why.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use farhaul::security::{AuthorizedKeys, PublicKey};
    use farhaul_udp::Clock;

    use super::*;

    /// A root with directories, and permissions below it.
    struct World(Permissions, PathBuf);

    impl World {
        fn new(test: &str) -> Self {
            let root = std::env::temp_dir().join(format!("farhaul-permissions-{}-{test}", std::process::id()));
            for folder in ["in/deep", "out", "all/deep"] {
                fs::create_dir_all(root.join(folder)).unwrap();
            }
            let directories = HeldDirectories::below(Directory::open(&root).unwrap());
            let cap = Rate::from_megabits_per_second(8);
            Self(Permissions::new((root.clone(), directories), false, Usages::default(), cap), root)
        }

        /// The rights of a key with these options, in which ROOT is the root, once the server has read them.
        fn granted(&self, options: &str) -> Rights {
            let (key, options) = (PublicKey::from_bytes([7; 32]), options.replace("ROOT", self.1.to_str().unwrap()));
            let grant = AuthorizedKeys::parse(&format!("{key} alice {options}")).unwrap().grants()[0].clone();
            self.0.directories.hold(grant.paths.iter().map(|path| &*path.path));
            Rights::Granted(grant)
        }

        fn place(&self, rights: &Rights, right: Right, at: &str) -> Result<Place, Refused> {
            self.0.of(rights.clone()).place(right, &RelPath::parse(at.as_bytes()).unwrap())
        }
    }

    impl Drop for World {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.1);
        }
    }

    #[test]
    fn a_key_writes_only_where_its_line_says_so() {
        let world = World::new("writes");
        assert!(world.place(&Rights::All, Right::Write, "anywhere").is_ok());
        let alice = world.granted("path=ROOT/in,write path=ROOT/out");
        for (target, may) in [("in", true), ("in/deep", true), ("out", false), ("inner", false), ("", false)] {
            assert_eq!(world.place(&alice, Right::Write, target).is_ok(), may, "{target}");
        }
        assert_eq!(world.place(&world.granted(""), Right::Write, "in").unwrap_err().0, AbortCode::Refused);
        assert!(world.place(&Rights::None, Right::Write, "in").is_err());
    }

    #[test]
    fn a_key_deletes_only_where_its_line_says_so_and_nobody_on_a_read_only_server() {
        let mut world = World::new("deletes");
        let alice = world.granted("path=ROOT/in,write path=ROOT/out,delete path=ROOT/all,write,delete");
        for (at, may) in
            [("in/a", false), ("out/a", true), ("out", true), ("all/deep/a", true), ("outer", false), ("", false)]
        {
            assert_eq!(world.place(&alice, Right::Delete, at).is_ok(), may, "{at}");
        }
        assert!(world.place(&alice, Right::Write, "out/a").is_err(), "delete is not write");
        let rate = Rate::from_megabits_per_second(8);
        let plain = |delete| Rights::Plain { write: true, delete, rate };
        for (rights, may) in [
            (Rights::All, true),
            (plain(true), true),
            (plain(false), false),
            (Rights::Unlisted, false),
            (Rights::None, false),
        ] {
            assert_eq!(world.place(&rights, Right::Delete, "in").is_ok(), may, "{rights:?}");
        }
        world.0.read_only = true;
        for rights in [Rights::All, alice, plain(true)] {
            assert!(world.place(&rights, Right::Delete, "all/a").is_err());
            assert!(world.place(&rights, Right::Write, "all/a").is_err());
        }
    }

    #[test]
    fn a_key_reads_its_paths_or_without_any_the_whole_root() {
        let world = World::new("reads");
        let alice = world.granted("path=ROOT/in,write path=ROOT/out");
        for (at, may) in [("in/a", true), ("out", true), ("other", false), ("", false)] {
            assert_eq!(world.place(&alice, Right::Read, at).is_ok(), may, "{at}");
            assert_eq!(world.0.of(alice.clone()).entry(&RelPath::parse(at.as_bytes()).unwrap()).is_ok(), may, "{at}");
        }
        let whole = world.granted("");
        assert!(world.place(&whole, Right::Read, "other").is_ok() && world.place(&whole, Right::Read, "").is_ok());
        assert!(world.place(&Rights::None, Right::Read, "in").is_err());
    }

    #[test]
    fn the_deepest_directory_with_the_right_counts() {
        let world = World::new("deepest");
        let alice = world.granted("path=ROOT/all path=ROOT/all/deep,write");
        for (right, below) in [(Right::Read, "a"), (Right::Write, "a")] {
            assert_eq!(world.place(&alice, right, "all/deep/a").unwrap().below.to_string(), below, "{right:?}");
        }
        assert!(world.place(&alice, Right::Write, "all/a").is_err());
    }

    #[test]
    fn plain_clients_read_and_write_only_if_they_may() {
        let (mut world, rate) = (World::new("plain"), Rate::from_megabits_per_second(8));
        let rights = |write| Rights::Plain { write, delete: false, rate };
        assert_eq!(world.place(&rights(false), Right::Write, "in").unwrap_err().0, AbortCode::Refused);
        assert!(world.place(&rights(true), Right::Write, "in").is_ok());
        assert!(world.place(&rights(false), Right::Read, "").is_ok());
        world.0.read_only = true;
        assert!(world.place(&rights(true), Right::Write, "in").is_err());
    }

    #[test]
    fn an_unlisted_key_may_do_what_a_line_without_options_grants() {
        let world = World::new("unlisted");
        let line = world.granted("");
        for right in [Right::Write, Right::Delete] {
            let refused = |rights| world.place(rights, right, "in").unwrap_err();
            assert_eq!(refused(&line), refused(&Rights::Unlisted));
        }
        for rights in [line, Rights::Unlisted] {
            assert!(world.place(&rights, Right::Read, "").is_ok());
        }
    }

    #[test]
    fn clients_that_nobody_can_tell_apart_share_one_cap() {
        let (world, clock) = (World::new("caps"), Clock::start());
        let plain = Rights::Plain { write: false, delete: false, rate: Rate::from_megabits_per_second(8) };
        for rights in [plain, Rights::Unlisted] {
            let permits = [(); 2].map(|()| world.0.of(rights.clone()).begins().unwrap());
            let began = clock.now();
            for turn in 0..11 {
                permits[turn % 2].charge(5_000, clock).unwrap();
            }
            assert!(clock.now() - began >= Duration::from_millis(50), "{rights:?}");
        }
    }
}
