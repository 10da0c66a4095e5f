//! The options of a key where no files are moved: `bench` and `pipe` keep to them, or refuse the key.

use farhaul_udp::Clock;

use crate::process::{Run, Scratch, Server, farhaul_with_as};
use crate::secured::User;

/// A listener of alice that admits bob with these options.
struct Admitted {
    scratch: Scratch,
    alice: User,
    bob: User,
}

impl Admitted {
    fn with(options: &str) -> Self {
        let scratch = Scratch::new();
        let (alice, bob) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"));
        alice.admits(&bob, &format!("bob {options}"));
        Self { scratch, alice, bob }
    }

    fn bench(&self, server: &Server, more: &[&str]) -> Run {
        let to = ["bench", "--json", "--host-key-policy", "accept-new", "--connect", &server.address];
        self.bob.runs(&[&to[..], more].concat())
    }
}

#[test]
fn a_key_that_is_limited_to_paths_may_neither_measure_nor_pipe() {
    let here = Admitted::with("path=/data,write");
    for verb in ["bench", "pipe"] {
        // Admitting everybody admits nobody to more than his line says.
        let mut server = Server::begin_as(&here.alice.0, &[verb, "--any-client"]);
        let call = [verb, "--host-key-policy", "accept-new", "--connect", &server.address];
        here.bob.runs(&call).fails(5, &["does not admit the key"]);
        let warning = server.wait_for("warning")["message"].as_str().unwrap().to_owned();
        assert!(warning.contains("path=") && warning.contains(&format!("farhaul {verb}")), "{warning}");
    }
}

#[test]
fn a_measurement_is_no_faster_than_the_rate_of_its_key_in_either_direction() {
    let here = Admitted::with("rate=8mbit");
    let server = Server::begin_as(&here.alice.0, &["bench"]);
    for direction in [&[][..], &["--reverse"]] {
        let run = here.bench(&server, &[&["--bytes", "1MB"], direction].concat());
        run.succeeds();
        let end = run.end();
        assert!(end["seconds"].as_f64().unwrap() > 0.9, "1 MB at 8 Mbit/s takes a second: {end}");
        assert!(direction.is_empty() || end["limited_by"] == "key_rate_cap", "{end}");
    }
    // All flows have the rate together.
    let run = here.bench(&server, &["--bytes", "500kB", "--flows", "2"]);
    assert!(run.end()["seconds"].as_f64().unwrap() > 0.9, "{}", run.end());
}

#[test]
fn a_measurement_has_the_sessions_and_bytes_of_its_key() {
    let here = Admitted::with("sessions=2");
    let server = Server::begin_as(&here.alice.0, &["bench"]);
    here.bench(&server, &["--bytes", "1MB", "--flows", "2"]).succeeds();
    here.bench(&server, &["--bytes", "100MB", "--flows", "3"]).fails(1, &["as many sessions as your key is allowed"]);
    let here = Admitted::with("bytes=1MB");
    let mut server = Server::begin_as(&here.alice.0, &["bench"]);
    here.bench(&server, &["--bytes", "600kB"]).succeeds();
    // A new connection begins with no new bytes.
    for direction in [&[][..], &["--reverse"]] {
        let run = here.bench(&server, &[&["--bytes", "600kB"], direction].concat());
        run.fails(5, &["may move no more bytes", "bytes=SIZE"]);
        assert_eq!(run.end()["error"]["code"], "ACCESS_DENIED");
    }
    let ends: Vec<_> = (0..3).map(|_| server.wait_for("end")["exit_code"].as_u64().unwrap()).collect();
    assert_eq!(ends, [0, 5, 5]);
}

#[test]
fn a_pipe_keeps_to_the_rate_and_the_bytes_of_a_key_in_either_direction() {
    for (options, is_whole) in [("rate=8mbit", true), ("bytes=500kB", false)] {
        for sends in [true, false] {
            let here = Admitted::with(options);
            let content = std::fs::read(here.scratch.file("content", 1_000_000)).unwrap();
            let mut server = Server::begin_as(&here.alice.0, &["pipe"]);
            let to = server.address.clone();
            let call = ["pipe", "--host-key-policy", "accept-new", "--connect", &to];
            let (theirs, ours) = if sends { (&content[..], &b""[..]) } else { (&b""[..], &content[..]) };
            let input = server.input();
            let clock = Clock::start();
            let began = clock.now();
            let (run, code, arrived) = std::thread::scope(|scope| {
                scope.spawn(move || drop(std::io::Write::write_all(&mut { input }, theirs)));
                let run = farhaul_with_as(&here.bob.0, ours, &call);
                let (code, arrived) = server.end();
                (run, code, arrived)
            });
            let took = (clock.now() - began).as_secs_f64();
            let got = if sends { &run.stdout } else { &arrived };
            if is_whole {
                assert_eq!((run.code, code, got == &content), (0, 0, true), "{}", run.stderr);
                assert!(took > 0.9, "1 MB at 8 Mbit/s takes a second: {took}");
            } else {
                // A client that sends may be gone before the listener reads too much.
                assert_eq!((code, run.code == 0 && sends), (5, false));
                assert!(got.len() <= 500_000, "{}", got.len());
            }
        }
    }
}

#[test]
fn a_key_with_directories_measures_once_its_line_allows_it() {
    let scratch = Scratch::new();
    let (alice, bob, carol) = (User::new(&scratch, "alice"), User::new(&scratch, "bob"), User::new(&scratch, "carol"));
    let (root, _) = (scratch.dir("root"), alice.key("show"));
    for (client, allow) in [(&bob, "allow=bench"), (&carol, "allow=pipe")] {
        let path = format!("path={root},write");
        alice.runs(&["key", "add", client.key("show").trim(), &path, allow]).succeeds();
    }
    let (server, other) =
        (Server::begin_as(&alice.0, &["serve", "--root", &root]), Server::begin_as(&alice.0, &["bench"]));
    let bench = |client: &User| {
        let to = ["bench", "--json", "--host-key-policy", "accept-new", "--bytes", "100kB", "--connect"];
        client.runs(&[&to[..], &[&other.address]].concat())
    };
    bench(&bob).succeeds();
    assert_ne!(bench(&carol).code, 0);
    let to = format!("udt://{}/", server.address);
    bob.runs(&["copy", "--host-key-policy", "accept-new", &scratch.file("file", 10), &to]).succeeds();
    assert_eq!(scratch.names("root"), ["file"]);
}
