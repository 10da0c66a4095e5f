//! What an observer of the path sees: nothing of the content and no name, in every default verb. The same without encryption is
//! the control of each test: there the same search must find them.

use std::collections::HashSet;
use std::fs;
use std::net::UdpSocket;
use std::sync::{Arc, Mutex};
use std::thread;

use farhaul_units::Rng;

use crate::over_ssh::{Far, same};
use crate::process::{Scratch, Server, Started, farhaul};
use crate::secured::User;
use crate::udp_blocked::SOON;

const SIZE: usize = 300_000;
/// Bytes of a run that counts as seen. By chance, no two of this length are equal.
const RUN: usize = 16;
/// What directories and files are called.
const NAMES: [&str; 2] = ["a-telling-directory", "a-telling-name"];

/// Whether a capture shows content: a run of twice [`RUN`] bytes anywhere in it is found.
pub(crate) fn shows_content(capture: &[u8], content: &[u8]) -> bool {
    let runs: HashSet<&[u8]> = content.chunks_exact(RUN).collect();
    capture.windows(RUN).any(|run| runs.contains(run))
}

pub(crate) fn shows_name(capture: &[u8], name: &str) -> bool {
    capture.windows(name.len()).any(|run| run == name.as_bytes())
}

/// A tree of one file, with telling names. Returns its path and the file's content.
fn tree(scratch: &Scratch, at: &str) -> (String, Vec<u8>) {
    let [directory, name] = NAMES;
    let tree = scratch.dir(&format!("{at}/{directory}"));
    let file = random(SIZE);
    fs::write(format!("{tree}/{name}"), &file).unwrap();
    (tree, file)
}

fn random(len: usize) -> Vec<u8> {
    let mut rng = Rng::new(7);
    (0..len.div_ceil(8)).flat_map(|_| rng.next_u64().to_be_bytes()).take(len).collect()
}

/// A listener of this verb, encrypted or not, behind a wire; and the options of its caller.
fn begin(user: &User, is_plain: bool, verb: &[&str]) -> (Server, Wire, Vec<&'static str>) {
    let server = if is_plain { Server::begin(verb) } else { Server::begin_as(&user.0, verb) };
    let wire = Wire::before(&server.address);
    let options = if is_plain { vec!["--plain"] } else { vec!["--host-key-policy", "accept-new"] };
    (server, wire, options)
}

#[test]
fn a_copied_tree_shows_neither_content_nor_names() {
    for is_plain in [true, false] {
        let scratch = Scratch::new();
        let user = User::new(&scratch, "user");
        let ((tree, content), root) = (tree(&scratch, "from"), scratch.dir("root"));
        let (_server, wire, options) = begin(&user, is_plain, &["serve", "--root", &root]);
        let url = format!("udt://{}/", wire.address);
        user.runs(&[&["copy", "-r", &tree, &url][..], &options].concat()).succeeds();
        user.runs(&[&["copy", "-r", &format!("{url}{}", NAMES[0]), &scratch.at("back")][..], &options].concat())
            .succeeds();
        assert!(same(&format!("{tree}/{}", NAMES[1]), &scratch.at(&format!("back/{}", NAMES[1]))));
        let seen = wire.seen.lock().unwrap();
        assert!(seen.len() > 2 * SIZE, "the wire saw both copies");
        assert_eq!(shows_content(&seen, &content), is_plain);
        for name in NAMES {
            assert_eq!(shows_name(&seen, name), is_plain, "{name}");
        }
    }
}

#[test]
fn a_pipe_shows_no_content_in_either_direction() {
    for is_plain in [true, false] {
        let scratch = Scratch::new();
        let user = User::new(&scratch, "user");
        // What the listener sends fits into the pipe of its program before a connection exists.
        for (there, back) in [(random(SIZE), Vec::new()), (Vec::new(), random(50_000))] {
            let input = scratch.at("input");
            fs::write(&input, &there).unwrap();
            let (mut server, wire, options) = begin(&user, is_plain, &["pipe"]);
            server.feed(&back);
            let home = format!("XDG_CONFIG_HOME={}", user.0);
            let line = [&["pipe", "--connect", &wire.address][..], &options].concat();
            let client = Started::begin_under(&["env", &home], &line, fs::File::open(&input).unwrap().into());
            let run = client.end();
            run.succeeds();
            assert!(run.stdout == back && server.end() == (0, there.clone()), "all arrived");
            let (seen, content) = (wire.seen.lock().unwrap(), [there, back].concat());
            assert!(seen.len() > content.len(), "the wire saw it");
            assert_eq!(shows_content(&seen, &content), is_plain);
        }
    }
}

#[test]
fn a_measurement_shows_nothing_of_its_filler_in_either_direction() {
    // Random bytes of a fixed seed, again and again.
    let mut rng = Rng::new(0x6661_7268_6175_6c21);
    let filler: Vec<u8> = (0..10_000).flat_map(|_| rng.next_u64().to_be_bytes()).collect();
    for is_plain in [true, false] {
        let scratch = Scratch::new();
        let user = User::new(&scratch, "user");
        for direction in [&[][..], &["--reverse"]] {
            let (_server, wire, options) = begin(&user, is_plain, &["bench", "--interval", "0"]);
            let bench = ["bench", "--bytes", "1MB", "--connect", &wire.address];
            user.runs(&[&bench[..], direction, &options].concat()).succeeds();
            let seen = wire.seen.lock().unwrap();
            assert!(seen.len() > 1_000_000, "the wire saw it");
            assert_eq!(shows_content(&seen, &filler), is_plain, "{direction:?}");
        }
    }
}

// Slow: three copies with logins, the time until UDP counts as blocked, and four captures to search.
#[test]
fn a_tree_over_ssh_shows_neither_content_nor_names_in_either_direction() {
    let Some(far) = Far::new("") else { return };
    let scratch = &far.scratch;
    let ((tree, content), there, pcap) = (tree(scratch, "from"), scratch.dir("there"), scratch.at("pcap"));
    let copy = |place: &str| format!("exec $F copy -r --ssh \"$S\" --remote-path $F {place}");
    for (line, arrived) in [
        (copy(&format!("'{tree}' far:'{there}/'")), format!("{there}/{}/{}", NAMES[0], NAMES[1])),
        (copy(&format!("far:'{tree}' '{}'", scratch.at("back"))), scratch.at(&format!("back/{}", NAMES[1]))),
        // Through the SSH connection, where UDP is blocked.
        (
            copy(&format!("{SOON} inside:'{tree}' '{}'", scratch.at("tunnel"))),
            scratch.at(&format!("tunnel/{}", NAMES[1])),
        ),
    ] {
        far.near_with(&["--pcap", &pcap], &line).succeeds();
        assert_eq!(fs::read(arrived).unwrap(), content);
        let seen = fs::read(&pcap).unwrap();
        assert!(seen.len() > SIZE, "the capture has the copy");
        assert!(!shows_content(&seen, &content) && !NAMES.iter().any(|name| shows_name(&seen, name)), "{line}");
    }
    let program = env!("CARGO_BIN_EXE_farhaul");
    let served = format!("exec '{program}' serve --plain --root '{there}' --listen :9000");
    let line = format!("exec '{program}' copy -r --plain '{tree}' udt://$FARHAUL_PEER:9000/plain");
    farhaul(&["emulate", "--quiet", "--pcap", &pcap, "--serve", &served, "--", "sh", "-c", &line]).succeeds();
    let seen = fs::read(&pcap).unwrap();
    assert!(shows_content(&seen, &content) && shows_name(&seen, NAMES[1]), "the control shows them");
}

/// A relay of datagrams that remembers all of them.
pub(crate) struct Wire {
    pub(crate) address: String,
    pub(crate) seen: Arc<Mutex<Vec<u8>>>,
}

impl Wire {
    /// A wire whose far end is `server`. It serves one client at a time, and lives as long as the tests.
    pub(crate) fn before(server: &str) -> Self {
        let near = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        let far = Arc::new(UdpSocket::bind("127.0.0.1:0").unwrap());
        far.connect(server).unwrap();
        let wire = Self { address: near.local_addr().unwrap().to_string(), seen: Arc::default() };
        let client = Arc::new(Mutex::new(None));
        let (seen, its, there, out) =
            (Arc::clone(&wire.seen), Arc::clone(&client), Arc::clone(&near), Arc::clone(&far));
        thread::spawn(move || {
            let mut block = [0; 65_536];
            while let Ok((len, from)) = there.recv_from(&mut block) {
                *its.lock().unwrap() = Some(from);
                seen.lock().unwrap().extend_from_slice(&block[..len]);
                let _ = out.send(&block[..len]);
            }
        });
        let seen = Arc::clone(&wire.seen);
        thread::spawn(move || {
            let mut block = [0; 65_536];
            while let Ok(len) = far.recv(&mut block) {
                seen.lock().unwrap().extend_from_slice(&block[..len]);
                let to = *client.lock().unwrap();
                let _ = to.map(|to| near.send_to(&block[..len], to));
            }
        });
        wire
    }
}
