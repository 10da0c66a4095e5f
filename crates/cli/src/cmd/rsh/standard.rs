//! The standard streams of this process, each of which can be closed while the others go on.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::stdio::{dup2_stdin, dup2_stdout};

/// A standard stream. Whoever started this program may have made it non-blocking (rsync does): then a call waits here.
#[derive(Debug)]
pub(super) struct Standard(File);

impl Standard {
    /// Stdin. The process has an empty one from now on.
    pub(super) fn take_stdin() -> io::Result<Self> {
        let stream = Self::same_as(io::stdin())?;
        dup2_stdin(File::open("/dev/null")?)?;
        Ok(stream)
    }

    /// Stdout. What the process prints there from now on is lost.
    pub(super) fn take_stdout() -> io::Result<Self> {
        let stream = Self::same_as(io::stdout())?;
        dup2_stdout(File::options().write(true).open("/dev/null")?)?;
        Ok(stream)
    }

    /// Stderr, which the process keeps for its own lines.
    pub(super) fn stderr() -> io::Result<Self> {
        Self::same_as(io::stderr())
    }

    fn same_as(stream: impl std::os::fd::AsFd) -> io::Result<Self> {
        Ok(Self(stream.as_fd().try_clone_to_owned()?.into()))
    }

    /// Repeats a call that would block, once it would not.
    fn waiting<R>(&self, ready: PollFlags, call: impl Fn(&File) -> io::Result<R>) -> io::Result<R> {
        loop {
            match call(&self.0) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    // A signal or an error shows in the next call.
                    let _ = poll(&mut [PollFd::new(&self.0, ready)], None);
                }
                done => return done,
            }
        }
    }
}

impl Read for Standard {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let out = std::cell::RefCell::new(out);
        self.waiting(PollFlags::IN, |mut file| file.read(&mut out.borrow_mut()))
    }
}

impl Write for Standard {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting(PollFlags::OUT, |mut file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use super::*;

    #[test]
    fn streams_that_do_not_block_are_waited_for() {
        let (near, mut far) = UnixStream::pair().unwrap();
        near.set_nonblocking(true).unwrap();
        let (mut writer, mut reader) = (Standard::same_as(&near).unwrap(), Standard::same_as(&near).unwrap());
        let sent = vec![7; 3_000_000];
        thread::scope(|scope| {
            let echo = scope.spawn(move || {
                let mut all = vec![0; 3_000_000];
                far.read_exact(&mut all).and_then(|()| far.write_all(&all))
            });
            writer.write_all(&sent).unwrap();
            let mut all = vec![0; 3_000_000];
            reader.read_exact(&mut all).unwrap();
            assert!(all == sent && echo.join().unwrap().is_ok());
        });
    }
}
