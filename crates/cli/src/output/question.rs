//! Questions to the user at the terminal.

use std::fs::OpenOptions;
use std::io::{self, BufRead, BufReader, Read, Write};

use farhaul::security::PublicKey;

use super::{Output, human};

/// Longest answer, bytes.
const ANSWER: u64 = 64;

/// Whether the user, who sits at a terminal, accepts the key of the server `name`, which is not known here.
pub(crate) fn accepts(name: &str, key: PublicKey, output: &Output) -> bool {
    if !human::is_terminal() {
        return false;
    }
    let mut accepted = false;
    output.suspend(|| accepted = ask(name, key).unwrap_or(false));
    accepted
}

/// Asks at the terminal itself, since stdin may carry data.
fn ask(name: &str, key: PublicKey) -> io::Result<bool> {
    let mut terminal = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    write!(
        terminal,
        "{name} is not known here. Its key is {}\nDoes `farhaul key fingerprint` there print the same (of a daemon: with \
         /etc/farhaul/host_key behind it)? Connect, and remember it (yes/no)? ",
        key.fingerprint()
    )?;
    let mut line = String::new();
    BufReader::new(terminal.take(ANSWER)).read_line(&mut line)?;
    Ok(matches!(line.trim(), "yes" | "y"))
}
