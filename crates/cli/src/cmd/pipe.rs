//! `pipe`: one stream between stdin and stdout of two hosts, encrypted or raw UDT4.
//!
//! Encrypted, each direction ends with its input. Plain UDT4 cannot close one direction alone. There, a side that has sent data
//! waits at the end of its input for the last acknowledgement, and closes. A side with empty input only receives. `--wait` keeps
//! the connection for the other direction.

pub(crate) mod args;
mod arrived;
mod beginning;
mod ends;
mod idle;
mod input;
mod output;
mod rendezvous;

use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use farhaul::{ConnectionLost, Error, Stream};
use farhaul_transfer::internal::admission::{Admission, Service};
use farhaul_transfer::internal::bond::{BondedStream, Flows, Further};
use farhaul_transfer::internal::connect::Calling;
use farhaul_transfer::internal::event::Moved;
use farhaul_transfer::internal::keys::{Exhausted, Permit};
use farhaul_transfer::internal::limit::Caps;
use farhaul_transfer::internal::limit::is_too_short;
use farhaul_transfer::internal::report::{Direction, Report, goodput};
use farhaul_transfer::internal::session::Waits;
use farhaul_transfer::internal::session::measure::{self, Meter};
use farhaul_transfer::internal::session::watch::Watch;
use farhaul_transfer::{Events, Settings};
use farhaul_units::{ByteSize, Instant};
use serde_json::Value;

use super::{Context, announce, report_end};
use crate::ctl;
use crate::exit::{Code, Fault};
use crate::options::is_original_stream;
use crate::output::human::{rate, time};
use crate::output::intervals::{Intervals, View};
use crate::output::observer::{Reporter, Shown};
use crate::output::standard_stream::unwritable;
use crate::output::trace::Trace;
use crate::output::tracker::Tracker;
use crate::output::{JsonTo, Output};
use args::PipeArgs;
use arrived::Arrived;
use beginning::{Decided, Undecided};
use ends::Ends;
use idle::Quiet;
use input::Input;
use output::{Output as Stdout, Unwritable};

/// Bytes per read or write.
const BLOCK: usize = 256 << 10;

pub(crate) fn run(args: &PipeArgs, context: &Context) -> Result<(), Fault> {
    args.check()?;
    if is_original_stream(&args.transport.protocol())? {
        return Err(super::without_originals());
    }
    if args.flows > 1 && !args.transport.settings().has_flows() {
        return Err(Fault::usage("several flows need the protocol udt: leave out --flows or --protocol"));
    }
    let output = Output::new(if args.transport.json { JsonTo::Stderr } else { JsonTo::Nowhere });
    let trace = args.transport.begin_trace("pipe", &output)?;
    let events = Events::to(Reporter::new(output.clone(), Shown::default()));
    let mut settings = args.transport.settings();
    args.server_keys.set(&mut settings.security, &output);
    args.client_keys.set(&mut settings.security);
    let pipe = Pipe { args, context, output, events, settings, trace };
    let meter = Meter::start(context.clock);
    match pipe.open() {
        Ok(opened) => pipe.transfer(opened),
        Err(fault) => {
            let empty = pipe.settings.report(Direction::Both);
            let end = Report { seconds: meter.elapsed().as_secs_f64(), ..empty };
            report_end(&pipe.output, end, Err(fault))
        }
    }
}

struct Pipe<'a> {
    args: &'a PipeArgs,
    context: &'a Context,
    output: Output,
    events: Events,
    settings: Settings,
    trace: Option<Trace>,
}

/// An open connection.
struct Opened {
    stream: BondedStream,
    meter: Meter,
    /// The caps of the peer's key.
    permit: Permit,
    /// A listener that has not heard what its caller wants.
    undecided: Option<Undecided>,
    /// This side has called, and its first bytes say how many flows there are.
    has_called: bool,
}

impl Opened {
    /// Over one connection for good.
    fn alone(stream: Stream, meter: Meter) -> Self {
        Self { stream: stream.into(), meter, permit: Permit::default(), undecided: None, has_called: false }
    }
}

impl Pipe<'_> {
    /// Opens the connection, and starts a meter with it.
    fn open(&self) -> Result<Opened, Fault> {
        let transport = &self.args.transport;
        let mut start = transport.start("pipe");
        start.settings.insert("rendezvous".into(), Value::from(self.args.rendezvous));
        start.settings.insert("wait".into(), Value::from(self.args.wait));
        let Some(listen) = &self.args.listen else {
            let to = self.args.connect.as_ref().ok_or_else(|| Fault::usage("give --listen or --connect"))?;
            let meter = Meter::start(self.context.clock);
            let reporter = Reporter::new(self.output.clone(), Shown { start: Some(start), ..Shown::default() });
            let environment = self.context.environment(reporter);
            let calling = Calling::to(&environment, &self.settings, to)?;
            let first = calling.connect(to)?;
            let opened = Opened { has_called: true, ..Opened::alone(first.clone(), meter) };
            return Ok(Opened { stream: self.offer(first.clone(), &calling.further(&first))?, ..opened });
        };
        if self.args.rendezvous {
            let (stream, meter) = self.meet(listen, start)?;
            return Ok(Opened::alone(stream, meter));
        }
        let clients = self.settings.security.admission(&self.events, None, Service::Bytes("pipe"))?;
        let endpoint = self.settings.bind(listen.listening()?, clients.as_ref())?;
        start.key = clients.as_ref().map(Admission::fingerprint);
        let local = endpoint.local_addr();
        let fault = |error: Error| self.context.connection_fault(&error, &local);
        let listener = endpoint.listen().map_err(fault)?;
        announce(self.context, &self.output, &endpoint, start);
        if let Some(clients) = &clients {
            self.output.print_line(&format!("waiting on {local}; {}", clients.words()));
            clients.report_refusals(&self.events)?;
        }
        let (stream, peer) = listener.accept().map_err(fault)?;
        if crate::output::human::is_terminal() {
            self.output.print_line(&self.output.style().dim(&format!("{peer} is connected")));
        }
        let permit = clients.map(|clients| clients.begin(&stream)).transpose();
        let permit = permit.map_err(|(_, why)| Fault::new(Code::NotAdmitted, format!("{peer}: {why}")))?;
        let opened = Opened::alone(stream.clone(), Meter::start(self.context.clock));
        let opened = Opened { permit: permit.unwrap_or_default(), ..opened };
        if !self.settings.has_flows() {
            return Ok(opened);
        }
        Ok(Opened { stream: BondedStream::open(stream, 0), undecided: Some(Undecided::new(listener)), ..opened })
    }

    /// The stream of a caller, which offers as many flows as the user wants.
    fn offer(&self, first: Stream, further: &Further) -> Result<BondedStream, Fault> {
        let flows = Flows::Exactly(self.args.flows);
        let Some(bonding) = flows.offer()? else { return Ok(first.into()) };
        let stream = BondedStream::open(first, 0);
        let peer = stream.peer_addr();
        stream.send_offer(&bonding.open_frame()).map_err(|error| self.context.connection_fault(&error, &peer))?;
        further.open(&stream, flows, bonding);
        Ok(stream)
    }

    fn transfer(&self, opened: Opened) -> Result<(), Fault> {
        let Opened { stream, meter, permit, undecided, has_called } = opened;
        let permit = Arc::new(permit);
        self.context.show_state(&self.output, vec![stream.clone()]);
        let view =
            View { output: self.output.clone(), session: None, flow: None, interval: None, trace: self.trace.clone() };
        let (mut intervals, tracker) = (Intervals::of(view), Tracker::default());
        let (its, throttle) = (tracker.clone(), &self.context.throttle);
        let show = move |moved: &Moved<'_>| {
            its.moved_both_ways(moved);
            intervals.show(moved);
        };
        let what = format!("with {}", stream.peer_addr());
        let amounts = move || tracker.snapshot().record();
        let listening = ctl::listen(self.context.controlled("pipe", (what, self.settings.rate), amounts));
        let capped = throttle.caps(&stream);
        let mut watch = Watch::start(vec![stream.clone()], self.context.clock, false, show)?;
        let interrupt = self.context.interrupt.clone();
        let clock = self.context.clock;
        let ends = Ends::of(&stream, self.args.wait);
        // A caller that offers nothing must not seem to.
        let is_bare = has_called && self.args.flows == 1 && self.settings.has_flows();
        let steering = (interrupt, throttle.clone());
        let input = Input::start((stream.clone(), Arc::clone(&permit)), (ends, is_bare), steering, clock)?;
        let mut arrived = Arrived::default();
        let received = self.receive((&stream, &permit, undecided), (&input, ends), meter, &mut arrived);
        let stats = stream.stats().unwrap_or_default();
        watch.stop();
        let peer = stream.peer_addr();
        let mut end = self.settings.report(direction(&input, &arrived));
        end.address = Some(peer.to_string());
        measure::note_protection(&mut end, &stream);
        measure::note_flows(&mut end, &stream);
        let result = match arrived.is_refusal() {
            true => Err(no_pipe(peer)),
            false => {
                received.and_then(|()| ends.judge((&stream, peer), (input.is_cut_off(), input.bytes()), arrived.bytes))
            }
        };
        let result = result.map_err(|fault| self.context.interrupt.fault().unwrap_or_else(|| self.explained(fault)));
        // Abort, so that the peer takes the partial data for a failure.
        if result.is_err() {
            stream.abort();
        }
        // Release all clones of the stream, so that the program can wait for the shutdown.
        input.release();
        drop((capped, listening));
        self.context.hide_state();
        drop(stream);
        end.bytes = input.bytes() + arrived.bytes;
        end.seconds = meter.elapsed().as_secs_f64();
        end.cpu_seconds = meter.cpu();
        measure::fill(&mut end, &stats, watch.rtt());
        end.goodput_bps = match arrived.first.zip(arrived.last) {
            Some((first, last)) => goodput(arrived.bytes, last - first),
            // An estimate, since the other side reports nothing. A connection of few RTTs is mostly overhead.
            None if is_too_short(end.seconds, stats.min_rtt) => None,
            None => goodput(input.bytes(), meter.elapsed().saturating_sub(stats.min_rtt)),
        };
        if input.bytes() > 0 {
            let waits = Waits { room: input.waited(), busy: input.busy(), ..Waits::default() };
            let caps = Caps { fed: true, ..self.settings.caps() };
            measure::fill_limit(&mut end, &stats, &caps.sender(waits));
        }
        if result.is_ok() && crate::output::human::is_terminal() {
            self.output.print_line(&self.output.style().dim(&summary(&end)));
        }
        report_end(&self.output, end, result)
    }

    /// Writes received data to stdout until the peer's direction has ended, and then waits for that of this side.
    fn receive(
        &self,
        (stream, permit, mut undecided): (&BondedStream, &Permit, Option<Undecided>),
        (input, ends): (&Input, Ends),
        meter: Meter,
        arrived: &mut Arrived,
    ) -> Result<(), Fault> {
        let peer = stream.peer_addr();
        let stdout = Stdout::start(self.context.interrupt.clone(), stream.canceller())?;
        stream.set_read_timeout(Some(self.args.transport.timeout));
        let ended = loop {
            let mut block = stdout.take_block().map_err(|why| self.cannot_write(why))?;
            self.context.throttle.wait(|| self.context.interrupt.is_stopping());
            match stream.recv(&mut block.bytes) {
                Ok(0) => {
                    if let Some(head) = undecided.take().map(Undecided::into_head).filter(|head| !head.is_empty()) {
                        arrived.add(&head, meter.now());
                        block.bytes[..head.len()].copy_from_slice(&head);
                        block.len = head.len();
                        stdout.write(block);
                    }
                    break Ok(());
                }
                Ok(len) => {
                    let len = match undecided.take() {
                        None => len,
                        Some(before) => match before.decide(stream, self.context.clock, &block.bytes[..len])? {
                            Decided::NotYet(still) => {
                                undecided = Some(still);
                                0
                            }
                            Decided::Begun(bytes) => {
                                block.bytes.clear();
                                block.bytes.extend_from_slice(&bytes);
                                block.bytes.resize(BLOCK.max(bytes.len()), 0);
                                bytes.len()
                            }
                        },
                    };
                    if len == 0 {
                        // Not a byte of the stream itself.
                        stdout.give_back(block);
                        continue;
                    }
                    if let Err(used_up) = permit.charge(len, self.context.clock) {
                        break Err(exhausted(peer, used_up));
                    }
                    arrived.add(&block.bytes[..len], meter.now());
                    block.len = len;
                    stdout.write(block);
                }
                // The peer ends its direction in its own time, as long as it lives.
                Err(Error::TimedOut(_)) if ends == Ends::Apart => {}
                Err(Error::TimedOut(_)) => match self.patience(stream, input, meter.now(), arrived) {
                    Some(left) => stream.set_read_timeout(Some(left)),
                    None => break Err(self.idle()),
                },
                // This side is done and has closed.
                Err(Error::Lost(ConnectionLost::ClosedLocally) | Error::Finished) => break Ok(()),
                Err(error @ Error::Cancelled) if self.context.interrupt.is_stopping() => {
                    break Err(self.context.connection_fault(&error, &peer));
                }
                Err(Error::Cancelled) if input.has_closed() => break Ok(()),
                // Writing to stdout failed: the next block has the reason.
                Err(Error::Cancelled) => {}
                Err(error) => break Err(self.context.connection_fault(&error, &peer)),
            }
        };
        // Write all received data, whatever the end.
        stdout.finish().map_err(|why| self.cannot_write(why))?;
        ended?;
        if ends == Ends::Apart {
            self.send_to_the_end(stream, input)?;
        }
        input.outcome(peer)
    }

    /// Waits until this side's direction has ended as well, after that of the peer.
    fn send_to_the_end(&self, stream: &BondedStream, input: &Input) -> Result<(), Fault> {
        // The reader of stdout must see its end now. It may be the one that makes the input.
        output::close().map_err(|error| unwritable(&error))?;
        if input.ended().is_none() && crate::output::human::is_terminal() && !io::stdin().is_terminal() {
            let peer = stream.peer_addr();
            self.output.print_line(&format!("{peer} has sent everything; this side goes on until its own input ends"));
        }
        // A person at a terminal has no more to answer.
        let closed = if io::stdin().is_terminal() { stream.finish() } else { stream.wait_until_closed() };
        let peer = stream.peer_addr();
        input.outcome(peer)?;
        closed.map_err(|error| self.context.connection_fault(&error, &peer))
    }

    /// Time to wait before the next check for an idle connection; `None` if it is idle.
    fn patience(&self, stream: &BondedStream, input: &Input, now: Instant, arrived: &Arrived) -> Option<Duration> {
        let timeout = self.args.transport.timeout;
        let acknowledged = stream.stats().map_or(0, |stats| stats.totals.bytes_acked);
        let quiet = Quiet {
            ended: input.ended(),
            arrived: arrived.last,
            outstanding: acknowledged < input.bytes(),
            waits: self.args.wait,
        };
        match quiet.ends_at(timeout).map(|end| end.saturating_since(now)) {
            None => Some(timeout),
            Some(left) => Some(left).filter(|left| !left.is_zero()),
        }
    }

    fn idle(&self) -> Fault {
        let after = time(self.args.transport.timeout);
        let message = if self.args.wait {
            format!(
                "nothing came for {after} after the end of the input: the other side may wait as well; leave --wait out on \
                 one side, or wait longer with --timeout"
            )
        } else {
            format!(
                "the input is empty and nothing came for {after}: nobody has anything to send (--timeout waits longer)"
            )
        };
        Fault::new(Code::IdleTimeout, message)
    }

    /// The fault of a failed write to stdout: its reader has left, or a disk is full.
    fn cannot_write(&self, why: Unwritable) -> Fault {
        let error = match why {
            Unwritable::Failed(error) => error,
            Unwritable::Stopped => return self.context.interrupt.fault().expect("a signal asked to stop"),
        };
        unwritable(&error)
    }
}

/// The fault of a peer whose key may move no more.
fn exhausted(peer: SocketAddr, used_up: Exhausted) -> Fault {
    Fault::new(Code::NotAdmitted, format!("{peer}: {}", used_up.0))
}

/// The fault of a pipe to a daemon, which refused it.
fn no_pipe(peer: SocketAddr) -> Fault {
    Fault::new(
        Code::Protocol,
        format!(
            "{peer} is a `farhaul serve` or `farhaul bench`, which takes no plain stream: call it with `farhaul copy` or \
             `farhaul bench`, or run `farhaul pipe --listen` there"
        ),
    )
}

fn direction(input: &Input, arrived: &Arrived) -> Direction {
    match (input.bytes() > 0, arrived.bytes > 0) {
        (true, false) => Direction::Sent,
        (false, true) => Direction::Received,
        _ => Direction::Both,
    }
}

fn summary(end: &Report) -> String {
    format!(
        "{} in {}, {}; not verified; {}",
        ByteSize(end.bytes),
        time(Duration::from_secs_f64(end.seconds)),
        rate(end.goodput_bps),
        end.protection()
    )
}
