//! A peer that lies: it reads the frames of a plain copy between an honest client and an honest server, and changes them.
//!
//! Two programs `pipe` carry the bytes of UDT, so this file knows frames alone: type `u8`, length `u32`, body.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result};
use serde_json::Value;

use super::bed::Bed;

/// A frame of the session protocol.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) body: Vec<u8>,
}

/// The side that a frame comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    Client,
    Server,
}

/// What becomes of a frame.
pub(super) enum Fate {
    Passes,
    /// These bytes go on in its place.
    Becomes(Vec<u8>),
    /// The connection ends here.
    Ends,
}

/// Decides about each frame.
pub(super) type Lies = Box<dyn FnMut(From, &Frame) -> Fate + Send>;

/// The liar between a client and a server.
pub(super) struct Middle {
    /// Where the client reaches it.
    pub(super) address: String,
    pipes: Arc<Mutex<[Child; 2]>>,
    threads: Vec<JoinHandle<()>>,
}

impl Frame {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let len = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        [&[self.kind][..], &len.to_be_bytes(), &self.body].concat()
    }

    fn read(from: &mut impl Read) -> Option<Self> {
        let mut header = [0; 5];
        from.read_exact(&mut header).ok()?;
        let [kind, len @ ..] = header;
        let mut body = vec![0; usize::try_from(u32::from_be_bytes(len)).ok()?];
        from.read_exact(&mut body).ok()?;
        Some(Self { kind, body })
    }
}

impl Middle {
    /// Stands before this server.
    pub(super) fn before(bed: &Bed, server: &str, lies: Lies) -> Result<Self> {
        let (near, from_client, to_client, record) = pipe(bed, &["--listen", "127.0.0.1:0"])?;
        let address = record["local"].as_str().context("it listens")?.to_owned();
        let (far, from_server, to_server, _) = pipe(bed, &["--connect", server])?;
        let (pipes, lies) = (Arc::new(Mutex::new([near, far])), Arc::new(Mutex::new(lies)));
        let carry = |side: From, from: ChildStdout, to: ChildStdin| {
            let (pipes, lies) = (Arc::clone(&pipes), Arc::clone(&lies));
            thread::spawn(move || carry(side, from, to, &lies, &pipes))
        };
        let threads = vec![carry(From::Client, from_client, to_server), carry(From::Server, from_server, to_client)];
        Ok(Self { address, pipes, threads })
    }
}

/// Carries frames of one side, until it ends or a lie ends it.
fn carry(side: From, from: ChildStdout, mut to: ChildStdin, lies: &Mutex<Lies>, pipes: &Mutex<[Child; 2]>) {
    let mut from = BufReader::new(from);
    while let Some(frame) = Frame::read(&mut from) {
        let fate = lies.lock().expect("a lie does not panic")(side, &frame);
        let bytes = match fate {
            Fate::Passes => frame.bytes(),
            Fate::Becomes(bytes) => bytes,
            Fate::Ends => return kill(pipes),
        };
        if to.write_all(&bytes).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}

fn kill(pipes: &Mutex<[Child; 2]>) {
    for pipe in &mut *pipes.lock().expect("nothing fails under the lock") {
        let _ = pipe.kill();
        let _ = pipe.wait();
    }
}

impl Drop for Middle {
    fn drop(&mut self) {
        kill(&self.pipes);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

/// A program that carries raw bytes of UDT, once it has begun.
fn pipe(bed: &Bed, ends: &[&str]) -> Result<(Child, ChildStdout, ChildStdin, Value)> {
    let mut command = bed.command(&[], &[&["pipe", "--plain", "--json", "--wait"], ends].concat());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdout, stdin) = (child.stdout.take().context("a pipe")?, child.stdin.take().context("a pipe")?);
    let mut lines: BufReader<ChildStderr> = BufReader::new(child.stderr.take().context("a pipe")?);
    let mut line = String::new();
    lines.read_line(&mut line)?;
    let record = serde_json::from_str(&line).with_context(|| format!("the pipe does not begin: {line}"))?;
    // Nobody reads the rest, and a full pipe would hold the process.
    thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    Ok((child, stdout, stdin, record))
}
