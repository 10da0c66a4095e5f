//! The stdout of a remote program, which all its threads share: messages, and datagrams between them once a tunnel is open.

use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::frames::encode;
use super::messages::FromRemote;
use super::pieces;

/// Whether datagrams may stand between the messages. Who writes holds it.
static HAS_TUNNEL: Mutex<bool> = Mutex::new(false);

fn voice() -> MutexGuard<'static, bool> {
    HAS_TUNNEL.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush())
}

/// Says something to the local program.
pub(crate) fn send(message: &FromRemote) -> io::Result<()> {
    let has_tunnel = voice();
    match *has_tunnel {
        true => write(&pieces::message(message)),
        false => write(encode(message).as_bytes()),
    }
}

/// Announces the tunnel, whose datagrams may follow.
pub(crate) fn begin_tunnel() -> io::Result<()> {
    let mut has_tunnel = voice();
    write(encode(&FromRemote::Tunneling).as_bytes())?;
    *has_tunnel = true;
    Ok(())
}

/// The way out of a tunnel. Each write must consist of whole datagrams.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayOut;

impl Write for WayOut {
    fn write(&mut self, datagrams: &[u8]) -> io::Result<usize> {
        let _has_tunnel = voice();
        write(datagrams).map(|()| datagrams.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
