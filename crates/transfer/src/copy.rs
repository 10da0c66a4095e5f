//! A copy between two ends: paths of this host, of a host that ssh reaches, of a running server, or a stream.
//!
//! ```text
//! places ─▶ Plan ─▶ connect ─▶ session over a stream ─▶ drive ─▶ outcome ─▶ Report
//! ```
//!
//! | part | owns |
//! | --- | --- |
//! | `plan`, `requested_paths` | the meaning of a list of places |
//! | `exchange` | what all copies between this host and another one share |
//! | `stream` | a stream as one end of a copy |
//! | `between`, `accounts` | a copy between two other hosts, and the comparison of their accounts |
//! | `persistence` | a new attempt after the connection was lost |

mod accounts;
mod between;
mod exchange;
mod persistence;
mod plan;
mod requested_paths;
mod stream;

use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use farhaul_bond::Flows;
use farhaul_session::{NameList, Rules};
use farhaul_units::Rate;

use self::exchange::Exchange;
use self::persistence::{AttemptProgress, Persistence};
use self::plan::{FeedPlan, FetchPlan, Plan, PullPlan, PushPlan};
use crate::environment::Environment;
use crate::error::Error;
use crate::location::Location;
use crate::remote::{Other, Ssh};
use crate::report::{Direction, Report};
use crate::settings::Settings;

/// A copy, to be run once.
///
/// ```no_run
/// use farhaul_transfer::{CopyJob, Environment, Event};
///
/// let places = ["results", "far.example:backup/"].map(|place| place.parse()).into_iter().collect::<Result<Vec<_>, _>>()?;
/// let environment = Environment::reporting_to(|event: &Event<'_>| {
///     if let Event::Placed(entry, ..) = event {
///         println!("{}", entry.path);
///     }
/// });
/// let report = CopyJob::new(&places, true)?.run(&environment)?;
/// println!("{} bytes in {} s", report.bytes, report.seconds);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct CopyJob {
    plan: Plan,
    recursive: bool,
    /// Whether it is restricted to a list of names.
    has_names: bool,
    rules: Rules,
    settings: Settings,
    ssh: Ssh,
    control_stream: Option<Rate>,
    flows: Flows,
    give_up: Duration,
    /// The stream in place of a source or of a target.
    input: Mutex<Option<Box<dyn Read + Send>>>,
    output: Mutex<Option<Box<dyn Write + Send>>>,
}

impl CopyJob {
    /// A copy of the first `places` to the last one. `recursive` copies directories with their contents.
    ///
    /// # Errors
    /// No copy has these ends.
    pub fn new(places: &[Location], recursive: bool) -> Result<Self, Error> {
        Ok(Self::by(Plan::of(places, recursive)?, recursive))
    }

    /// A copy of these paths to another remote program, as the remote program of a copy between two hosts.
    pub(crate) fn forward(sources: Vec<PathBuf>, recursive: bool, to: Other) -> Self {
        Self::by(Plan::Push(PushPlan::to_other(sources, to)), recursive)
    }

    fn by(plan: Plan, recursive: bool) -> Self {
        Self {
            plan,
            recursive,
            has_names: false,
            rules: Rules::default(),
            settings: Settings::default(),
            ssh: Ssh::default(),
            control_stream: None,
            flows: Flows::Auto,
            give_up: Duration::ZERO,
            input: Mutex::default(),
            output: Mutex::default(),
        }
    }

    /// The same with these settings of its connection.
    #[must_use]
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The same by these rules: what it keeps, skips and removes.
    #[must_use]
    pub fn with_rules(mut self, rules: Rules) -> Self {
        let whole = rules.whole || self.plan.is_whole();
        self.rules = Rules { whole, ..rules };
        self
    }

    /// The same with these names in its only source, a directory, and their parent directories, instead of all of it.
    /// Directories among them are copied with their contents only if the copy is recursive. They arrive below the target as they
    /// are below the source.
    ///
    /// # Errors
    /// It has several sources or a stream as one end, or the list is too long for a copy between two other hosts.
    pub fn with_names(mut self, names: NameList) -> Result<Self, Error> {
        self.plan.restrict(Arc::new(names))?;
        self.has_names = true;
        Ok(self)
    }

    /// Its rules.
    pub const fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The same with these settings of ssh.
    #[must_use]
    pub fn with_ssh(mut self, ssh: Ssh) -> Self {
        self.ssh = ssh;
        self
    }

    /// The same with a stable control stream of this goodput beside it, on the same port. The copy takes the rest of the path, as
    /// far as no queue delays the stream.
    #[must_use]
    pub const fn control_stream(mut self, target: Option<Rate>) -> Self {
        self.control_stream = target;
        self
    }

    /// The same over so many flows, each a connection with a port of its own. Default [`Flows::Auto`].
    #[must_use]
    pub const fn flows(mut self, flows: Flows) -> Self {
        self.flows = flows;
        self
    }

    /// The same with new attempts after the connection was lost, until they made no progress for this time. Each attempt goes on where the
    /// last one ended. Default none. Streams cannot go on, and a copy between two other hosts has one attempt.
    #[must_use]
    pub const fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up = time;
        self
    }

    /// Whether several flows can carry it.
    fn may_have_flows(&self) -> bool {
        self.control_stream.is_none() && self.settings.has_flows() && !matches!(self.plan, Plan::Between(_))
    }

    /// The same with the data of `-` as its source from this stream. A thread of its own reads it.
    #[must_use]
    pub fn input(mut self, input: impl Read + Send + 'static) -> Self {
        self.input = Mutex::new(Some(Box::new(input)));
        self
    }

    /// The same with the data of `-` as its target to this stream. Bytes leave before they are verified: only a success confirms
    /// them.
    #[must_use]
    pub fn output(mut self, output: impl Write + Send + 'static) -> Self {
        self.output = Mutex::new(Some(Box::new(output)));
        self
    }

    /// Its direction, seen from this host.
    pub const fn direction(&self) -> Direction {
        match self.plan {
            Plan::Push(_) | Plan::Feed(_) => Direction::Sent,
            Plan::Pull(_) | Plan::Fetch(_) => Direction::Received,
            Plan::Between(_) => Direction::Both,
        }
    }

    /// Whether its data comes from a stream.
    pub const fn reads_stream(&self) -> bool {
        matches!(self.plan, Plan::Feed(_))
    }

    /// Whether its data goes to a stream.
    pub const fn writes_stream(&self) -> bool {
        matches!(self.plan, Plan::Fetch(_))
    }

    /// The other end: a server or a host, as it was named.
    pub fn peer(&self) -> String {
        match &self.plan {
            Plan::Push(PushPlan { to, .. }) | Plan::Feed(FeedPlan { to, .. }) => to.to_string(),
            Plan::Pull(PullPlan { from, .. }) | Plan::Fetch(FetchPlan { from, .. }) => from.to_string(),
            Plan::Between(plan) => plan.to.to_string(),
        }
    }

    /// Whether ssh reaches one of the ends.
    pub const fn uses_ssh(&self) -> bool {
        self.plan.uses_ssh()
    }

    /// The two other hosts between which it copies.
    pub fn hosts(&self) -> Option<(&str, &str)> {
        if let Plan::Between(plan) = &self.plan { Some((&plan.from, &plan.to.host)) } else { None }
    }

    /// Its target as it was named.
    pub fn target(&self) -> String {
        match &self.plan {
            Plan::Push(PushPlan { shown, .. }) | Plan::Feed(FeedPlan { shown, .. }) => shown.clone(),
            Plan::Pull(plan) => plan.to.to_string_lossy().into_owned(),
            Plan::Fetch(_) => "-".to_owned(),
            Plan::Between(plan) => plan.to.to_string(),
        }
    }

    /// The size of its sources in bytes, if they are files of this host.
    pub fn size(&self) -> Option<u64> {
        if let Plan::Push(plan) = &self.plan { plan.size() } else { None }
    }

    /// Its sources on this host, as they were named.
    pub fn sources(&self) -> Vec<String> {
        let Plan::Push(plan) = &self.plan else { return Vec::new() };
        plan.sources.iter().map(|path| path.display().to_string()).collect()
    }

    /// Whether its rules leave out some of what its sources have.
    pub fn leaves_out(&self) -> bool {
        self.has_names || self.rules.shard.is_some() || !self.rules.filters.is_empty()
    }

    /// Its sources on this host.
    pub fn source_paths(&self) -> &[PathBuf] {
        if let Plan::Push(plan) = &self.plan { &plan.sources } else { &[] }
    }

    /// Whether it has one source alone, which is no directory as far as it knows.
    pub fn is_of_one_file(&self) -> bool {
        match &self.plan {
            Plan::Pull(plan) => !self.recursive && !self.has_names && plan.requested.names().len() == 1,
            Plan::Fetch(_) => true,
            _ => false,
        }
    }

    /// Whether it copies directories with their contents.
    pub const fn is_recursive(&self) -> bool {
        self.recursive
    }

    /// The settings of its connection.
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Checks that its settings fit its ends. [`run`](Self::run) does so as well.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), Error> {
        if self.has_names && self.rules.delete.is_some() {
            return Err(Error::usage(
                "a list of names does not say what the source lacks, so nothing can be removed by it",
            )
            .remedy("leave out ‹delete›, or copy whole directories"));
        }
        if self.rules.shard.is_some() {
            self.check_shard()?;
        }
        if self.ssh.detach && matches!(self.plan, Plan::Between(_)) {
            return Err(Error::usage("‹detach› is for copies from or to this machine"));
        }
        if self.plan.uses_ssh() && self.settings.security.plain {
            return Err(Error::usage("copies over SSH are always encrypted").remedy("leave out ‹plain›"));
        }
        if self.plan.uses_ssh() && self.direction() != Direction::Sent {
            self.settings.check_remote_sender()?;
        }
        if matches!(self.plan, Plan::Between(_)) && (self.control_stream.is_some() || self.settings.key_log.is_some()) {
            return Err(Error::usage(
                "‹control-stream›, ‹trace› and ‹unsafe-keylog› do not reach a copy between two other hosts",
            ));
        }
        if self.flows.are_several() && !self.may_have_flows() {
            return Err(Error::usage(
                "several flows need the protocol udt, no ‹control-stream›, and this machine as one end of the copy",
            )
            .remedy("leave out ‹flows›"));
        }
        if self.control_stream.is_some() && self.direction() == Direction::Received {
            return Err(Error::usage(
                "‹control-stream› needs a copy to a server, because the stream and the copy must have the same sender",
            )
            .remedy("start the copy on the other host"));
        }
        Ok(())
    }

    /// Checks that several runs can divide its files.
    fn check_shard(&self) -> Result<(), Error> {
        if self.rules.delete.is_some() {
            return Err(Error::usage(
                "one part of a copy does not say what the source lacks, so nothing can be removed by it",
            )
            .remedy("leave out ‹delete›, and remove with a copy of everything after the parts"));
        }
        match &self.plan {
            Plan::Feed(_) | Plan::Fetch(_) => Err(Error::usage("a stream has no parts").remedy("leave out ‹shard›")),
            plan if !plan.is_into_directory() => Err(Error::usage(
                "the parts of a copy need a directory as their target, because a new name means another place once it exists",
            )
            .remedy("write TARGET/")),
            _ => Ok(()),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// It failed, or some of its files did. The error has the [report](Error::report) of what was done, if the copy had begun.
    pub fn run(&self, environment: &Environment) -> Result<Report, Error> {
        self.check()?;
        let begun = environment.clock.now();
        let mut persistence = Persistence::new(if self.can_go_on() { self.give_up } else { Duration::ZERO });
        let mut earlier: Option<Report> = None;
        loop {
            let (mut report, result) = self.attempt(environment, earlier.is_some());
            let progress = AttemptProgress::of(&report);
            if let Some(earlier) = &earlier {
                report.add_earlier(earlier, environment.clock.now().saturating_since(begun));
            }
            let Err(error) = result else { return Ok(report) };
            if let Err(error) = persistence.wait(environment, error, progress) {
                return Err(Error { report: Some(Box::new(report)), ..error });
            }
            earlier = Some(report);
        }
    }

    /// Whether another attempt can go on where one ended.
    const fn can_go_on(&self) -> bool {
        matches!(self.plan, Plan::Push(_) | Plan::Pull(_))
    }

    fn attempt(&self, environment: &Environment, goes_on: bool) -> (Report, Result<(), Error>) {
        let mut report = Report {
            address: Some(self.peer()),
            files: Some(0),
            directories: Some(0),
            failed: Some(0),
            ..self.settings.report(self.direction())
        };
        let exchange = match Exchange::new(self, environment, goes_on) {
            Ok(exchange) => exchange,
            Err(error) => return (report, Err(error)),
        };
        let result = match &self.plan {
            Plan::Push(plan) => exchange.push(plan, &mut report),
            Plan::Pull(plan) => exchange.pull(plan, &mut report),
            Plan::Feed(plan) => exchange.feed(plan, &mut report),
            Plan::Fetch(plan) => exchange.fetch(plan, &mut report),
            Plan::Between(plan) => between::run(self, environment, plan, &mut report),
        };
        if report.seconds == 0.0 {
            // It moved nothing.
            report.seconds = exchange.elapsed().as_secs_f64();
        }
        (report, result)
    }
}

impl fmt::Debug for CopyJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyJob").field("plan", &self.plan).field("recursive", &self.recursive).finish_non_exhaustive()
    }
}
