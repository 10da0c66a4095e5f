//! The stdout of a remote program, which all its threads share: first messages alone, and then the frames of a mux.

use std::io::{self, Read, Write};
use std::sync::OnceLock;
use std::time::Duration;

use farhaul_bond::mux::{Gone, Mux};

use super::frames::{encode, encode_body};
use super::messages::{FromRemote, Ready};
use super::process::widen;

/// Time for the last words of the program to leave. Ssh takes them at once, unless the network has gone.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// The mux, once the program is ready.
static MUX: OnceLock<Mux> = OnceLock::new();

/// Says something to the local program.
pub(crate) fn send(message: &FromRemote) -> io::Result<()> {
    match MUX.get() {
        Some(mux) => mux.say(encode_body(message).as_bytes()).map_err(|Gone| io::ErrorKind::BrokenPipe.into()),
        None => write(encode(message).as_bytes()),
    }
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Tells that the program is ready. From now on, messages and a stream go both ways: `hear` gets the messages, and `at_end` is called at
/// the end of ssh. `first` was read already.
pub(crate) fn begin(
    ready: Ready,
    first: Vec<u8>,
    hear: impl FnMut(&[u8]) -> Result<(), Gone> + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> io::Result<Mux> {
    send(&FromRemote::Ready(ready))?;
    widen(io::stdin());
    widen(io::stdout());
    let mux = Mux::begin((Input, first), (Output, 0), hear, at_end)?;
    Ok(MUX.get_or_init(|| mux).clone())
}

/// Waits until everything has left.
pub(crate) fn finish() {
    if let Some(mux) = MUX.get() {
        mux.flush(LAST_WORDS);
    }
}

/// Stdout without the lock and the buffer.
struct Output;

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        rustix::io::write(io::stdout(), bytes).map_err(Into::into)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Stdin without the lock, which nobody else needs.
struct Input;

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        rustix::io::read(io::stdin(), out).map_err(Into::into)
    }
}
