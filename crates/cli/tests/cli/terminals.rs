//! Output for people: progress on terminals only, colours unless refused, the state on request.

use std::process::Stdio;

use rustix::process::Signal;

use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_on_terminal};
use crate::requirement::runs;

/// How a line is drawn again: the terminal erases it.
const ERASE_LINE: &str = "\x1b[2K";
/// How colours begin.
const COLOUR: &str = "\x1b[3";

#[test]
fn progress_is_drawn_on_terminals_only_and_without_colours_where_they_are_refused() {
    if runs(&["script", "-qec", "true", "/dev/null"], "it makes a terminal").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (file, root) = (scratch.file("file", 1_000_000), scratch.dir("root"));
    let server = Server::begin(&["serve", "--root", &root]);
    let url = format!("udt://{}/", server.address);
    let copy = ["copy", "--plain", "--rate", "40mbit", &file, &url];
    let shown = |run: &Run| {
        run.succeeds();
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let drawn = shown(&farhaul_on_terminal(&[], &copy));
    assert!(drawn.contains(ERASE_LINE) && drawn.contains(COLOUR) && drawn.contains(" of 1.00 MB"), "{drawn}");
    let plain = shown(&farhaul_on_terminal(&[("NO_COLOR", "1")], &copy));
    assert!(plain.contains(ERASE_LINE) && !plain.contains(COLOUR), "{plain}");
    let dumb = shown(&farhaul_on_terminal(&[("TERM", "dumb")], &copy));
    assert!(!dumb.contains('\x1b') && dumb.contains("copied and verified"), "{dumb}");
    let quiet = shown(&farhaul_on_terminal(&[], &[&copy[..], &["--quiet"]].concat()));
    assert_eq!(quiet, "");
    let piped = farhaul(&copy);
    assert!(!piped.stderr.contains('\x1b') && piped.stderr.contains("copied and verified"), "{}", piped.stderr);
}

#[test]
fn the_state_is_printed_when_it_is_asked_for() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments = ["bench", "--plain", "--json", "--connect", &server.address, "--rate", "20mbit"];
    let arguments = [&arguments[..], &["--seconds", "30", "--interval", "0.1"]].concat();
    let mut client = Started::begin(&arguments, Stdio::null()).after("interval");
    client.signal(Signal::USR1);
    let state = client.says("state:");
    assert!(["acknowledged", "packets sent", "RTT", "in flight"].iter().all(|word| state.contains(word)), "{state}");
    client.signal(Signal::INT);
    client.end().fails(130, &["interrupted"]);
}
