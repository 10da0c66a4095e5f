//! Runs the reference peer and reads its reports.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::requirement::reference_peer;

/// Seconds after which a peer always ends itself, so that no test waits longer.
const TIMEOUT: &str = "40";

/// The reference implementation, ready to start.
#[derive(Clone, Copy)]
pub(crate) struct Libudt(&'static Path);

/// A running reference peer, killed when dropped.
pub(crate) struct Running {
    child: Child,
    output: BufReader<ChildStdout>,
    command: String,
}

/// One connection as seen by the peer: a flat JSON object.
#[derive(Debug)]
pub(crate) struct Report(String);

impl Libudt {
    /// `None` after a line with the reason for skipping the test.
    pub(crate) fn find() -> Option<Self> {
        reference_peer().map(Self)
    }

    /// A listening peer and its address. `action` is as on its command line.
    pub(crate) fn listen(self, action: &str) -> (Running, SocketAddr) {
        let mut running = self.run(&format!("listen 127.0.0.1:0 {action}"));
        let mut line = String::new();
        running.output.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening ").and_then(|address| address.parse().ok());
        let address = address.unwrap_or_else(|| panic!("the peer does not listen: {line}"));
        (running, address)
    }

    /// A peer that connects to `to`.
    pub(crate) fn connect(self, to: SocketAddr, action: &str) -> Running {
        self.run(&format!("connect {to} {action}"))
    }

    /// A peer that meets `peer` by rendezvous.
    pub(crate) fn rendezvous(self, local: SocketAddr, peer: SocketAddr, action: &str) -> Running {
        self.run(&format!("rendezvous --local {local} --peer {peer} {action}"))
    }

    fn run(self, command: &str) -> Running {
        let words = command.split_whitespace().chain(["--timeout", TIMEOUT]);
        let mut child = Command::new(self.0).args(words).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Running { child, output, command: command.to_owned() }
    }
}

impl Running {
    /// Waits for the end. Every connection must have succeeded.
    pub(crate) fn reports(self) -> Vec<Report> {
        let command = self.command.clone();
        let (status, reports) = self.end();
        assert_eq!(status, Some(0), "libudt-peer {command}: {reports:?}");
        reports
    }

    /// The report of the only connection, which must have succeeded.
    pub(crate) fn report(self) -> Report {
        let mut reports = self.reports();
        assert_eq!(reports.len(), 1, "{reports:?}");
        reports.remove(0)
    }

    /// Waits for any end. Returns the exit status and the reports.
    pub(crate) fn end(mut self) -> (Option<i32>, Vec<Report>) {
        let mut text = String::new();
        self.output.read_to_string(&mut text).unwrap();
        let status = self.child.wait().unwrap();
        (status.code(), text.lines().map(|line| Report(line.to_owned())).collect())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Report {
    /// A digest, by its field's name.
    pub(crate) fn digest(&self, name: &str) -> u64 {
        u64::from_str_radix(self.value(name).trim_matches('"'), 16).unwrap_or_else(|_| panic!("no {name} in {self:?}"))
    }

    /// A count, by its field's name.
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.value(name).parse().unwrap_or_else(|_| panic!("no {name} in {self:?}"))
    }

    /// A measurement, by its field's name.
    pub(crate) fn figure(&self, name: &str) -> f64 {
        self.value(name).parse().unwrap_or_else(|_| panic!("no {name} in {self:?}"))
    }

    fn value(&self, name: &str) -> &str {
        let from = self.0.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {self:?}"));
        let value = &self.0[from + name.len() + 3..];
        // Only texts may contain commas.
        let end = match value.strip_prefix('"') {
            Some(text) => text.find('"').map(|end| end + 2),
            None => value.find([',', '}']),
        };
        &value[..end.unwrap_or(value.len())]
    }
}
