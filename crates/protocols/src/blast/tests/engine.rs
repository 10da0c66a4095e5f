//! The simplest engine: numbered packets at a fixed rate. Every 10 ms the receiver says what it has and what is missing.

use std::collections::{BTreeMap, VecDeque};

use farhaul_units::{Duration, Instant, SeqNo, SeqRange};

use crate::blast::engine::{Prefix, Protocol, Receiver, Sender, Setup, Transmission};
use crate::blast::receiving::ReceiverState;
use crate::blast::sending::SenderState;
use farhaul_proto::error::{ControlFault, PeerMisbehaved};
use farhaul_proto::stats::Stats;

const PAYLOAD: usize = 1_400;
const PERIOD: Duration = Duration::from_micros(20);
const REPORT: Duration = Duration::from_millis(10);
const BUFFER: usize = 16 << 20;
/// Most packets of the receiver: more than any test has under way.
const MOST_PACKETS: u32 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Simple;

impl Protocol for Simple {
    type Options = ();
    type Sender = SimpleSender;
    type Receiver = SimpleReceiver;
    const NAME: &'static str = "simple";

    fn sender((): &(), setup: Setup<'_>) -> SimpleSender {
        SimpleSender {
            state: SenderState::new(&setup),
            prefix: setup.prefix,
            next: setup.now,
            packets: BTreeMap::new(),
            end: 0,
            held: 0,
            due: VecDeque::new(),
            first: 0,
        }
    }

    fn receiver((): &(), _hello: &[u8], setup: Setup<'_>) -> Result<SimpleReceiver, PeerMisbehaved> {
        let state = ReceiverState::new(SeqNo::new(0), PAYLOAD, MOST_PACKETS, &setup);
        Ok(SimpleReceiver { state, report: setup.now, news: false })
    }
}

#[derive(Debug)]
pub(crate) struct SimpleSender {
    state: SenderState,
    prefix: Prefix,
    next: Instant,
    packets: BTreeMap<u32, Vec<u8>>,
    end: u32,
    held: usize,
    due: VecDeque<u32>,
    first: u32,
}

impl Sender for SimpleSender {
    fn state_mut(&mut self) -> &mut SenderState {
        &mut self.state
    }

    fn room(&self) -> usize {
        BUFFER.saturating_sub(self.held)
    }

    fn write(&mut self, _now: Instant, data: &[u8]) -> usize {
        for packet in data.chunks(PAYLOAD) {
            self.packets.insert(self.end, packet.to_vec());
            self.due.push_back(self.end);
            self.end += 1;
        }
        self.held += data.len();
        data.len()
    }

    fn flush(&mut self, _now: Instant) {}

    fn is_delivered(&self) -> bool {
        self.packets.is_empty()
    }

    fn handle_record(&mut self, _now: Instant, bytes: &[u8]) -> Result<Option<usize>, PeerMisbehaved> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let fault = PeerMisbehaved::ControlRecord(ControlFault::Length { record: "list", length: 0, valid: 4 });
        // In this test, lists are not divided.
        let mut words = bytes.chunks(4).map(|word| word.try_into().map(u32::from_be_bytes).map_err(|_| fault));
        let first = words.next().ok_or(fault)??;
        if first > self.end {
            return Err(fault);
        }
        while self.first < first {
            self.held -= self.packets.remove(&self.first).map_or(0, |packet| packet.len());
            self.first += 1;
        }
        for missing in words {
            self.due.push_front(missing?);
        }
        Ok(Some(bytes.len()))
    }

    fn plan(&mut self, now: Instant) -> Option<Transmission> {
        if now < self.next {
            return None;
        }
        while self.due.front().is_some_and(|number| !self.packets.contains_key(number)) {
            self.due.pop_front();
        }
        self.next = now + PERIOD;
        let first = u64::from(*self.due.front()?);
        Some(Transmission { first, packets: 1, again: false })
    }

    fn emit<'a>(&'a mut self, _now: Instant, plan: Transmission, out: &'a mut Vec<u8>) -> Option<(usize, &'a [u8])> {
        self.due.pop_front();
        out.clear();
        out.extend_from_slice(&self.prefix.bytes()[..self.prefix.length()]);
        out.extend_from_slice(&(plan.first as u32).to_be_bytes());
        out.extend_from_slice(self.packets.get(&(plan.first as u32))?);
        Some((out.len(), out))
    }

    fn deadline(&self) -> Option<Instant> {
        (!self.due.is_empty()).then_some(self.next)
    }

    fn fill_stats(&self, _now: Instant, _stats: &mut Stats) {}
}

#[derive(Debug)]
pub(crate) struct SimpleReceiver {
    state: ReceiverState,
    report: Instant,
    news: bool,
}

impl SimpleReceiver {
    /// Whether there is nothing to report.
    fn is_quiet(&self) -> bool {
        !self.news && self.state.buffer.is_contiguous()
    }
}

impl Receiver for SimpleReceiver {
    fn state(&self) -> &ReceiverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ReceiverState {
        &mut self.state
    }

    fn handle_datagram(&mut self, _now: Instant, datagram: &[u8]) -> bool {
        let Some((number, payload)) = datagram.split_first_chunk() else { return false };
        self.state.store(SeqNo::new(u32::from_be_bytes(*number)), payload);
        self.news = true;
        true
    }

    fn end_batch(&mut self, _now: Instant) {}

    fn deadline(&self) -> Option<Instant> {
        (!self.is_quiet()).then_some(self.report)
    }

    fn poll_control(&mut self, now: Instant, out: &mut Vec<u8>) {
        if now < self.report || self.is_quiet() {
            return;
        }
        self.news = false;
        // Four times the time that a repetition takes, so that none is asked for twice.
        self.report = now + REPORT * 4;
        let (next, end) = (self.state.buffer.ack_point(), self.state.buffer.end());
        out.extend_from_slice(&next.value().to_be_bytes());
        let missing = self.state.missing(SeqRange::new(next, end.minus(1)));
        let missing = missing.flat_map(|range| range.first.value()..=range.last.value()).take(1_000);
        missing.for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
    }

    fn fill_stats(&self, _now: Instant, _stats: &mut Stats) {}
}
