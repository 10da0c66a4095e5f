//! `ls`, `cat`, `rm`, `mv`, `mkdir`: files of another host, by requests over one connection.

pub(crate) mod cat;
pub(crate) mod ls;
pub(crate) mod mkdir;
pub(crate) mod mv;
pub(crate) mod rm;

use farhaul_transfer::{Error, RemoteFiles, RemoteHost, RemotePlace, Report};

use super::{Context, report_end};
use crate::exit::{Code, Fault};
use crate::options::FilesOptions;
use crate::output::json::{FileRecord, FileStatus, Record, Start};
use crate::output::observer::{Reporter, Shown};
use crate::output::{JsonTo, Output};
use crate::values::Location;

/// Whether ssh reaches one of these places.
pub(crate) fn use_ssh(places: &[Location]) -> bool {
    places.iter().any(|place| matches!(place, Location::Ssh(_)))
}

/// A run of one of the verbs: its connections, and what became of its places.
struct Visit<'a> {
    context: &'a Context,
    options: &'a FilesOptions,
    output: Output,
    start: Start,
    /// The connections, one for each host.
    hosts: Vec<RemoteFiles>,
    done: u64,
    /// The places that failed, and the first reason. A single one is told as the error of the program.
    failed: Vec<Fault>,
}

impl<'a> Visit<'a> {
    /// Begins a run on these places. Records go to stderr if stdout `has_data`.
    fn begin(
        verb: &'static str,
        places: &[RemotePlace],
        (options, has_data): (&'a FilesOptions, bool),
        context: &'a Context,
    ) -> Self {
        let output = match has_data && options.transport.json {
            true => Output::new(JsonTo::Stderr),
            false => Output::from_flag(options.transport.json),
        };
        let mut start = options.transport.start(verb);
        let shown: Vec<String> = places.iter().map(ToString::to_string).collect();
        start.settings.insert("places".into(), shown.into());
        Self { context, options, output, start, hosts: Vec::new(), done: 0, failed: Vec::new() }
    }

    /// Adds a setting of this verb alone to the first record.
    fn set(&mut self, name: &str, value: impl Into<serde_json::Value>) {
        self.start.settings.insert(name.to_owned(), value.into());
    }

    /// The connection to a host.
    fn files(&mut self, host: &RemoteHost) -> Result<RemoteFiles, Fault> {
        if let Some(files) = self.hosts.iter().find(|files| files.host() == host) {
            return Ok(files.clone());
        }
        let mut settings = self.options.transport.settings();
        self.options.server_keys.set(&mut settings.security, &self.output);
        let shown = Shown { start: Some(self.start.clone()), ..Shown::default() };
        let environment = self.context.environment(Reporter::new(self.output.clone(), shown));
        let files = RemoteFiles::connect(host.clone(), settings, self.options.ssh.to_ssh(), &environment)?;
        self.hosts.push(files.clone());
        Ok(files)
    }

    /// Works on each of the places. Those that fail do not keep it from the others, unless their host is lost.
    fn each(
        mut self,
        places: &[RemotePlace],
        mut act: impl FnMut(&mut Self, &RemoteFiles, &RemotePlace) -> Result<(), Error>,
    ) -> Result<(), Fault> {
        for place in places {
            let acted = match self.files(&place.host) {
                Ok(files) => act(&mut self, &files, place),
                Err(lost) => return self.end(Some(lost)),
            };
            match acted {
                Ok(()) => self.done += 1,
                Err(error) if error.is_of_one_place() => self.failed(place, error, places.len()),
                Err(error) => return self.end(Some(error)),
            }
        }
        self.end(None)
    }

    fn failed(&mut self, place: &RemotePlace, error: Error, places: usize) {
        let record = FileRecord::of(None, &place.path, FileStatus::Failed, 0);
        self.output.record(&Record::File(FileRecord { error: Some(error.to_string()), ..record }));
        if places > 1 {
            self.output.print_line(&format!("{} {error}", self.output.style().red("failed:")));
        }
        self.failed.push(error);
    }

    /// Records a changed entry.
    fn record(&self, path: &[u8], status: FileStatus) {
        self.output.record(&Record::File(FileRecord::of(None, path, status, 0)));
    }

    /// Ends the connections, and prints the last record.
    fn end(self, lost: Option<Fault>) -> Result<(), Fault> {
        let mut closed = Ok(());
        let mut report = Report::default();
        for files in &self.hosts {
            report = Report { protocol: self.start.protocol.clone(), ..files.report() };
            if lost.is_none() {
                closed = closed.and(files.close());
            }
        }
        let failed = self.failed.len() as u64;
        (report.requests, report.failed) = (Some(self.done + failed), Some(failed));
        report.verified = lost.is_none() && failed == 0;
        let all = self.done + failed;
        let result = match (lost, self.failed.into_iter().next()) {
            (Some(lost), _) => Err(lost),
            (None, Some(first)) if all == 1 => Err(first),
            (None, Some(_)) => {
                Err(Fault::new(Code::FilesFailed, format!("{failed} of {all} failed, the others are done")))
            }
            // Everything is answered. How the connection ended changes nothing.
            (None, None) => Ok(()),
        };
        drop(closed);
        report_end(&self.output, report, result)
    }
}
/// The places of a command line, none of which is on this host.
fn remote(places: &[Location]) -> Result<Vec<RemotePlace>, Fault> {
    places.iter().map(RemotePlace::of).collect()
}
