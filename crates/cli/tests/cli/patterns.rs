//! Patterns in remote paths, and home directories: expanded by the program there, never by a shell.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::over_ssh::{Far, fails, lines, same};
use crate::process::{Run, Scratch, Server, farhaul};
use crate::secured::User;

const SIZE: usize = 1000;

/// Logs in a directory of this name: two that `*.gz` matches, and others.
fn logs(scratch: &Scratch, at: &str) -> String {
    let logs = scratch.dir(&format!("{at}/logs"));
    for name in ["b.gz", "a.gz", ".hidden.gz", "c.txt"] {
        scratch.file(&format!("{at}/logs/{name}"), SIZE);
    }
    logs
}

/// A server of a directory with logs.
struct Serving {
    scratch: Scratch,
    server: Server,
}

impl Serving {
    fn new() -> Self {
        let scratch = Scratch::new();
        logs(&scratch, "root");
        let server = Server::begin(&["serve", "--root", &scratch.at("root")]);
        Self { scratch, server }
    }

    fn copies(&self, options: &[&str], from: &[&str], to: &str) -> Run {
        let from: Vec<String> = from.iter().map(|path| format!("udt://{}/{path}", self.server.address)).collect();
        let from: Vec<&str> = from.iter().map(String::as_str).collect();
        farhaul(&[&["copy", "--plain", "--json"][..], options, &from, &[to]].concat())
    }
}

#[test]
fn a_pattern_brings_the_files_of_a_server_that_match_it() {
    let serving = Serving::new();
    let here = serving.scratch.dir("here");
    serving.copies(&[], &["logs/*.gz"], &here).succeeds();
    assert_eq!(serving.scratch.names("here"), ["a.gz", "b.gz"]);
    assert!(same(&format!("{here}/a.gz"), &serving.scratch.at("root/logs/a.gz")));
    serving.copies(&[], &["l?gs/[!ab]*", "logs/[a].gz"], &serving.scratch.at("new")).succeeds();
    assert_eq!(serving.scratch.names("new"), ["a.gz", "c.txt"], "several sources make a directory");
    serving.copies(&["-r"], &["l*"], &serving.scratch.dir("trees")).succeeds();
    assert_eq!(serving.scratch.names("trees/logs").len(), 4);
}

#[test]
fn a_pattern_without_a_match_fails_like_a_missing_file_and_is_named() {
    let serving = Serving::new();
    let here = serving.scratch.dir("here");
    let missing = serving.copies(&[], &["logs/missing"], &here);
    let run = serving.copies(&[], &["logs/*.zip"], &here);
    assert_eq!((missing.code, run.code), (3, 3));
    run.fails(3, &["logs/*.zip was not copied", "nothing matches this pattern", "on the other side"]);
    let run = serving.copies(&[], &["logs/*.zip", "logs/a.gz"], &here);
    assert_eq!((run.code, serving.scratch.names("here").len()), (3, 0));
    assert!(run.records().iter().any(|record| record["path"] == "logs/*.zip"), "{}", run.stderr);
}

#[test]
fn a_name_with_these_characters_wins_and_an_escaped_one_is_no_pattern() {
    let serving = Serving::new();
    let scratch = &serving.scratch;
    let odd = scratch.file("root/logs/*.gz", 10);
    let to = scratch.at("new");
    serving.copies(&[], &["logs/*.gz"], &to).succeeds();
    assert!(same(&odd, &to), "one source may get a new name");
    fs::remove_file(&odd).unwrap();
    for escaped in ["logs/%2A.gz", "logs/\\*.gz"] {
        let run = serving.copies(&[], &[escaped], &scratch.dir("here"));
        assert_eq!((run.code, scratch.names("here").len()), (3, 0), "{escaped}");
    }
    scratch.file("root/logs/[x]", 10);
    serving.copies(&[], &["logs/%5Bx]", "logs/*.txt"], &scratch.dir("both")).succeeds();
    assert_eq!(scratch.names("both"), ["[x]", "c.txt"]);
}

#[test]
fn a_target_for_one_entry_takes_a_pattern_that_matches_one() {
    let serving = Serving::new();
    let scratch = &serving.scratch;
    let (new, one) = (scratch.at("new"), scratch.at("root/logs/c.txt"));
    serving.copies(&[], &["logs/*.txt"], &new).succeeds();
    assert!(same(&one, &new));
    let run = serving.copies(&[], &["logs/*.gz"], &new);
    run.fails(3, &["logs/*.gz was not copied", "it matches 2 names", "write TARGET/"]);
    assert!(same(&one, &new), "nothing was replaced");
    let url = format!("udt://{}/logs/*.txt", serving.server.address);
    let run = farhaul(&["copy", "--plain", &url, "-"]);
    run.succeeds();
    assert_eq!(run.stdout, fs::read(&one).unwrap());
    farhaul(&["copy", "--plain", &url.replace(".txt", ".gz"), "-"]).fails(3, &["it matches 2 names"]);
}

#[test]
fn no_pattern_leaves_the_root_or_the_paths_of_a_key() {
    let scratch = Scratch::new();
    let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
    logs(&scratch, "root");
    scratch.dir("root/logs*");
    scratch.dir("outside");
    scratch.file("outside/secret.gz", SIZE);
    for link in ["root/way", "root/logs*/way"] {
        symlink(scratch.at("outside"), scratch.at(link)).unwrap();
    }
    symlink(scratch.at("outside/secret.gz"), scratch.at("root/logs*/link.gz")).unwrap();
    // The granted directory has a name that is a pattern, too.
    alice.admits(&bob, &format!("bob path={}/logs*", scratch.at("root")));
    let server = Server::begin_as(&alice.0, &["serve", "--root", &scratch.at("root")]);
    let here = scratch.dir("here");
    let copies = |user: &User, path: &str| {
        user.runs(&["copy", "--host-key-policy", "accept-new", &format!("udt://{}/{path}", server.address), &here])
    };
    copies(&bob, "logs*/*.txt").fails(3, &["nothing matches"]);
    copies(&bob, "*/*.txt").fails(5, &["may not read there"]);
    copies(&bob, "logs*/l*").fails(3, &["link.gz", "symbolic link"]);
    for path in ["w*/*", "*/secret.gz", "logs*/w*/*", "../*"] {
        assert_ne!(copies(&alice, path).code, 0, "{path}");
    }
    assert!(scratch.names("here").is_empty());
    copies(&alice, "*/*.txt").succeeds();
}

#[test]
fn a_pattern_that_matches_too_much_is_refused_with_advice() {
    let serving = Serving::new();
    let many = serving.scratch.dir("root/many");
    for index in 0..100_001 {
        fs::File::create(format!("{many}/{index}")).unwrap();
    }
    let run = serving.copies(&[], &["many/*"], &serving.scratch.dir("here"));
    run.fails(3, &["many/*", "more than 100000", "-r"]);
    assert!(serving.scratch.names("here").is_empty());
    serving.copies(&[], &["many/1000?"], &serving.scratch.at("here/")).succeeds();
    assert_eq!(serving.scratch.names("here").len(), 10);
}

#[test]
fn a_pattern_over_ssh_is_expanded_by_the_remote_program() {
    // Waits for eight logins.
    let home = "ForceCommand cd 'HOME_FOLDER' && HOME='HOME_FOLDER' && export HOME && eval \"$SSH_ORIGINAL_COMMAND\"";
    let Some(far) = Far::new(home) else { return };
    let scratch = &far.scratch;
    let there = logs(scratch, "home");
    far.copies(&format!("'far:logs/*.gz' '{}'", scratch.dir("relative"))).succeeds();
    assert_eq!(scratch.names("relative"), ["a.gz", "b.gz"]);
    far.copies(&format!("'far:~/logs/*.[tg]*' '{}'", scratch.dir("home-path"))).succeeds();
    assert_eq!(scratch.names("home-path"), ["a.gz", "b.gz", "c.txt"]);
    far.copies(&format!("-r 'far:{there}/../l*s' '{}'", scratch.dir("tree"))).succeeds();
    assert_eq!(scratch.names("tree/logs").len(), 4);
    // To a shell, this pattern would be a command.
    let trap = scratch.file("home/logs/$(touch trap);*", 10);
    far.copies(&format!("'far:logs/$(touch trap);?' '{}'", scratch.dir("trap"))).succeeds();
    assert!(same(&trap, &scratch.at("trap/$(touch trap);*")) && !Path::new(&scratch.at("home/trap")).exists());
    far.copies(&format!("'far:logs/$(touch trap);\\*' '{}'", scratch.at("renamed"))).succeeds();
    assert!(same(&trap, &scratch.at("renamed")));
    symlink(&trap, scratch.at("home/logs/link.gz")).unwrap();
    let run = far.copies(&format!("'far:logs/l*.gz' '{}'", scratch.dir("link")));
    fails(&run, 3, &["link.gz", "symbolic link"]);
    let run = far.copies(&format!("'far:logs/*.zip' '{}'", scratch.dir("nothing")));
    fails(&run, 3, &["logs/*.zip was not copied", "nothing matches this pattern"]);
    let run = far.copies(&format!("'far:logs/*.gz' '{}'", scratch.at("one")));
    fails(&run, 3, &["it matches 3 names"]);
}

// Waits for five runs, each with a login at one or two hosts.
#[test]
fn a_pattern_goes_between_two_remote_hosts() {
    let Some(far) = Far::new("") else { return };
    let scratch = &far.scratch;
    let (from, there) = (logs(scratch, "from"), scratch.dir("there"));
    far.copies(&format!("'far:{from}/*.gz' 'other:{there}'")).succeeds();
    assert_eq!(scratch.names("there"), ["a.gz", "b.gz"]);
    let run = far.copies(&format!("'far:{from}/*.gz' 'other:{}'", scratch.at("new")));
    fails(&run, 3, &["it matches 2 names", "write TARGET/ for a directory", "nothing was copied"]);
    assert!(!Path::new(&scratch.at("new")).exists());
    far.copies(&format!("'far:{from}/*.gz' 'other:{}/'", scratch.at("new"))).succeeds();
    assert_eq!(scratch.names("new"), ["a.gz", "b.gz"]);
    far.copies(&format!("'far:{from}/*.txt' 'other:{}'", scratch.at("one"))).succeeds();
    assert!(same(&format!("{from}/c.txt"), &scratch.at("one")));
    let run = far.copies(&format!("'far:{from}/*.zip' 'other:{there}'"));
    fails(&run, 3, &["*.zip", "nothing matches this pattern", "nothing was copied"]);
}

// Waits for six runs, each with a login at one or two hosts.
#[test]
fn a_tilde_is_a_home_directory_there_and_an_unknown_user_is_one_error() {
    let Some(far) = Far::new("") else { return };
    let scratch = &far.scratch;
    let passwd = fs::read_to_string("/etc/passwd").unwrap();
    let home = passwd.lines().find(|line| line.starts_with("bin:")).and_then(|line| line.split(':').nth(5));
    if let Some(home) = home.filter(|home| Path::new(home).join("true").exists()) {
        far.copies(&format!("'far:~bin/tru[e]' '{}'", scratch.dir("true"))).succeeds();
        assert!(same(&format!("{home}/true"), &scratch.at("true/true")));
        far.copies(&format!("far:~bin/true '{}'", scratch.at("copy"))).succeeds();
    } else {
        println!("skipped: no user bin with a program there");
    }
    let file = scratch.file("file", SIZE);
    let missing = "~nobody-of-this-name/x";
    for arguments in [
        format!("far:{missing} '{}'", scratch.at("back")),
        format!("'{file}' far:{missing}"),
        format!("'far:{file}' other:{missing}"),
        format!("far:{missing} 'other:{}'", scratch.at("back")),
    ] {
        let run = far.near(&format!("exec $F copy --ssh \"$S\" --remote-path $F {arguments}"));
        fails(&run, 3, &[": there is no user nobody-of-this-name", "./~nobody-of-this-name"]);
        assert_eq!(lines(&run).len(), 1, "{}", run.stderr);
    }
    assert!(!Path::new(&scratch.at("back")).exists());
}
