//! The directories of a key: what its client may do in them, and that it cannot put anything else in their places.

use std::fs;
use std::os::unix::fs::symlink;

use rustix::process::Signal;

use crate::process::{Run, Scratch, Server};
use crate::secured::User;

/// A server of a root with a secret, and a client with a key for two directories of it.
struct World {
    scratch: Scratch,
    root: String,
    alice: User,
    bob: User,
    server: Server,
}

impl World {
    fn new() -> Self {
        Self::with("path=ROOT/in,write,delete path=ROOT/out,write,delete")
    }

    /// The same with these options, in which ROOT is the root.
    fn with(options: &str) -> Self {
        let scratch = Scratch::new();
        let (alice, bob, root) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"), scratch.dir("root"));
        for folder in ["in/deep", "out", "secret"] {
            scratch.dir(&format!("root/{folder}"));
        }
        fs::write(format!("{root}/secret/s"), "secret").unwrap();
        alice.admits(&bob, &format!("bob {}", options.replace("ROOT", &root)));
        let server = Server::begin_as(&alice.0, &["serve", "--root", &root]);
        Self { scratch, root, alice, bob, server }
    }

    fn url(&self, path: &str) -> String {
        format!("udt://{}/{path}", self.server.address)
    }

    fn runs(&self, verb: &str, options: &[&str], paths: &[&str]) -> Run {
        let urls: Vec<String> = paths
            .iter()
            .map(|path| match path.starts_with('/') {
                true => (*path).to_owned(),
                false => self.url(path),
            })
            .collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        self.bob.runs(&[&[verb, "--host-key-policy", "accept-new"], options, &urls].concat())
    }

    /// Tries to put a link in the place of `out`, and then to read and to change what is behind it.
    fn attacks(&self, target: &str) {
        let (here, tree) = (self.scratch.dir("here"), format!("{}/.", self.scratch.dir("tree")));
        let _ = fs::remove_file(format!("{tree}/out"));
        symlink(target, format!("{tree}/out")).unwrap();
        for (verb, options, paths) in [
            ("copy", &["-a"][..], &[&*tree, "in/"][..]),
            ("rm", &["-r"], &["out"]),
            ("mv", &[], &["out", "in/away"]),
            ("mv", &[], &["in/out", "out"]),
            ("copy", &["-a"], &[&*tree, ""]),
            ("copy", &["-a", "--delete"], &[&*tree, ""]),
        ] {
            let _ = self.runs(verb, options, paths);
            assert!(fs::symlink_metadata(format!("{}/out", self.root)).unwrap().is_dir(), "{verb} {paths:?}");
        }
        let moved = fs::read_link(format!("{}/out/out", self.root));
        assert_eq!(moved.unwrap().to_str(), Some(target), "it is stored within the directories of the key");
        for path in ["out/secret/s", "out/s", "out/out/s", "out/out/secret/s", "secret/s"] {
            for (verb, options, paths) in
                [("cat", &[][..], &[path][..]), ("rm", &[], &[path]), ("copy", &["-r"], &[path, &*here])]
            {
                let run = self.runs(verb, options, paths);
                assert!(run.code != 0 && run.stdout != b"secret", "{verb} {path}: {}", run.stderr);
            }
        }
        self.runs("rm", &[], &["out/out"]).succeeds();
        assert!(self.scratch.names("here").is_empty());
        assert_eq!(fs::read_to_string(format!("{}/secret/s", self.root)).unwrap(), "secret");
    }
}

#[test]
fn a_client_cannot_leave_the_directories_of_its_key_by_replacing_them() {
    let world = World::new();
    world.attacks(".");
    // After the keys are read again, the directories are those of before.
    world.server.signal(Signal::HUP);
    world.attacks("secret");
    world.runs("mkdir", &[], &["out/new"]).succeeds();
    world.runs("rm", &["-r"], &["out/new"]).succeeds();
    world.runs("copy", &["-r"], &["in", &world.scratch.dir("back")]).succeeds();
    assert_eq!(world.scratch.names("back"), ["in"], "it is sent under its own name");
}

#[test]
fn what_is_put_in_the_place_of_a_directory_of_a_key_counts_after_sighup_alone() {
    let mut world = World::new();
    let at = |name: &str| format!("{}/{name}", world.root);
    fs::write(at("out/old"), "old").unwrap();
    fs::rename(at("out"), at("aside")).unwrap();
    symlink("secret", at("out")).unwrap();
    assert_eq!(world.runs("cat", &[], &["out/old"]).stdout, b"old");
    for path in ["out/s", "out/../secret/s"] {
        assert_ne!(world.runs("cat", &[], &[path]).code, 0);
    }
    world.runs("copy", &["-r"], &["out", &world.scratch.dir("here")]).fails(5, &["SIGHUP"]);
    world.server.signal(Signal::HUP);
    let warning = world.server.wait_for("warning")["message"].as_str().unwrap().to_owned();
    assert!(warning.contains("path=") && warning.contains("symbolic link") && warning.contains("/out"), "{warning}");
    let refused = (0..50).map(|_| world.runs("cat", &[], &["out/old"])).find(|run| run.code != 0);
    refused.unwrap().fails(5, &["may not read there"]);
    fs::remove_file(at("out")).unwrap();
    fs::create_dir(at("out")).unwrap();
    fs::write(at("out/new"), "new").unwrap();
    world.server.signal(Signal::HUP);
    let read = (0..50).map(|_| world.runs("cat", &[], &["out/new"])).find(|run| run.code == 0);
    assert_eq!(read.unwrap().stdout, b"new");
}

#[test]
fn a_client_cannot_take_away_the_directory_of_another_key_or_one_above_it() {
    let world = World::with("path=ROOT/in,write,delete");
    let carol = User::new(&world.scratch, "carol");
    let keys = world.alice.file("authorized_keys");
    let line = format!("{} carol path={}/in/deep/carol,write\n", carol.key("show"), world.root);
    fs::create_dir(format!("{}/in/deep/carol", world.root)).unwrap();
    fs::write(&keys, fs::read_to_string(&keys).unwrap() + &line).unwrap();
    world.server.signal(Signal::HUP);
    let (empty, file) = (world.scratch.dir("empty"), world.scratch.file("file", 10));
    let admitted = || carol.runs(&["ls", "--host-key-policy", "accept-new", &world.url("in/deep/carol")]).code == 0;
    assert!((0..50).any(|_| admitted()));
    for path in ["in/deep/carol", "in/deep"] {
        world.runs("rm", &["-r"], &[path]).fails(5, &["a key of this server"]);
        world.runs("mv", &[], &[path, "in/away"]).fails(5, &["a key of this server"]);
    }
    world.runs("copy", &[], &[&file, "in/deep/other"]).succeeds();
    let run = world.runs("copy", &["-r", "--delete"], &[&format!("{empty}/."), "in/"]);
    run.fails(3, &["deep", "a key of this server"]);
    assert_eq!(world.scratch.names("root/in"), ["deep"], "what no key names is removed");
    assert!(admitted());
}

#[test]
fn a_missing_directory_of_a_key_grants_nothing_and_is_told() {
    let mut world = World::with("path=ROOT/none,write path=/etc");
    let warnings: Vec<String> =
        (0..2).map(|_| world.server.wait_for("warning")["message"].as_str().unwrap().to_owned()).collect();
    // In the order of the paths: where the root is decides which one is first.
    let told = |words: [&str; 2]| warnings.iter().any(|warning| words.iter().all(|word| warning.contains(word)));
    assert!(told(["path=/etc", "not below the root"]), "{warnings:?}");
    assert!(told(["/none", "SIGHUP"]), "{warnings:?}");
    let file = world.scratch.file("file", 10);
    for to in ["none", "none/", "none/file"] {
        world.runs("copy", &[], &[&file, to]).fails(5, &["may not write there"]);
    }
    world.runs("ls", &[], &["none"]).fails(5, &["may not read there"]);
    world.runs("ls", &[], &[""]).fails(5, &["may not read there"]);
    assert_eq!(world.scratch.names("root"), ["in", "out", "secret"]);
}
