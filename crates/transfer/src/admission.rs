//! Which clients a listener admits, and what each may do.
//!
//! | part | owns |
//! | --- | --- |
//! | [`Admission`] | the clients by their file, and the keys of now |
//! | [`Rights`] | what the client of a connection may do |
//! | `refusal` | clients that are not admitted, in words |

mod refusal;
mod rights;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;

use farhaul::security::{AuthorizedKeys, Cipher, KeyPair, NotAdmitted, PublicKey, Security, Trust};
use farhaul::{Endpoint, Stream, probe};
use farhaul_disk::HeldDirectories;
use farhaul_keys::{Permit, Usages, Who, read_trusted};
use farhaul_session::AbortCode;
use farhaul_udp::Clock;

pub use self::rights::Rights;

use self::refusal::{Cause, Refusal};
use crate::error::{Code, Error};
use crate::event::Events;
use crate::quota::{self, Quota};

/// Refusals that may wait to be reported. Further ones are only counted.
const WAITING_REFUSALS: usize = 16;
const SECONDS_OF_A_DAY: u64 = 86_400;

/// The clients of a listener. Clones share everything.
#[derive(Clone, Debug)]
pub struct Admission {
    identity: KeyPair,
    cipher: Cipher,
    clients: Arc<Clients>,
    refusals: Arc<Mutex<Option<Receiver<Refusal>>>>,
    /// Where the private key is, if it is in a file.
    key_file: Option<PathBuf>,
}

/// The file of the keys of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeysFile {
    /// The user named it, so it must exist.
    Named(PathBuf),
    /// The usual place. Without the file there are no keys.
    Usual(PathBuf),
}

impl KeysFile {
    fn path(&self) -> &Path {
        let (Self::Named(path) | Self::Usual(path)) = self;
        path
    }

    fn read(&self) -> Result<AuthorizedKeys, Error> {
        let path = self.path();
        let text = match (read_trusted(path)?, self) {
            (Some(text), _) => text,
            (None, Self::Usual(_)) => String::new(),
            (None, Self::Named(_)) => {
                return Err(Error::new(Code::LocalIo, format!("there is no file {}", path.display())));
            }
        };
        AuthorizedKeys::parse(&text).map_err(|error| Error::usage(format!("{}: {error}", path.display())))
    }
}

/// What a listener offers, and so which options of a key it can hold to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Files: all options hold.
    Files,
    /// Bytes without files, by this verb: `path` says nothing about them.
    Bytes(&'static str),
}

#[derive(Debug)]
struct Clients {
    own: PublicKey,
    anybody: bool,
    service: Service,
    file: Option<KeysFile>,
    keys: RwLock<AuthorizedKeys>,
    /// The directories of the keys, below the roots of the servers that they are for.
    directories: Mutex<Vec<HeldDirectories>>,
    usages: Usages,
    refused: SyncSender<Refusal>,
    /// Refusals that are reported. Anybody can cause them.
    reported: Arc<Quota>,
}

impl Admission {
    /// The clients of `file`, this user, and with `anybody` all others.
    pub fn new(
        identity: KeyPair,
        cipher: Cipher,
        (file, anybody): (Option<KeysFile>, bool),
        service: Service,
    ) -> Result<Self, Error> {
        let keys = RwLock::new(file.as_ref().map(KeysFile::read).transpose()?.unwrap_or_default());
        let (refused, refusals) = sync_channel(WAITING_REFUSALS);
        let (own, usages) = (identity.public(), Usages::default());
        let about = "callers were refused, because their keys are not admitted,";
        let reported = Arc::new(Quota::of_warnings(Clock::start(), about));
        let directories = Mutex::default();
        let clients = Arc::new(Clients { own, anybody, service, file, keys, directories, usages, refused, reported });
        Ok(Self { identity, cipher, clients, refusals: Arc::new(Mutex::new(Some(refusals))), key_file: None })
    }

    /// The same with a private key from this file.
    pub fn with_key_of(self, key_file: Option<PathBuf>) -> Self {
        Self { key_file, ..self }
    }

    /// A file of keys below this directory, whose clients could read it or even write it.
    pub fn file_below(&self, root: &Path) -> Option<&Path> {
        let lies_below = |file: &&Path| file.canonicalize().is_ok_and(|file| file.starts_with(root));
        [self.key_file.as_deref(), self.file()].into_iter().flatten().find(lies_below)
    }

    /// The protection of the listener's port.
    pub fn security(&self) -> Security {
        Security::new(self.identity.clone(), Arc::clone(&self.clients)).cipher(self.cipher)
    }

    /// Reports the clients that are not admitted, until neither the port nor anybody else has these clients any more.
    pub fn report_refusals(&self, events: &Events) -> Result<(), Error> {
        let Some(refusals) = self.refusals.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        let Clients { reported, file, .. } = &*self.clients;
        // The clients themselves would never go: they have the other end of the channel.
        let (events, reported, file) = (events.clone(), Arc::clone(reported), file.clone());
        let thread = thread::Builder::new().name("refusals".into());
        thread.spawn(move || report(&refusals, (&reported, &events), file.as_ref().map(KeysFile::path)))?;
        Ok(())
    }

    /// The file of the clients' keys.
    pub fn file(&self) -> Option<&Path> {
        self.clients.file.as_ref().map(KeysFile::path)
    }

    /// Reads the file again, and ends the connections of clients that may do less now than before. Returns their number.
    ///
    /// # Errors
    /// The file cannot be read. The keys of before apply.
    pub fn reload(&self, endpoint: &Endpoint) -> Result<usize, Error> {
        let Some(file) = &self.clients.file else { return Ok(0) };
        let keys = file.read()?;
        let before = std::mem::replace(&mut *self.clients.keys.write().unwrap_or_else(PoisonError::into_inner), keys);
        self.clients.directories().iter().for_each(|directories| self.clients.hold(directories));
        self.clients.usages.reset();
        Ok(self.end_unwelcome(endpoint, &before))
    }

    /// Has the directories of the keys held below a root, from now on whenever the file is read.
    pub(crate) fn hold_directories(&self, directories: &HeldDirectories) {
        self.clients.hold(directories);
        self.clients.directories().push(directories.clone());
    }

    /// The directories of the keys that grant nothing, each with the reason.
    pub fn missing_directories(&self) -> Vec<String> {
        self.clients
            .directories()
            .iter()
            .flat_map(|directories| directories.now().missing().collect::<Vec<_>>())
            .collect()
    }

    /// Ends the connections of keys that have expired. Returns their number.
    pub fn end_expired(&self, endpoint: &Endpoint) -> usize {
        let keys = self.clients.keys.read().unwrap_or_else(PoisonError::into_inner).clone();
        self.end_unwelcome(endpoint, &keys)
    }

    fn end_unwelcome(&self, endpoint: &Endpoint, before: &AuthorizedKeys) -> usize {
        let (today, mut unwelcome) = (today(), BTreeSet::new());
        let keeps = |from, key| {
            let keeps = self.clients.keeps(before, from, key, today);
            if !keeps {
                unwelcome.insert(key);
            }
            keeps
        };
        // A port that is gone has no connections.
        let ended = endpoint.end_clients(keeps).unwrap_or(0);
        unwelcome.iter().for_each(|key| self.clients.usages.revoke(*key));
        // Other connections of the same keys have lost their sessions.
        ended + endpoint.end_clients(|_, key| !unwelcome.contains(&key)).unwrap_or(0)
    }

    /// What the keys have used.
    pub fn usages(&self) -> Usages {
        self.clients.usages.clone()
    }

    /// Begins a session of the client of this connection, where no files are moved.
    ///
    /// # Errors
    /// The code and the words for the client.
    pub fn begin(&self, stream: &Stream) -> Result<Permit, (AbortCode, &'static str)> {
        match self.rights(stream) {
            Rights::Granted(grant) => self.clients.usages.begin(&grant).map_err(|full| (AbortCode::Busy, full.0)),
            Rights::None => Err((AbortCode::Refused, "your key is not admitted any more")),
            Rights::All | Rights::Unlisted | Rights::Plain { .. } => Ok(Permit::default()),
        }
    }

    /// Whose connection it is.
    pub fn who(&self, stream: &Stream) -> Who {
        let key = stream.protection().ok().flatten().and_then(|protection| protection.peer_key);
        match (self.rights(stream), key) {
            (Rights::All | Rights::Granted(_), Some(key)) => Who::Listed(key),
            _ => Who::unlisted(stream.peer_addr()),
        }
    }

    /// What the client of this connection may do.
    pub fn rights(&self, stream: &Stream) -> Rights {
        let key = stream.protection().ok().flatten().and_then(|protection| protection.peer_key);
        key.map_or(Rights::None, |key| self.clients.rights(stream.peer_addr(), key).unwrap_or(Rights::None))
    }

    /// The port's protection in a few words.
    pub fn words(&self) -> String {
        let keys = self.clients.keys.read().unwrap_or_else(PoisonError::into_inner).grants().len();
        let who = match (self.clients.anybody, keys) {
            (true, _) => "any client is admitted".to_owned(),
            (false, 0) => match self.file() {
                Some(file) => format!("it alone is admitted; {} may have others", file.display()),
                None => "it alone is admitted".to_owned(),
            },
            (false, 1) => "it and 1 other are admitted".to_owned(),
            (false, keys) => format!("it and {keys} others are admitted"),
        };
        format!("encrypted, key {}; {who}", self.identity.public().fingerprint())
    }

    /// Whether keys that stand in no file are admitted.
    pub fn admits_anybody(&self) -> bool {
        self.clients.anybody
    }

    /// The fingerprint of this side's key.
    pub fn fingerprint(&self) -> String {
        self.identity.public().fingerprint()
    }
}

impl Clients {
    fn directories(&self) -> MutexGuard<'_, Vec<HeldDirectories>> {
        self.directories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds the directories of the keys of now.
    fn hold(&self, directories: &HeldDirectories) {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner).clone();
        directories.hold(keys.grants().iter().flat_map(|grant| grant.paths.iter().map(|path| &*path.path)));
    }

    fn rights(&self, from: SocketAddr, key: PublicKey) -> Result<Rights, Cause> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        self.rights_by(&keys, from, key, today())
    }

    /// The rights of a key by a file with these keys, on this day.
    fn rights_by(&self, keys: &AuthorizedKeys, from: SocketAddr, key: PublicKey, today: u32) -> Result<Rights, Cause> {
        match (keys.admit(key, from.ip().to_canonical(), today), self.service) {
            (Ok(grant), Service::Bytes(verb)) if !grant.allows(verb) => Err(Cause::FilesAlone(verb)),
            (Ok(grant), _) => Ok(Rights::Granted(grant.clone())),
            (Err(NotAdmitted::Unknown), _) if key == self.own => Ok(Rights::All),
            (Err(NotAdmitted::Unknown), _) if self.anybody => Ok(Rights::Unlisted),
            (Err(reason), _) => Err(Cause::File(reason)),
        }
    }

    /// Whether a connected client still has the rights that it had by the keys of before.
    fn keeps(&self, before: &AuthorizedKeys, from: SocketAddr, key: PublicKey, today: u32) -> bool {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        match (self.rights_by(before, from, key, today), self.rights_by(&keys, from, key, today)) {
            (_, Err(_)) => false,
            (Err(_), Ok(_)) => true,
            (Ok(before), Ok(now)) => now.permits_all_of(&before, key),
        }
    }
}

impl Trust for Clients {
    fn admits_server(&self, _peer: SocketAddr, _key: PublicKey) -> bool {
        false
    }

    fn admits_client(&self, from: SocketAddr, key: PublicKey) -> bool {
        match self.rights(from, key) {
            Ok(_) => true,
            Err(cause) => {
                if self.refused.try_send(Refusal { from, key, cause }).is_err() {
                    self.reported.leave_out();
                }
                false
            }
        }
    }
}

/// Reports refusals within their quota, for as long as somebody may be refused.
fn report(refusals: &Receiver<Refusal>, (reported, events): (&Quota, &Events), file: Option<&Path>) {
    loop {
        match refusals.recv_timeout(quota::PERIOD) {
            Ok(refusal) => reported.warn(events, || refusal.words(file)),
            Err(RecvTimeoutError::Timeout) => reported.look(events),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The days since 1970-01-01, in UTC.
fn today() -> u32 {
    u32::try_from(probe::now().as_secs() / SECONDS_OF_A_DAY).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FROM: &str = "192.0.2.7:1000";

    fn clients(text: &str, anybody: bool) -> (Admission, PublicKey) {
        offering(Service::Files, text, anybody)
    }

    fn offering(service: Service, text: &str, anybody: bool) -> (Admission, PublicKey) {
        let identity = KeyPair::generate().unwrap();
        let own = identity.public();
        let admission = Admission::new(identity, Cipher::Auto, (None, anybody), service).unwrap();
        *admission.clients.keys.write().unwrap() = AuthorizedKeys::parse(text).unwrap();
        (admission, own)
    }

    fn refusals(admission: &Admission) -> Receiver<Refusal> {
        admission.refusals.lock().unwrap().take().unwrap()
    }

    #[test]
    fn this_user_may_do_everything_and_others_what_the_file_grants() {
        let other = KeyPair::generate().unwrap().public();
        let from = FROM.parse().unwrap();
        let (admission, own) = clients(&format!("{other} alice path=/data,write"), false);
        assert_eq!(admission.clients.rights(from, own), Ok(Rights::All));
        let Ok(Rights::Granted(grant)) = admission.clients.rights(from, other) else { panic!() };
        assert_eq!(grant.name, "alice");
        let unlisted = KeyPair::generate().unwrap().public();
        assert!(!admission.clients.admits_client(from, unlisted) && admission.clients.admits_client(from, other));
        let words = refusals(&admission).try_recv().unwrap().words(Some("/etc/keys".as_ref()));
        assert!(words.contains("unknown") && words.contains("add this line to /etc/keys"), "{words}");
        assert!(words.ends_with(&unlisted.to_string()), "{words}");
    }

    #[test]
    fn a_connected_client_keeps_its_connection_unless_it_may_do_less() {
        let other = KeyPair::generate().unwrap().public();
        let from: SocketAddr = FROM.parse().unwrap();
        let line = |options: &str| AuthorizedKeys::parse(&format!("{other} {options}")).unwrap();
        for (before, after, anybody, keeps) in [
            (line("rate=2mbit"), line("rate=3mbit"), false, true),
            (line("rate=2mbit"), line("rate=1mbit"), false, false),
            (line(""), AuthorizedKeys::default(), false, false),
            (line("path=/data,write"), AuthorizedKeys::default(), true, false),
            (AuthorizedKeys::default(), line(""), true, true),
            (AuthorizedKeys::default(), line("path=/data,write"), true, false),
            (AuthorizedKeys::default(), AuthorizedKeys::default(), true, true),
            (line(""), line("from=192.0.2.0/24"), false, true),
            (line(""), line("from=198.51.100.0/24"), false, false),
        ] {
            let (admission, own) = clients("", anybody);
            let shown = format!("{before:?} {after:?} {anybody}");
            *admission.clients.keys.write().unwrap() = after;
            assert_eq!(admission.clients.keeps(&before, from, other, 0), keeps, "{shown}");
            assert!(admission.clients.keeps(&before, from, own, 0));
        }
    }

    #[test]
    fn a_key_that_expires_loses_its_connection_on_the_next_day() {
        let other = KeyPair::generate().unwrap().public();
        let from: SocketAddr = FROM.parse().unwrap();
        let (admission, _) = clients(&format!("{other} expires=1970-01-03"), false);
        let keys = admission.clients.keys.read().unwrap().clone();
        for (today, keeps) in [(0, true), (2, true), (3, false)] {
            assert_eq!(admission.clients.keeps(&keys, from, other, today), keeps, "{today}");
        }
    }

    #[test]
    fn a_key_that_is_limited_to_paths_is_refused_where_there_are_no_files() {
        let other = KeyPair::generate().unwrap().public();
        let from = FROM.parse().unwrap();
        for anybody in [false, true] {
            let (admission, own) = offering(Service::Bytes("pipe"), &format!("{other} path=/data,write"), anybody);
            assert!(!admission.clients.admits_client(from, other) && admission.clients.admits_client(from, own));
            let refusal = refusals(&admission).try_recv().unwrap().words(None);
            assert!(refusal.contains("path=") && refusal.contains("farhaul pipe"), "{refusal}");
        }
        for (verb, admits) in [("pipe", true), ("bench", false)] {
            let (admission, _) = offering(Service::Bytes(verb), &format!("{other} path=/data,write allow=pipe"), false);
            assert_eq!(admission.clients.admits_client(from, other), admits, "{verb}");
        }
        let (admission, _) =
            offering(Service::Bytes("pipe"), &format!("{other} rate=1mbit sessions=1 bytes=1GB"), false);
        assert!(admission.clients.admits_client(from, other));
    }

    #[test]
    fn a_key_whose_line_does_not_hold_now_is_refused_with_advice_that_makes_no_second_line() {
        for (option, why, advice) in [
            ("expires=2020-01-01", "has expired", "a later day in expires= of its line in /etc/keys"),
            ("from=198.51.100.0/24", "this address", "its network to from= of its line in /etc/keys"),
        ] {
            let old = KeyPair::generate().unwrap().public();
            let (admission, _) = clients(&format!("{old} {option}"), false);
            assert!(!admission.clients.admits_client(FROM.parse().unwrap(), old));
            let words = refusals(&admission).try_recv().unwrap().words(Some("/etc/keys".as_ref()));
            assert!(words.contains(why) && words.contains(advice) && !words.contains("add this line"), "{words}");
        }
    }

    #[test]
    fn a_listener_for_anybody_still_keeps_to_the_grants_of_its_file() {
        let other = KeyPair::generate().unwrap().public();
        let (admission, own) = clients(&format!("{other} path=/data"), true);
        let from = FROM.parse().unwrap();
        let unlisted = KeyPair::generate().unwrap().public();
        assert_eq!(admission.clients.rights(from, unlisted), Ok(Rights::Unlisted));
        assert_eq!(admission.clients.rights(from, own), Ok(Rights::All));
        assert!(matches!(admission.clients.rights(from, other), Ok(Rights::Granted(_))));
    }
}
