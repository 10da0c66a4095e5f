//! The daemon: its settings file, its keys, the service manager, the confinement.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use farhaul_udp::Clock;
use rustix::process::Signal;

use crate::foreign_disk::{Foreign, Habits};
use crate::process::{Reporting, Run, Scratch, Started, farhaul, farhaul_where};

/// A daemon on a port of its own, with this file of settings.
pub(crate) fn begin(file: &str) -> Reporting {
    Started::begin(&["serve", "--json", "--config", file], Stdio::null()).after("start")
}

pub(crate) fn settings(scratch: &Scratch, more: &str) -> String {
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("etc")));
    fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n{more}\n")).unwrap();
    file
}

/// The address of a daemon as a URL.
pub(crate) fn url(daemon: &Reporting) -> String {
    format!("udt://{}/", daemon.record["local"].as_str().unwrap())
}

#[test]
fn a_daemon_makes_its_key_on_the_first_start_and_keeps_it() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let first = begin(&file);
    let key = first.record["key"].clone();
    assert_eq!(fs::metadata(scratch.at("etc/host_key")).unwrap().mode() & 0o777, 0o600);
    let shown = farhaul(&["key", "fingerprint", &scratch.at("etc/host_key")]).stdout;
    assert_eq!(String::from_utf8(shown).unwrap().trim(), key.as_str().unwrap());
    first.signal(Signal::TERM);
    assert_eq!(first.end().code, 143);
    let second = begin(&file);
    assert_eq!(second.record["key"], key);
    second.signal(Signal::TERM);
    second.end();
}

#[test]
fn a_daemon_with_a_setting_that_it_does_not_know_does_not_start() {
    let scratch = Scratch::new();
    for (line, words) in [
        ("rooot = \"/\"", &["serve.toml", "rooot"][..]),
        ("max-sessions = \"many\"", &["max-sessions"]),
        ("plain = true", &["never plain", "[plain]"]),
        ("[plain]", &["serve.toml [plain]", "allow"]),
        ("[plain]\nallow = [\"10.0.0.1/8\"]", &["10.0.0.1/8", "prefix"]),
        ("[plain]\nallow = [\"10.0.0.0/8\"]\nwrites = true", &["[plain]", "writes"]),
        ("[plain]\nallow = [\"10.0.0.0/8\"]\nrate = \"fast\"", &["[plain]", "rate"]),
        ("protocol = \"tsunami\"\n[plain]\nallow = []", &["[plain]", "udt"]),
        ("[host]", &["serve.toml", "host"]),
    ] {
        farhaul(&["serve", "--config", &settings(&scratch, line)]).fails(2, words);
    }
    farhaul(&["serve", "--config", &scratch.at("nothing")]).fails(7, &["there is no file"]);
    let file = settings(&scratch, "");
    fs::write(scratch.at("etc/authorized_keys"), "ssh-ed25519 AAAA alice\n").unwrap();
    farhaul(&["serve", "--config", &file]).fails(2, &["authorized_keys", "line 1"]);
}

#[test]
fn clients_are_admitted_by_a_file_that_is_read_again_and_keep_to_their_limits() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 500_000));
    let client = |arguments: &[&str]| farhaul_where(&[("XDG_CONFIG_HOME", &home)], arguments);
    let mut daemon = begin(&file);
    let url = url(&daemon);
    let copy = || client(&["copy", "--json", "--skip", "never", "--host-key-policy", "accept-new", &sent, &url]);
    copy().fails(5, &["does not admit"]);
    let key = String::from_utf8(client(&["key", "show"]).stdout).unwrap();
    let grant = |options: &str| {
        let line = format!("{} me path={},write {options}\n", key.trim(), scratch.at("root"));
        fs::write(scratch.at("etc/authorized_keys"), line).unwrap();
    };
    grant("rate=8mbit");
    daemon.signal(Signal::HUP);
    // The signal needs a moment.
    let admitted = (0..50).map(|_| copy()).find(|run| run.code != 5).unwrap();
    admitted.succeeds();
    let seconds = admitted.end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
    grant("bytes=100kB");
    daemon.signal(Signal::HUP);
    let refused = (0..50).map(|_| copy()).find(|run| run.code != 0).unwrap();
    refused.fails(3, &["bytes=SIZE"]);
    // A mistake keeps the keys of before.
    fs::write(scratch.at("etc/authorized_keys"), "nonsense\n").unwrap();
    daemon.signal(Signal::HUP);
    while !daemon.next("warning")["message"].as_str().unwrap().contains("keys of before") {}
    copy().fails(3, &["bytes=SIZE"]);
    daemon.signal(Signal::TERM);
    daemon.end();
}

/// Lets the user of this home write to the root of the daemon of [`settings`].
pub(crate) fn admit_writer(scratch: &Scratch, home: &str) {
    admit(scratch, home, "");
}

/// The same with further options.
fn admit(scratch: &Scratch, home: &str, options: &str) {
    let client = |verb| farhaul_where(&[("XDG_CONFIG_HOME", home)], &["key", verb]);
    client("new").succeeds();
    let key = String::from_utf8(client("show").stdout).unwrap();
    let line = format!("{} me path={},write {options}\n", key.trim(), scratch.at("root"));
    fs::write(scratch.at("etc/authorized_keys"), line).unwrap();
}

/// A daemon that admits one user with these options.
struct Capped {
    scratch: Scratch,
    home: String,
    daemon: Reporting,
    url: String,
}

impl Capped {
    fn with(options: &str) -> Self {
        let scratch = Scratch::new();
        let (home, file) = (scratch.dir("home"), settings(&scratch, ""));
        admit(&scratch, &home, options);
        let daemon = begin(&file);
        let url = url(&daemon);
        Self { scratch, home, daemon, url }
    }

    fn push(&self, arguments: &[&str]) -> Run {
        copy(&self.home, false, &[arguments, &[&self.url]].concat())
    }

    fn pull(&self, name: &str) -> Run {
        copy(&self.home, false, &["-r", &format!("{}{name}", self.url), &self.scratch.dir("got")])
    }
}

impl Drop for Capped {
    fn drop(&mut self) {
        self.daemon.signal(Signal::TERM);
    }
}

#[test]
fn b19_all_sessions_of_a_key_together_are_no_faster_than_its_rate() {
    let here = Capped::with("rate=8mbit");
    let files = ["one", "two"].map(|name| here.scratch.file(name, 500_000));
    let seconds = thread::scope(|scope| {
        let copies = files.each_ref().map(|file| scope.spawn(|| here.push(&[file])));
        copies.map(|copy| copy.join().unwrap().end()["seconds"].as_f64().unwrap())
    });
    assert!(seconds[0].max(seconds[1]) > 0.9, "1 MB at 8 Mbit/s takes a second: {seconds:?}");
    let seconds = here.pull("one").end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
}

#[test]
fn b19_a_key_has_no_more_sessions_at_a_time_than_its_line_says() {
    let here = Capped::with("rate=4mbit sessions=1");
    let files = ["one", "two", "three"].map(|name| here.scratch.file(name, 1_000_000));
    let mut runs = thread::scope(|scope| {
        let copies = files.each_ref().map(|file| scope.spawn(|| here.push(&[file])));
        copies.map(|copy| copy.join().unwrap())
    });
    runs.sort_by_key(|run| run.code);
    let [first, others @ ..] = &runs;
    first.succeeds();
    others.iter().for_each(|other| other.fails(1, &["as many sessions as your key is allowed"]));
    assert_eq!(here.scratch.names("root").len(), 1);
}

#[test]
fn b19_a_key_moves_no_more_bytes_however_often_it_connects() {
    let here = Capped::with("bytes=1MB");
    let files = ["one", "two"].map(|name| here.scratch.file(name, 600_000));
    here.push(&[&files[0]]).succeeds();
    here.push(&[&files[1]]).fails(3, &["bytes=SIZE"]);
    here.pull("one").fails(3, &["bytes=SIZE"]);
    assert!(!here.scratch.names("root").contains(&"two".to_owned()));
}

#[test]
fn b19_files_in_the_place_of_hard_links_count_against_the_bytes_of_a_key() {
    let scratch = Scratch::new();
    let habits = Habits { hard_links: false, ..Habits::LIKE_EXT4 };
    let Some(_disk) = Foreign::mount(scratch.dir("root"), habits) else { return };
    let (home, file) = (scratch.dir("home"), settings(&scratch, ""));
    admit(&scratch, &home, "bytes=1500kB");
    let source = scratch.dir("source");
    let first = scratch.file("source/0", 600_000);
    ["1", "2"].iter().for_each(|name| fs::hard_link(&first, scratch.at(&format!("source/{name}"))).unwrap());
    let daemon = begin(&file);
    copy(&home, false, &["-a", &source, &url(&daemon)]).fails(3, &["bytes=SIZE"]);
    assert_eq!(scratch.names("root/source"), ["0", "1"]);
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn b19_a_key_moves_no_more_files_however_often_it_connects() {
    let mut here = Capped::with("files=4");
    let tree = here.scratch.dir("tree");
    for name in ["tree/deep", "tree/deep/deeper"] {
        here.scratch.dir(name);
    }
    // Three directories and an empty file.
    fs::write(here.scratch.at("tree/deep/empty"), "").unwrap();
    here.push(&["-r", &tree]).succeeds();
    let more = here.scratch.file("more", 10);
    here.push(&[&more]).fails(3, &["no more files", "files=N"]);
    here.pull("tree").fails(3, &["no more files"]);
    let empty = here.scratch.dir("void");
    assert_ne!(here.push(&["-r", &empty]).code, 0);
    assert_eq!(here.scratch.names("root"), ["tree"]);
    // The owner of the server gives them again.
    here.daemon.signal(Signal::HUP);
    let pulled = (0..50).map(|_| here.pull("tree")).find(|run| run.code == 0);
    assert!(pulled.is_some() && here.scratch.names("got/tree/deep") == ["deeper", "empty"]);
    here.push(&[&more]).fails(3, &["no more files"]);
    // What a refused session found is not sent as if it were all.
    let ended = (0..9).map(|_| here.daemon.next("end")).find(|end| end["failed"] == 1 && end["direction"] == "sent");
    assert_eq!(ended.unwrap()["exit_code"], 3);
}

#[test]
fn an_unknown_key_reads_and_does_not_write_where_any_client_is_admitted() {
    let scratch = Scratch::new();
    let (home, sent, root) = (scratch.dir("home"), scratch.file("sent", 1_000_000), scratch.dir("root"));
    fs::copy(&sent, scratch.at("root/kept")).unwrap();
    let key = scratch.at("key");
    let by_hand = ["--root", &root, "--listen", "127.0.0.1:0", "--any-client", "--rate", "8mbit", "--key", &key];
    let file = settings(&scratch, "any-client = true");
    for (options, share) in [(&by_hand[..], "8.00 Mbit/s"), (&["--config", &file], "1.00 Gbit/s")] {
        let mut server = Started::begin(&[&["serve"], options].concat(), Stdio::null());
        let words = server.says("serving");
        assert!(words.contains(&format!("unknown keys only read, with {share}")), "{words}");
        let (_, at) = words.split_once(" on ").unwrap();
        let url = format!("udt://{}/", at.split(' ').next().unwrap());
        let read = copy(&home, false, &[&format!("{url}kept"), &scratch.at("got")]);
        read.succeeds();
        let seconds = read.end()["seconds"].as_f64().unwrap();
        assert!(share == "1.00 Gbit/s" || seconds > 0.9, "1 MB at 8 Mbit/s takes a second: {seconds}");
        copy(&home, false, &[&sent, &url]).fails(5, &["may not write there", "path=DIR,write"]);
        server.signal(Signal::TERM);
        server.end();
    }
    assert_eq!(
        (scratch.names("root"), fs::read(scratch.at("got")).unwrap().len()),
        (vec!["kept".to_owned()], 1_000_000)
    );
}

/// The whole of 127.0.0.0/8 is this host, and its clients call from 127.0.0.1.
const HERE: &str = "[plain]\nallow = [\"127.0.0.0/8\", \"2001:db8::/32\"]";

/// Lets a client that trusts any server copy to and from a daemon.
pub(crate) fn copy(home: &str, plain: bool, arguments: &[&str]) -> Run {
    let security: &[&str] = if plain { &["--plain"] } else { &["--host-key-policy", "accept-new"] };
    let all = [&["copy", "--json", "--connect-timeout", "1s"], security, arguments].concat();
    farhaul_where(&[("XDG_CONFIG_HOME", home)], &all)
}

#[test]
fn a_plain_client_of_an_allowed_network_reads_and_does_not_write() {
    let scratch = Scratch::new();
    let file = settings(&scratch, HERE);
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 300_000));
    admit_writer(&scratch, &home);
    fs::copy(&sent, scratch.at("root/kept")).unwrap();
    let mut daemon = begin(&file);
    let shown = &daemon.record["settings"]["plain"];
    assert_eq!(shown["allow"], serde_json::json!(["127.0.0.0/8", "2001:db8::/32"]));
    assert_eq!((&shown["write"], &shown["rate_bps"]), (&false.into(), &1_000_000_000_u64.into()));
    assert_eq!(daemon.record["security"], "tls1.3");
    let url = url(&daemon);
    let from = format!("{url}kept");
    let read = copy(&home, true, &[&from, &scratch.at("got")]);
    read.succeeds();
    assert_eq!(read.end()["security"], "none");
    assert_eq!(fs::read(scratch.at("got")).unwrap(), fs::read(&sent).unwrap());
    let warning = daemon.next("warning");
    let words = warning["message"].as_str().unwrap();
    assert!(words.contains("127.0.0.1") && words.contains("in plain"), "{words}");
    assert_eq!(daemon.next("end")["security"], "none");
    let written = copy(&home, true, &[&sent, &url]);
    assert_ne!(written.code, 0);
    assert!(written.stderr.contains("may only read"), "{}", written.stderr);
    assert_eq!(scratch.names("root"), ["kept"]);
    // Clients with a key have all that they had.
    copy(&home, false, &[&sent, &url]).succeeds();
    assert_eq!(scratch.names("root"), ["kept", "sent"]);
    let ended = (0..5).map(|_| daemon.next("end")).find(|end| end["direction"] == "received").unwrap();
    assert_eq!(ended["security"], "tls1.3");
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn a_plain_client_writes_within_the_rate_if_the_file_says_so() {
    let scratch = Scratch::new();
    let file = settings(&scratch, &format!("{HERE}\nwrite = true\nrate = \"8mbit\""));
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 500_000));
    let daemon = begin(&file);
    let run = copy(&home, true, &[&sent, &url(&daemon)]);
    run.succeeds();
    assert_eq!(scratch.names("root"), ["sent"]);
    let seconds = run.end()["seconds"].as_f64().unwrap();
    assert!(seconds > 0.45, "500 kB at 8 Mbit/s take half a second: {seconds}");
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn networks_of_plain_clients_are_read_again_by_sighup() {
    let scratch = Scratch::new();
    let elsewhere = "any-client = true\n[plain]\nallow = [\"192.0.2.0/24\"]";
    let file = settings(&scratch, elsewhere);
    let home = scratch.dir("home");
    fs::copy(scratch.file("sent", 1_000), scratch.at("root/kept")).unwrap();
    let mut daemon = begin(&file);
    let from = format!("{}kept", url(&daemon));
    let read = |plain| copy(&home, plain, &[&from, &scratch.at("got")]);
    read(true).fails(4, &["no answer"]);
    read(false).succeeds();
    let write = |more: &str| {
        let root = scratch.at("root");
        fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n{more}\n")).unwrap();
        daemon.signal(Signal::HUP);
    };
    write(&format!("any-client = true\n{HERE}"));
    let admitted = (0..50).map(|_| read(true)).find(|run| run.code == 0);
    admitted.expect("the signal needs a moment").succeeds();
    // A mistake keeps the networks of before.
    write("any-client = true\n[plain]\nallow = [\"everybody\"]");
    read(true).succeeds();
    write(elsewhere);
    let refused = (0..50).map(|_| read(true)).find(|run| run.code != 0);
    refused.expect("the signal needs a moment").fails(4, &["no answer"]);
    read(false).succeeds();
    while !daemon.next("warning")["message"].as_str().unwrap().contains("plain clients of before") {}
    daemon.signal(Signal::TERM);
    daemon.end();
}

#[test]
fn the_kernel_itself_keeps_a_daemon_within_its_root() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let daemon = begin(&file);
    let landlock = daemon.record["settings"]["landlock"].as_str().unwrap().to_owned();
    // The thread that serves is one of those that were started after the confinement.
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.process())).unwrap();
    assert!(landlock == "none" || status.contains("NoNewPrivs:\t1"), "{landlock}: {status}");
    daemon.signal(Signal::TERM);
    daemon.end();
    // Links out of the root are refused with and without the kernel's help.
    let root = scratch.at("root");
    symlink("/etc", format!("{root}/link")).unwrap();
    for options in [&[][..], &["--unconfined"]] {
        let all = [&["serve", "--json", "--plain", "--listen", "127.0.0.1:0", "--root", &root], options].concat();
        let server = Started::begin(&all, Stdio::null()).after("start");
        let from = format!("{}link/hostname", url(&server));
        assert_eq!(farhaul(&["copy", "--plain", &from, &scratch.at("stolen")]).code, 3);
        assert!(fs::metadata(scratch.at("stolen")).is_err());
        server.signal(Signal::TERM);
        server.end();
    }
}

/// The value of a field in the status of a process or thread.
fn status(folder: &str, field: &str) -> String {
    let text = fs::read_to_string(format!("{folder}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().to_owned()
}

#[test]
fn a_daemon_gives_up_its_capabilities_and_hides_its_memory() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let by_hand = ["--root", &scratch.at("root"), "--listen", "127.0.0.1:0", "--key", &scratch.at("key")];
    let own = status("/proc/self", "CapEff");
    let own_word = if own == "0000000000000000" { "none" } else { "kept" };
    for (options, kept, hidden) in [
        (&["--config", &file][..], false, true),
        (&["--config", &file, "--unconfined"], true, false),
        (&by_hand, true, true),
        (&[&by_hand[..], &["--unconfined"]].concat(), true, false),
    ] {
        let server = Started::begin(&[&["serve", "--json"], options].concat(), Stdio::null()).after("start");
        let settings = &server.record["settings"];
        assert_eq!(settings["capabilities"], if kept { own_word } else { "none" }, "{options:?}");
        assert_eq!(settings["dumpable"], !hidden, "{options:?}");
        let process = format!("/proc/{}", server.process());
        let threads: Vec<_> = fs::read_dir(format!("{process}/task")).unwrap().map(|one| one.unwrap().path()).collect();
        assert!(threads.len() > 3);
        for thread in threads {
            let folder = thread.to_str().unwrap();
            for set in ["CapEff", "CapPrm", "CapInh"] {
                let value = status(folder, set);
                let is_kept = kept && value == status("/proc/self", set);
                assert!(
                    is_kept || value == "0000000000000000",
                    "{options:?} {}: {set} {value}",
                    status(folder, "Name")
                );
            }
        }
        // proc(5): the files of a process that may not be dumped belong to root, and its own user may not read them.
        let user = status(&process, "Uid").split_whitespace().next().unwrap().to_owned();
        let owner = fs::metadata(format!("{process}/environ")).unwrap().uid().to_string();
        assert_eq!(owner, if hidden { "0" } else { &user }, "{options:?}");
        server.signal(Signal::TERM);
        server.end();
    }
}

#[test]
fn a_flood_of_forged_datagrams_is_one_warning() {
    let scratch = Scratch::new();
    let mut daemon = begin(&settings(&scratch, ""));
    let to = daemon.record["local"].as_str().unwrap().to_owned();
    let (socket, is_heard) = (UdpSocket::bind("127.0.0.1:0").unwrap(), AtomicBool::new(false));
    let (forged, clock) = ([0x90; 100], Clock::start());
    let until = clock.now() + Duration::from_secs(30);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_heard.load(Ordering::Acquire) && clock.now() < until {
                // A full queue drops them, which is all the same.
                let _ = socket.send_to(&forged, &to);
            }
        });
        let warning = daemon.next("warning")["message"].as_str().unwrap().to_owned();
        // Another second of it is no second warning.
        thread::park_timeout(Duration::from_millis(2_500));
        is_heard.store(true, Ordering::Release);
        assert!(warning.contains("datagrams a second are forged"), "{warning}");
    });
    daemon.signal(Signal::TERM);
    let rest = daemon.end();
    assert!(rest.records().iter().all(|record| record["event"] != "warning"), "{}", rest.stderr);
}

#[test]
fn a_daemon_does_not_serve_its_own_keys() {
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("root/etc")));
    fs::write(&file, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\n")).unwrap();
    farhaul(&["serve", "--config", &file]).fails(2, &["serve.toml", "below --root", "elsewhere"]);
    let apart = format!("{}/serve.toml", scratch.dir("etc"));
    fs::write(&apart, format!("root = \"{root}\"\nlisten = \"127.0.0.1:0\"\nkey = \"{root}/etc/key\"\n")).unwrap();
    farhaul(&["serve", "--config", &apart]).fails(2, &["root/etc/key", "below --root"]);
    let by_hand = ["serve", "--json", "--root", &root, "--listen", "127.0.0.1:0", "--key", &scratch.at("root/etc/key")];
    let mut server = Started::begin(&by_hand, Stdio::null());
    let words = server.says("below --root");
    assert!(words.contains("root/etc/key"), "{words}");
    let server = server.after("start");
    server.signal(Signal::TERM);
    server.end();
}

#[test]
fn a_service_manager_opens_the_port_and_hears_when_the_daemon_is_ready() {
    let scratch = Scratch::new();
    let file = settings(&scratch, "");
    let (home, sent) = (scratch.dir("home"), scratch.file("sent", 1_000));
    admit_writer(&scratch, &home);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = port.local_addr().unwrap().to_string();
    let manager = UnixDatagram::bind(scratch.at("notify")).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let line = format!(
        "LISTEN_FDS=1 LISTEN_PID=$$ exec '{}' serve --json --config '{file}' 3<&0 < /dev/null",
        env!("CARGO_BIN_EXE_farhaul")
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).stdin(Stdio::from(OwnedFd::from(port))).stdout(Stdio::piped());
    command.env("NOTIFY_SOCKET", scratch.at("notify")).env("XDG_CONFIG_HOME", "/dev/null");
    let mut daemon = command.spawn().unwrap();
    let mut word = [0; 64];
    let len = manager.recv(&mut word).unwrap();
    assert_eq!(&word[..len], b"READY=1");
    let to = format!("udt://{address}/");
    let copy = ["copy", "--host-key-policy", "accept-new", &sent, &to];
    farhaul_where(&[("XDG_CONFIG_HOME", &home)], &copy).succeeds();
    assert_eq!(scratch.names("root"), ["sent"]);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn the_units_and_settings_that_come_along_are_valid() {
    let dist = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist");
    let text = fs::read_to_string(format!("{dist}/serve.toml")).unwrap();
    let scratch = Scratch::new();
    let (root, file) = (scratch.dir("root"), format!("{}/serve.toml", scratch.dir("etc")));
    fs::write(&file, text.replace("/srv/farhaul", &root).replace(":9000", "127.0.0.1:0")).unwrap();
    let daemon = begin(&file);
    daemon.signal(Signal::TERM);
    daemon.end();
    let unit = fs::read_to_string(format!("{dist}/systemd/farhaul.service")).unwrap();
    for wanted in ["Type=notify", "NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryMax=", "kill -HUP"] {
        assert!(unit.contains(wanted), "{wanted}");
    }
}
