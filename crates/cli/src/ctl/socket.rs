//! The socket of one program: it listens there, and others call.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{Controlled, Request, folder};

/// Time for a request, which is one line.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time for an answer, of a program that others may keep from the processor.
const BUSY: Duration = Duration::from_secs(10);
/// Longest line.
const LONGEST: u64 = 64 << 10;
/// The rights of the socket.
const MODE: u32 = 0o600;

/// A socket on which nobody listens yet. It is made before a server is confined, and listens with its rights.
pub(crate) struct Socket {
    listener: UnixListener,
    file: Listening,
}

/// A socket on which a thread listens. Dropping it removes its file. The thread ends with the program.
pub(crate) struct Listening {
    path: PathBuf,
}

impl Socket {
    /// The socket of this process.
    ///
    /// # Errors
    /// There is no folder for it.
    pub(crate) fn bind() -> io::Result<Self> {
        Self::bind_at(folder()?.join(format!("{}.sock", std::process::id())))
    }

    /// A socket under a name that it has only once it accepts callers: a listing removes one that refuses them.
    fn bind_at(path: PathBuf) -> io::Result<Self> {
        let begun = path.with_extension("begun");
        // Of a process that is gone: the number is ours now.
        let _ = fs::remove_file(&begun);
        let listener = UnixListener::bind(&begun)?;
        let named =
            fs::set_permissions(&begun, fs::Permissions::from_mode(MODE)).and_then(|()| fs::rename(&begun, &path));
        if let Err(error) = named {
            let _ = fs::remove_file(&begun);
            return Err(error);
        }
        Ok(Self { listener, file: Listening { path } })
    }

    /// Listens from now on.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn listen(self, controlled: Controlled) -> io::Result<Listening> {
        let Self { listener, file } = self;
        thread::Builder::new().name("ctl".into()).spawn(move || {
            for caller in listener.incoming().flatten() {
                // A caller that says nothing is gone after its time.
                let _ = serve(&caller, &controlled);
            }
        })?;
        Ok(file)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // A confined server cannot. Then the next listing does.
        let _ = fs::remove_file(&self.path);
    }
}

fn serve(caller: &UnixStream, controlled: &Controlled) -> io::Result<()> {
    caller.set_write_timeout(Some(PATIENCE))?;
    let request = Request::read(&line(caller, PATIENCE)?);
    let stops = request == Ok(Request::Stop);
    let answered = writeln!(&mut &*caller, "{}", controlled.answer(request));
    if stops {
        // The program may end before it could answer.
        controlled.stop();
    }
    answered
}

/// Sends a request to the program behind a socket. Returns its answer.
///
/// # Errors
/// It does not listen, or does not answer.
pub(crate) fn call(path: &Path, request: Request) -> io::Result<Value> {
    let stream = UnixStream::connect(path)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    writeln!(&mut &stream, "{}", request.line())?;
    Ok(serde_json::from_str(&line(&stream, BUSY)?)?)
}

fn line(stream: &UnixStream, patience: Duration) -> io::Result<String> {
    stream.set_read_timeout(Some(patience))?;
    let mut line = String::new();
    BufReader::new(stream.take(LONGEST)).read_line(&mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn a_socket_that_can_be_seen_refuses_nobody() {
        let folder = std::env::temp_dir().join(format!("farhaul-socket-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("1.sock");
        let ends = AtomicBool::new(false);
        thread::scope(|scope| {
            let refused = scope.spawn(|| {
                let mut refused = 0;
                while !ends.load(Ordering::Acquire) {
                    refused += u32::from(
                        UnixStream::connect(&path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused),
                    );
                }
                refused
            });
            // All listen to the end, so only one that did not listen yet can refuse a caller.
            let mut listening = Vec::new();
            for _ in 0..500 {
                let Socket { listener, file } = Socket::bind_at(path.clone()).unwrap();
                drop(file);
                listening.push(listener);
            }
            ends.store(true, Ordering::Release);
            assert_eq!(refused.join().unwrap(), 0);
        });
        fs::remove_dir_all(&folder).unwrap();
    }
}
