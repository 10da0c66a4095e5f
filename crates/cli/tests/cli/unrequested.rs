//! Attack D3 in all four directions: files that nobody asked for, in a pull, in a push, to a daemon, and from one host to another
//! one. Between two hosts, the source also lies about its end.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;

use farhaul::security::{AcceptAll, KeyPair, Pinned, PublicKey, Security};
use farhaul::{Endpoint, Stream};
use farhaul_session::{
    Abort, AbortCode, Acceptor, FileSender, MemoryFile, MemorySource, Push, RelPath, Rules, SessionError,
};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

use crate::process::{Run, Scratch, Server, farhaul_where};
use crate::secured::User;

const PROGRAM: &str = env!("CARGO_BIN_EXE_farhaul");
const MARK: &[u8] = b"\x01farhaul-bootstrap\n";
/// A frame with a message.
const MESSAGE: u8 = 1;

fn source(entries: &[&str]) -> MemorySource {
    let entry = |name: &&str| {
        let file =
            if name.ends_with('/') { MemoryFile::directory() } else { MemoryFile::file(name.as_bytes().to_vec()) };
        (RelPath::parse(name.as_bytes()).unwrap(), file)
    };
    MemorySource::new(entries.iter().map(entry).collect())
}

/// Sends these entries until the other side ends the session; how it ended.
fn sends(stream: &Stream, mut session: FileSender, entries: &[&str]) -> Option<SessionError> {
    let (mut source, mut block) = (source(entries), [0; 4096]);
    while !session.is_over() {
        let pending = session.poll_write(&mut source).to_vec();
        if !pending.is_empty() && stream.send_all(&pending).is_ok() {
            session.handle_written(pending.len());
            continue;
        }
        let _ = match stream.recv(&mut block) {
            Ok(len @ 1..) => session.handle_received(&block[..len]).map(drop),
            _ => session.handle_end(),
        };
    }
    let _ = stream.finish();
    session.error().cloned()
}

/// Whether the other side ended the session because of this entry.
#[track_caller]
fn is_refused(error: Option<SessionError>, entry: &str) {
    let Some(SessionError::PeerAborted(Abort { code, message })) = error else { panic!("it was taken: {error:?}") };
    let words = format!("not requested: {entry}");
    assert!(code == AbortCode::Protocol && message.contains(&words), "{message}");
}

/// One end of the dialogue through ssh. Its first messages have their lengths in hexadecimal digits, the later ones are frames.
struct Talk<R, W> {
    from: R,
    to: W,
}

impl<R: Read, W: Write> Talk<R, W> {
    fn says(&mut self, message: &Value) {
        let body = message.to_string();
        self.to.write_all(format!("{:08x}{body}", body.len()).as_bytes()).unwrap();
        self.to.flush().unwrap();
    }

    fn hears(&mut self) -> Value {
        let mut head = [0; 8];
        self.from.read_exact(&mut head).unwrap();
        let len = usize::from_str_radix(std::str::from_utf8(&head).unwrap(), 16).unwrap();
        let mut body = vec![0; len];
        self.from.read_exact(&mut body).unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    /// As a frame.
    fn tells(&mut self, message: &Value) {
        let body = message.to_string();
        let [.., a, b, c] = body.len().to_be_bytes();
        self.to.write_all(&[&[MESSAGE, a, b, c], body.as_bytes()].concat()).unwrap();
        self.to.flush().unwrap();
    }

    /// The next message in a frame.
    fn is_told(&mut self) -> Value {
        let mut head = [0; 4];
        self.from.read_exact(&mut head).unwrap();
        let [kind, a, b, c] = head;
        let mut body = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.from.read_exact(&mut body).unwrap();
        if kind == MESSAGE { serde_json::from_slice(&body).unwrap() } else { self.is_told() }
    }
}

fn calls(identity: &KeyPair, key: &str, peer: SocketAddr) -> Stream {
    let key: PublicKey = key.parse().unwrap();
    let trust = Pinned { servers: vec![key], clients: Vec::new() };
    Endpoint::secure("127.0.0.1:0", Security::new(identity.clone(), trust)).unwrap().connect(peer).unwrap()
}

/// What the remote program of a push takes that was told this scope.
fn pushed(target: &str, is_directory: bool, scope: &Value, entries: &[&str]) -> Option<SessionError> {
    let identity = KeyPair::generate().unwrap();
    let mut child =
        Command::new(PROGRAM).arg("bootstrap").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut near = Talk { from: child.stdout.take().unwrap(), to: child.stdin.take().unwrap() };
    near.from.read_exact(&mut [0; MARK.len()]).unwrap();
    let receive = json!({ "target": target, "is_directory": is_directory, "scope": scope });
    let key = identity.public().to_string();
    near.says(&json!({ "hello": { "version": 7, "program": "test", "key": key, "task": { "receive": receive } } }));
    let ready = near.hears()["ready"].take();
    let peer = ([127, 0, 0, 1], u16::try_from(ready["port"].as_u64().unwrap()).unwrap()).into();
    let stream = calls(&identity, ready["key"].as_str().unwrap(), peer);
    let push = Push { target_is_directory: true, ..Push::default() };
    let error = sends(&stream, FileSender::push(push), entries);
    drop(near);
    child.wait().unwrap();
    error
}

#[test]
fn a_push_brings_what_the_near_program_announced_and_nothing_else() {
    let scratch = Scratch::new();
    let rules: String = Rules::default().to_bytes().iter().map(|byte| format!("%{byte:02X}")).collect();
    let scope = |recursive: bool| json!({ "paths": ["a"], "patterns": false, "recursive": recursive, "names": null, "rules": rules });
    let there = scratch.dir("there");
    fs::create_dir(scratch.at("there/.ssh")).unwrap();
    for (recursive, entries, refused) in
        [(true, &[".ssh/", ".ssh/authorized_keys"][..], ".ssh"), (true, &["a", "b"], "b"), (false, &["a/", "a/b"], "a")]
    {
        is_refused(pushed(&there, true, &scope(recursive), entries), refused);
    }
    // Entries run ahead of content, so what was asked for did not come either.
    assert_eq!((scratch.names("there"), scratch.names("there/.ssh").len()), (vec![".ssh".into()], 0));
    // The sender says that the target is a directory, and the local program that it is a name.
    assert_eq!(pushed(&scratch.at("name"), false, &scope(false), &["a"]), None);
    assert!(fs::metadata(scratch.at("name")).unwrap().is_file());
}

#[test]
fn a_server_sends_what_was_asked_for_and_nothing_else() {
    let scratch = Scratch::new();
    let user = User::new(&scratch, "user");
    let here = scratch.dir("here");
    let identity = KeyPair::generate().unwrap();
    let fingerprint = identity.public().fingerprint();
    let listener = Endpoint::secure("127.0.0.1:0", Security::new(identity, AcceptAll)).unwrap().listen().unwrap();
    let url = format!("udt://{}/a", listener.local_addr());
    for (option, entries, refused) in
        [("-r", &[".ssh/", ".ssh/authorized_keys"][..], ".ssh"), ("-q", &["a/", "a/b"], "a")]
    {
        thread::scope(|scope| {
            scope.spawn(|| {
                let (stream, _) = listener.accept().unwrap();
                let (mut acceptor, mut block) = (Acceptor::new(), [0; 4096]);
                let open = loop {
                    let len = stream.recv(&mut block).unwrap();
                    if let (_, Some(open)) = acceptor.handle_received(&block[..len]).unwrap() {
                        break open;
                    }
                };
                is_refused(sends(&stream, FileSender::answer(&open), entries), refused);
            });
            let run = user.runs(&["copy", "--host-key", &fingerprint, option, &url, &here]);
            run.fails(9, &["not requested", refused]);
        });
    }
    assert!(scratch.names("here").is_empty());
}

#[test]
fn a_client_of_a_daemon_writes_where_its_line_permits_and_nowhere_else() {
    let scratch = Scratch::new();
    let alice = User::new(&scratch, "alice");
    let (root, host_key) = (scratch.dir("root"), alice.key("show"));
    scratch.dir("root/in");
    let identity = KeyPair::generate().unwrap();
    fs::write(alice.file("authorized_keys"), format!("{} path={root}/in,write\n", identity.public())).unwrap();
    let server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
    let pushes = |target: &str, entries: &[&str]| {
        let stream = calls(&identity, &host_key, server.address.parse().unwrap());
        let target = RelPath::parse(target.as_bytes()).unwrap();
        let push = Push { target, target_is_directory: false, ..Push::default() };
        sends(&stream, FileSender::push(push), entries)
    };
    for target in ["", "other", "inner"] {
        let Some(SessionError::PeerAborted(abort)) = pushes(target, &["a"]) else { panic!("{target:?} was taken") };
        assert_eq!(abort.code, AbortCode::Refused, "{target:?}");
    }
    assert_eq!(pushes("in/new", &["a", "b"]), None, "the second one fails alone");
    assert_eq!((scratch.names("root"), scratch.names("root/in")), (vec!["in".into()], vec!["new".into()]));
    assert_eq!(fs::read(scratch.at("root/in/new")).unwrap(), b"a");
}

/// Two hosts behind a script in the place of ssh: on `good` it runs the program, and on `evil` it passes everything to the test.
struct Hosts {
    scratch: Scratch,
}

impl Hosts {
    fn new() -> Self {
        let scratch = Scratch::new();
        for pipe in ["heard", "said"] {
            mkfifoat(CWD, scratch.at(pipe), Mode::RWXU).unwrap();
        }
        let (heard, said) = (scratch.at("heard"), scratch.at("said"));
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *-G*) exit 0;; *evil*) cat '{said}' & exec cat > '{heard}';; esac\nfor C; do :; done\n\
             export SSH_CONNECTION='127.0.0.1 1 127.0.0.1 22'\nexec sh -c \"$C\"\n"
        );
        fs::write(scratch.at("ssh"), script).unwrap();
        fs::set_permissions(scratch.at("ssh"), Permissions::from_mode(0o755)).unwrap();
        scratch.dir("there");
        Self { scratch }
    }

    /// `evil` is asked for `a`. It sends `entries` to `good`, and reports these verified files.
    fn copy(&self, options: &[&str], entries: &[&str], reported: &[&str]) -> (Run, Option<SessionError>) {
        let (ssh, there) = (self.scratch.at("ssh"), format!("good:{}", self.scratch.at("there")));
        let copy = ["copy", "--json", "--skip", "never", "--ssh", &ssh, "--remote-path", PROGRAM];
        let words = [&copy[..], options, &["evil:a", &there]].concat();
        thread::scope(|scope| {
            let near = scope.spawn(move || farhaul_where(&[], &words));
            let error = self.evil(entries, reported);
            (near.join().unwrap(), error)
        })
    }

    fn evil(&self, entries: &[&str], reported: &[&str]) -> Option<SessionError> {
        let identity = KeyPair::generate().unwrap();
        let to = fs::File::options().write(true).open(self.scratch.at("said")).unwrap();
        let mut near = Talk { from: fs::File::open(self.scratch.at("heard")).unwrap(), to };
        near.to.write_all(MARK).unwrap();
        near.says(&json!({ "ready": { "key": identity.public().to_string(), "port": 0, "address": null } }));
        assert!(near.hears()["hello"]["task"]["forward"].is_object());
        let call = near.is_told()["call"].take();
        let peer = call["addresses"][0].as_str().unwrap().parse().unwrap();
        let stream = calls(&identity, call["key"].as_str().unwrap(), peer);
        let push = Push { target_is_directory: true, ..Push::default() };
        let error = sends(&stream, FileSender::push(push), entries);
        let mut bytes = 0;
        for name in reported {
            bytes += name.len();
            let digest = farhaul_session::Digest::of(name.as_bytes()).to_string();
            near.tells(&json!({ "record": {
                "event": "file", "path": name, "status": "verified", "bytes": name.len(), "digest": digest
            } }));
        }
        near.tells(&json!({ "record": {
            "event": "end", "files": reported.len(), "directories": 0, "bytes": bytes, "failed": 0, "verified": true,
            "exit_code": 0, "error": null, "seconds": 0.1
        } }));
        error
    }
}

#[test]
fn between_two_hosts_the_source_brings_what_was_asked_for_and_nothing_else() {
    let hosts = Hosts::new();
    hosts.scratch.dir("there/.ssh");
    fs::write(hosts.scratch.at("there/.ssh/authorized_keys"), "mine").unwrap();
    for (option, entries, refused) in
        [("-r", &[".ssh/", ".ssh/authorized_keys"][..], ".ssh"), ("-q", &["a/", "a/b"], "a")]
    {
        let (run, error) = hosts.copy(&[option], entries, &["a"]);
        is_refused(error, refused);
        // The reason is that of the receiver, whatever the source says.
        run.fails(6, &["evil says that it sent 1 file of 1 B, and good has stored 0 files", "not requested"]);
    }
    assert_eq!(fs::read(hosts.scratch.at("there/.ssh/authorized_keys")).unwrap(), b"mine");
    assert_eq!(hosts.scratch.names("there"), [".ssh"]);
}

/// Attack D13.
#[test]
fn between_two_hosts_success_is_what_both_ends_tell_alike() {
    let hosts = Hosts::new();
    let (run, error) = hosts.copy(&[], &["a"], &["a"]);
    run.succeeds();
    assert_eq!((error, &run.end()["verified"]), (None, &true.into()));
    for (reported, words) in [
        (&["a", "b"][..], "evil says that it sent 2 files of 2 B, and good has stored 1 file of 1 B"),
        (&[], "evil says that it sent 0 files of 0 B, and good has stored 1 file of 1 B"),
        (&["b"], "evil and good tell different things"),
    ] {
        let (run, error) = hosts.copy(&[], &["a"], reported);
        assert_eq!(error, None);
        run.fails(6, &[words, "compare the files on both hosts"]);
        let end = run.end();
        assert_eq!(
            (&end["verified"], &end["files"], &end["exit_code"]),
            (&false.into(), &1.into(), &6.into()),
            "{end}"
        );
        assert_eq!(end["error"]["code"], "INTEGRITY");
    }
}
