//! `bench`: a measurement from memory to memory, with the figures of both sides.

mod flows;
mod job;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use clap::Args;
use farhaul::Stream;
use farhaul_session::{AbortCode, Bench, BenchSpec, Direction as BenchDirection, Request, Stop};
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::connect::Calling;
use farhaul_transfer::internal::control::Control;
use farhaul_transfer::internal::event::Moved;
use farhaul_transfer::internal::keys::Permit;
use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::{Direction, Report, goodput};
use farhaul_transfer::internal::serve::IDLE;
use farhaul_transfer::internal::serve::listener::{self, Caller, Callers, Limits};
use farhaul_transfer::internal::session::measure::{self, Meter};
use farhaul_transfer::internal::session::watch::Watch;
use farhaul_transfer::internal::session::{Role, SessionConnection, drive};
use farhaul_transfer::{Environment, Settings};
use farhaul_units::{ByteSize, Rate};

use super::{Context, announce, control_line, limited_by, report_end, report_flows};
use crate::exit::{Code, Fault};
use crate::options::{ClientKeys, ServerKeys, Transport};
use crate::output::Output;
use crate::output::human::{percent, rate, time};
use crate::output::intervals::{Intervals, View};
use crate::output::json::{Flow, Start};
use crate::output::observer::{Reporter, Shown};
use crate::output::trace::Trace;
use crate::reloading::Reloading;
use crate::values::{HostPort, seconds, some_rate};
use job::BenchJob;

/// Most connections of a measurement. More would measure the machine instead of the path.
const MAX_FLOWS: u64 = 128;
/// Flows that a listener serves at a time: of two measurements with as many as there may be. Each takes two or three threads.
const MAX_MEASUREMENTS: usize = 256;

/// Measure the path between two hosts, memory to memory
///
/// The listener serves measurements until stopped, at most 256 flows at a time. It admits this user's key and those in
/// authorized_keys:
///
///     farhaul bench --listen :9000
///     farhaul bench --connect host:9000 --seconds 10
///
/// The listener is also the remote end of `stream` and `profile`. With --plain, nothing is encrypted.
#[derive(Args, Debug)]
#[command(verbatim_doc_comment, group(clap::ArgGroup::new("role").required(true)))]
pub(crate) struct BenchArgs {
    /// Serve measurements on this UDP port
    #[arg(long, value_name = "ADDR", group = "role")]
    listen: Option<HostPort>,
    /// Measure the path to the listener at this address
    #[arg(long, value_name = "ADDR", group = "role")]
    connect: Option<HostPort>,
    /// Send for this many seconds [default: 10]
    #[arg(long, value_name = "S", conflicts_with_all = ["bytes", "listen"], value_parser = seconds)]
    seconds: Option<Duration>,
    /// Send this many bytes: 4GB
    #[arg(long, value_name = "SIZE", conflicts_with = "listen")]
    bytes: Option<ByteSize>,
    /// Receive from the listener instead of sending
    #[arg(long, conflicts_with = "listen")]
    reverse: bool,
    /// Number of concurrent connections, each from its own port; each one sends --bytes
    #[arg(long, value_name = "N", conflicts_with = "listen", default_value_t = 1,
          value_parser = clap::value_parser!(u64).range(1..=MAX_FLOWS))]
    flows: u64,
    /// Keep a stable control stream of this goodput beside the transfer, on the same port: 1mbit
    ///
    /// The transfer takes the rest of the path, as far as no queue delays the stream.
    #[arg(long, value_name = "RATE", conflicts_with_all = ["listen", "reverse"], value_parser = some_rate, hide_short_help = true)]
    control_stream: Option<Rate>,
    /// Report progress every S seconds; 0 for never
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    interval: Duration,
    #[command(flatten)]
    pub(crate) transport: Transport,
    #[command(flatten)]
    server_keys: ServerKeys,
    #[command(flatten)]
    client_keys: ClientKeys,
}

pub(crate) fn run(args: &BenchArgs, context: &Context) -> Result<(), Fault> {
    let output = Output::from_flag(args.transport.json);
    let interval = Some(args.interval).filter(|interval| !interval.is_zero());
    let trace = args.transport.begin_trace("bench", &output)?;
    let shown = Shown { interval, trace: trace.clone(), ..Shown::default() };
    let environment = context.environment(Reporter::new(output.clone(), shown));
    let mut settings = args.transport.settings();
    args.server_keys.set(&mut settings.security, &output);
    args.client_keys.set(&mut settings.security);
    let bench = Measurement { args, context, output, settings, environment, interval, trace };
    match (&args.listen, &args.connect) {
        (Some(listen), _) => bench.listen(listen),
        (None, Some(connect)) => bench.connect(connect),
        (None, None) => Err(Fault::usage("give --listen or --connect")),
    }
}

struct Measurement<'a> {
    args: &'a BenchArgs,
    context: &'a Context,
    output: Output,
    settings: Settings,
    environment: Environment,
    interval: Option<Duration>,
    trace: Option<Trace>,
}

/// A flow's report, and its result.
type Measured = (Report, Result<(), Fault>);

/// The parts of a session that differ between the ends.
struct BenchEnd<'a> {
    session: Option<u64>,
    flow: Option<u64>,
    address: String,
    role: Role,
    sends: bool,
    early: &'a [u8],
    meter: Meter,
}

impl Measurement<'_> {
    fn spec(&self) -> BenchSpec {
        let direction = if self.args.reverse { BenchDirection::Reverse } else { BenchDirection::Forward };
        let stop = match self.args.bytes {
            Some(ByteSize(bytes)) => Stop::Bytes(bytes),
            None => Stop::After(self.args.seconds.unwrap_or(Duration::from_secs(10))),
        };
        BenchSpec { direction, stop }
    }

    fn connect(&self, to: &HostPort) -> Result<(), Fault> {
        if self.args.control_stream.is_some() && self.args.flows > 1 {
            return Err(Fault::usage(
                "--control-stream needs one flow, because each flow has a port of its own: leave out --flows",
            ));
        }
        let meter = Meter::start(self.context.clock);
        let spec = self.spec();
        let mut start = self.args.transport.start("bench");
        start.settings.insert("reverse".into(), self.args.reverse.into());
        match spec.stop {
            Stop::Bytes(bytes) => start.settings.insert("bytes".into(), bytes.into()),
            Stop::After(time) => start.settings.insert("seconds".into(), time.as_secs_f64().into()),
        };
        start.settings.insert("flows".into(), self.args.flows.into());
        start.settings.insert("interval_seconds".into(), self.args.interval.as_secs_f64().into());
        if let Some(target) = self.args.control_stream {
            start.settings.insert("control_stream_bps".into(), target.bits_per_second().into());
        }
        let sends = spec.direction == BenchDirection::Forward;
        start.only_sends = sends;
        start.for_people = true;
        let address = to.to_string();
        let place = BenchEnd { session: None, flow: None, address, role: Role::Connecting, sends, early: &[], meter };
        let streams = match self.open(to, start) {
            Ok(streams) => streams,
            Err(fault) => return report_end(&self.output, self.empty_end(&place), Err(fault)),
        };
        self.context.show_state(&self.output, streams.iter().map(|stream| stream.clone().into()).collect());
        let control = self
            .args
            .control_stream
            .map(|target| Control::begin(&self.environment, &self.settings, &streams[0], target));
        let control = control.transpose()?;
        let ((mut end, result), flows) = match &streams[..] {
            [stream] => (self.measure(stream, Bench::connect(spec), (&place, Permit::default()))?, Vec::new()),
            streams => self.measure_all(streams, spec, &place)?,
        };
        end.control_stream = control.and_then(Control::finish);
        self.context.hide_state();
        self.conclude(end, flows, result)
    }

    /// Opens all connections before any of them sends.
    fn open(&self, to: &HostPort, start: Start) -> Result<Vec<Stream>, Fault> {
        let only_sends = start.only_sends;
        let reporter = Reporter::new(self.output.clone(), Shown { start: Some(start), ..Shown::default() });
        let environment = self.context.environment(reporter);
        let calling = Calling::to(&environment, &self.settings, to)?.only_sending(only_sends);
        let first = calling.connect(to)?;
        let peer = first.peer_addr();
        let mut streams = vec![first];
        for _ in 1..self.args.flows {
            streams.push(calling.connect_again(peer)?);
        }
        Ok(streams)
    }

    fn listen(&self, at: &HostPort) -> Result<(), Fault> {
        let clients = self.settings.security.admission(&self.environment.events, None, Service::Bytes("bench"))?;
        let endpoint = self.settings.bind_daemon(at.listening()?, clients.as_ref(), None)?;
        let answers = endpoint.answer_probes();
        answers.map_err(|error| self.context.connection_fault(&error, &endpoint.local_addr()))?;
        let listener = listener::listen(&self.environment, &endpoint)?;
        let reloading = clients.as_ref().map(|_| Reloading::start(|| Ok(()))).transpose()?;
        if clients.is_none() {
            self.context.interrupt.stops_at_hangup()?;
        }
        let mut start = self.args.transport.start("bench");
        start.key = clients.as_ref().map(Admission::fingerprint);
        announce(self.context, &self.output, &endpoint, start);
        let protection = clients.as_ref().map_or_else(|| "not encrypted".to_owned(), Admission::words);
        self.output.print_line(&format!("measuring on {} ({protection}); Ctrl-C stops", endpoint.local_addr()));
        if let Some((clients, reloading)) = clients.as_ref().zip(reloading.as_ref()) {
            listener::guard(&self.environment, clients, &endpoint)?;
            let (clients, events, port) = (clients.clone(), self.environment.events.clone(), endpoint.clone());
            reloading.react(move || listener::reload(&clients, &port, &events));
        }
        let clients = clients.as_ref();
        let serves_unlisted = clients.is_some_and(Admission::admits_anybody);
        let idle = Some(IDLE);
        let limits = Limits { sessions: MAX_MEASUREMENTS, idle, clients, serves_unlisted, quotas: &[] };
        let callers = Callers::new(&limits, &Arc::default(), self.context.clock);
        let (states, words) = (callers.clone(), self.output.clone());
        self.context.interrupt.shows(move || words.state(&states.state()));
        listener::run(&self.environment, (listener, |_, _| ()), (&limits, &callers), |caller| {
            self.serve(caller, clients)
        })
    }

    fn serve(&self, caller: &Caller, clients: Option<&Admission>) {
        let Request::Bench(spec) = caller.open.request else {
            return caller.refuse(AbortCode::WrongService, "this server measures; `farhaul serve` copies files");
        };
        let Some(connection) = caller.stream.connection() else { return };
        let permit = match clients.map(|clients| clients.begin(connection)).transpose() {
            Ok(permit) => permit.unwrap_or_default(),
            Err((code, why)) => return caller.refuse(code, why),
        };
        let place = BenchEnd {
            session: Some(caller.session),
            flow: None,
            address: caller.peer.to_string(),
            role: Role::Accepting,
            sends: spec.direction == BenchDirection::Reverse,
            early: &caller.early,
            meter: Meter::start(self.context.clock),
        };
        let measured = self.measure(connection, Bench::accept(spec), (&place, permit));
        if let Err(fault) = &measured {
            caller.refuse(AbortCode::Busy, &format!("{}; try again later", fault));
        }
        caller.leave_place();
        let measured =
            measured.map(|(end, result)| (end, result.map_err(|fault| caller.idle_error().unwrap_or(fault))));
        if let Err(fault) = measured.and_then(|(end, result)| self.conclude(end, Vec::new(), result)) {
            self.output.warn(&fault.to_string());
        }
    }

    fn watch(&self, streams: Vec<Stream>, place: &BenchEnd<'_>, view: View) -> Result<Watch, Fault> {
        let mut intervals = Intervals::of(view);
        let show = move |moved: &Moved<'_>| intervals.show(moved);
        Ok(Watch::start(streams.into_iter().map(Into::into).collect(), self.context.clock, place.sends, show)?)
    }

    fn view(&self, place: &BenchEnd<'_>) -> View {
        View {
            output: self.output.clone(),
            session: place.session,
            flow: place.flow,
            interval: self.interval,
            trace: self.trace.clone(),
        }
    }

    /// Measures one flow within the caps of the peer's key.
    fn measure(
        &self,
        stream: &Stream,
        session: Bench,
        (place, permit): (&BenchEnd<'_>, Permit),
    ) -> Result<Measured, Fault> {
        let mut watch = self.watch(vec![stream.clone()], place, self.view(place))?;
        let caps = self.settings.caps();
        let mut job = BenchJob::new(session, place.sends, stream, &watch, place.meter).under(caps).within(permit);
        let connection = SessionConnection {
            stream: &stream.clone().into(),
            role: place.role,
            clock: self.context.clock,
            early: place.early,
        };
        let (waits, driven) = drive(&connection, &mut job);
        let (outcome, exhausted, sender) = (job.outcome.take(), job.exhausted, job.sender(waits));
        watch.stop();
        let stats = stream.stats().unwrap_or_default();
        let mut end = self.empty_end(place);
        measure::note_protection(&mut end, &stream.clone().into());
        end.cpu_seconds = place.meter.cpu();
        end.seconds = outcome.map_or(place.meter.elapsed(), |(.., done)| place.meter.until(done)).as_secs_f64();
        measure::fill(&mut end, &stats, watch.rtt());
        match &outcome {
            Some((sender, receiver, _)) => {
                end.bytes = receiver.bytes;
                end.goodput_bps = goodput(receiver.bytes, receiver.elapsed);
                end.peer = Some(measure::peer(if place.sends { receiver } else { sender }));
                if !place.sends {
                    (end.limited_by, end.limited_by_share) = measure::limit_of_receiver(sender, &stats).unzip();
                }
            }
            // A measurement that was stopped, as far as this side knows.
            None => {
                let totals = &stats.totals;
                end.bytes = if place.sends { totals.bytes_acked } else { totals.bytes_read };
                end.goodput_bps = goodput(end.bytes, stats.elapsed);
            }
        }
        if place.sends {
            let receiver = outcome.as_ref().map(|(_, receiver, _)| measure::losses_of(receiver)).unwrap_or_default();
            measure::fill_limit(&mut end, &stats, &measure::Sender { receiver, ..sender });
        }
        let result = match (driven, outcome, exhausted) {
            (.., Some(used_up)) => Err(Fault::new(Code::AccessDenied, format!("{}: {}", place.address, used_up.0))),
            (Err(trouble), ..) => Err(self.context.fault(&trouble, &place.address)),
            (Ok(()), None, _) => Err(Fault::new(Code::PeerLost, format!("{} left before it reported", place.address))),
            (Ok(()), Some(_), _) => Ok(()),
        };
        Ok((end, result))
    }

    /// Measures all flows at once. Returns their sum.
    fn measure_all(
        &self,
        streams: &[Stream],
        spec: BenchSpec,
        place: &BenchEnd<'_>,
    ) -> Result<(Measured, Vec<Flow>), Fault> {
        // Each flow has its own trace.
        let view = View { trace: None, ..self.view(place) };
        let mut watch = self.watch(streams.to_vec(), place, view)?;
        let flows: Result<Vec<Measured>, Fault> = thread::scope(|scope| {
            let measure = |(stream, number)| {
                let place = BenchEnd { flow: Some(number), address: place.address.clone(), ..*place };
                let thread = thread::Builder::new().name("flow".into());
                thread.spawn_scoped(scope, move || {
                    self.measure(stream, Bench::connect(spec), (&place, Permit::default()))
                })
            };
            let running: Vec<_> = streams.iter().zip(1..).map(measure).collect();
            if running.iter().any(Result::is_err) {
                // A measurement needs all its flows.
                streams.iter().for_each(|stream| stream.close());
            }
            running.into_iter().map(|flow| flow?.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        });
        watch.stop();
        let end = Report { cpu_seconds: place.meter.cpu(), ..self.empty_end(place) };
        Ok(flows::sum(end, &flows?))
    }

    fn conclude(&self, end: Report, flows: Vec<Flow>, result: Result<(), Fault>) -> Result<(), Fault> {
        let was_stopped = self.context.interrupt.is_stopping() && end.bytes > 0;
        if result.is_ok() || was_stopped {
            let session = end.session.map_or(String::new(), |session| format!("[{session}] "));
            self.output.print_line(&(session + &summary(&self.output, &end, &flows)));
        }
        report_flows(&self.output, end, flows, result)
    }

    fn empty_end(&self, place: &BenchEnd<'_>) -> Report {
        let direction = if place.sends { Direction::Sent } else { Direction::Received };
        let address = Some(place.address.clone());
        Report { session: place.session, address, ..self.settings.report(direction) }
    }
}

/// The result in a few lines.
fn summary(output: &Output, end: &Report, flows: &[Flow]) -> String {
    let style = output.style();
    let peer = end.peer.clone().unwrap_or_default();
    let (sent, again) = match end.direction {
        Some(Direction::Sent) => (end.packets_sent, end.packets_retransmitted),
        _ => (peer.packets_sent.unwrap_or(0), peer.packets_retransmitted.unwrap_or(0)),
    };
    let peer_cpu = peer.cpu_seconds.map_or(String::new(), |cpu| format!(", {:.2} s there", cpu.total()));
    let limit = match end.limited_by {
        Some(limit) => limited_by(limit, end.limited_by_share.unwrap_or(0.0)),
        None => "too short for a limit".to_owned(),
    };
    let control = end.control_stream.as_ref().map_or(String::new(), |control| format!("\n  {}", control_line(control)));
    let model = end.model_bps.map_or(String::new(), |model| {
        format!("\n  the model of the protocol predicts {} at this rate, RTT and loss", rate(Some(model)))
    });
    let flows: String = flows.iter().map(|flow| flows::line(flow) + "\n").collect();
    format!(
        "{flows}{} {} in {}: {} at the receiver\n  {} of the packets retransmitted; RTT minimum {}, mean {}, 99th percentile {}\n  processor time {:.2} s here{peer_cpu}\n  {limit}{model}{control}\n  {}",
        style.green("measured:"),
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        style.bold(&rate(end.goodput_bps)),
        percent(share(again as f64, sent as f64)),
        time(Duration::from_micros(end.rtt_us.min)),
        time(Duration::from_micros(end.rtt_us.mean)),
        time(Duration::from_micros(end.rtt_us.p99)),
        end.cpu_seconds.total(),
        end.protection(),
    )
}
