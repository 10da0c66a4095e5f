//! The far end of measured streams on a port that answers them.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use farhaul_proto::probe::{ANSWER_LEN, Responder, payload};
use farhaul_proto::{AddressPair, Batch, ConnectionId, DatagramKind, Datagrams, Transmit};
use farhaul_units::Instant;

use crate::probe::ProbePayload;

/// Answers that leave in one train.
const TRAIN: usize = 64;
/// Payloads that wait for the application. More are lost, as in a full socket: at 10 Mbit/s in large datagrams they are
/// seconds, and together at most 64 MB.
const WAITING: usize = 1_024;
/// A stream that was heard within this time is alive. Slower ones measure seconds.
const LIVELY: Duration = Duration::from_secs(1);

/// The sender of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sender {
    /// Its plain datagrams travel between these addresses.
    Plain(AddressPair),
    /// They come through this connection.
    Inside(ConnectionId),
}

/// A responder on a port.
#[derive(Debug, Default)]
pub(crate) struct Answering {
    responder: Responder<Sender>,
    train: Vec<u8>,
    /// Packets with answers.
    sealed: Batch,
    /// When a stream was last heard.
    heard: Option<Instant>,
    payloads: Option<SyncSender<ProbePayload>>,
}

impl Answering {
    /// Gives the payloads of streams to the application from now on, instead of one that asked before.
    pub(crate) fn payloads(&mut self) -> Receiver<ProbePayload> {
        let (sender, receiver) = sync_channel(WAITING);
        self.payloads = Some(sender);
        receiver
    }

    /// Data datagrams of all streams so far, and their bytes.
    pub(crate) fn totals(&self) -> (u64, u64) {
        self.responder.totals()
    }

    /// Whether a stream was heard within the last second.
    pub(super) fn hears_stream(&self, now: Instant) -> bool {
        self.heard.is_some_and(|heard| now.saturating_since(heard) < LIVELY)
    }

    /// Takes questions that arrived inside connections.
    pub(super) fn handle_inside(&mut self, datagrams: &mut dyn Datagrams) {
        datagrams.take_datagrams(DatagramKind::Question, &mut |arrival| {
            let sender = Sender::Inside(arrival.connection);
            self.handle(arrival.arrived, (sender, arrival.peer), arrival.datagrams());
        });
    }

    /// Takes datagrams that arrived at `arrived`, from a sender with this address.
    pub(super) fn handle<'a>(
        &mut self,
        arrived: Instant,
        (from, peer): (Sender, SocketAddr),
        datagrams: impl Iterator<Item = &'a [u8]>,
    ) {
        self.heard = Some(arrived);
        for datagram in datagrams {
            let Some(probe) = self.responder.handle_datagram(arrived, from, datagram) else { continue };
            if let Some(payloads) = &self.payloads {
                let bytes = payload(datagram).to_vec();
                let taken =
                    payloads.try_send(ProbePayload { from: peer, session: probe.session, number: probe.number, bytes });
                if matches!(taken, Err(TrySendError::Disconnected(_))) {
                    self.payloads = None;
                }
            }
        }
    }

    /// Sends the answers, inside the connections of their senders if these have any. `send` returns the number of bytes taken. A socket that takes
    /// no more loses the rest, so that no late answer passes for a slow path.
    pub(super) fn answer(
        &mut self,
        now: Instant,
        is_blocked: bool,
        mut inside: Option<&mut dyn Datagrams>,
        mut send: impl FnMut(&Transmit<'_>) -> std::io::Result<usize>,
    ) {
        while !is_blocked && self.responder.has_answers() {
            self.train.clear();
            let Some(to) = self.responder.poll_answers(&mut self.train, TRAIN) else { break };
            let train = match to {
                Sender::Plain(between) => Transmit::between(between, ANSWER_LEN, &self.train),
                Sender::Inside(id) => {
                    let Some(datagrams) = &mut inside else { break };
                    let answers = (&self.train[..], ANSWER_LEN);
                    let sent = datagrams.send_datagrams(now, id, answers, self.sealed.cleared());
                    let Some((between, segment_size)) = sent else { continue };
                    Transmit::between(between, segment_size, self.sealed.bytes())
                }
            };
            let is_full = match send(&train) {
                Ok(taken) => taken < train.bytes.len(),
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            };
            if is_full {
                break;
            }
        }
        self.responder.lose_answers();
    }
}

#[cfg(test)]
mod tests {
    use farhaul_wire::probe::{ANSWER_LEN, Acknowledge, Kind, Probe};

    use super::*;

    fn peer(port: u16) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, 1], port))
    }

    fn data(number: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let kind = Kind::Data { group: 1, acknowledge: Acknowledge::Each };
        Probe { kind, session: 7, number, clock: 1 }.encode(&mut bytes);
        bytes.resize(ANSWER_LEN, number as u8);
        bytes
    }

    fn handle(answering: &mut Answering, port: u16, numbers: std::ops::Range<u64>) {
        let all: Vec<Vec<u8>> = numbers.map(data).collect();
        answering.handle(
            Instant::from_nanos(5),
            (Sender::Plain(peer(port).into()), peer(port)),
            all.iter().map(Vec::as_slice),
        );
    }

    #[test]
    fn answers_leave_in_trains_of_one_receiver() {
        let (mut answering, mut trains) = (Answering::default(), Vec::new());
        handle(&mut answering, 1, 0..TRAIN as u64 + 3);
        handle(&mut answering, 2, 0..2);
        answering.answer(Instant::ZERO, false, None, |train| {
            trains.push((train.to.port(), train.bytes.len() / train.segment_size));
            Ok(train.bytes.len())
        });
        assert_eq!(trains, [(1, TRAIN), (1, 3), (2, 2)]);
    }

    #[test]
    fn a_socket_that_is_full_loses_answers() {
        let mut answering = Answering::default();
        for (blocked, taken) in [(true, None), (false, None), (false, Some(ANSWER_LEN))] {
            handle(&mut answering, 1, 0..200);
            let mut calls = 0;
            answering.answer(Instant::ZERO, blocked, None, |_| {
                calls += 1;
                taken.ok_or(std::io::ErrorKind::WouldBlock.into())
            });
            assert_eq!((calls, answering.responder.has_answers()), (usize::from(!blocked), false));
        }
    }

    #[test]
    fn a_train_that_the_network_refuses_is_lost_alone() {
        let (mut answering, mut calls) = (Answering::default(), 0);
        handle(&mut answering, 1, 0..2);
        handle(&mut answering, 2, 0..2);
        answering.answer(Instant::ZERO, false, None, |_| {
            calls += 1;
            Err(std::io::ErrorKind::NetworkUnreachable.into())
        });
        assert_eq!(calls, 2);
    }

    #[test]
    fn payloads_reach_the_application_in_bounded_number() {
        let mut answering = Answering::default();
        let payloads = answering.payloads();
        handle(&mut answering, 1, 0..WAITING as u64 + 5);
        let all: Vec<ProbePayload> = payloads.try_iter().collect();
        assert_eq!((all.len(), all[3].number, all[3].session, all[3].from), (WAITING, 3, 7, peer(1)));
        assert_eq!(all[3].bytes, vec![3; ANSWER_LEN - 32]);
        drop(payloads);
        handle(&mut answering, 1, 0..1);
        assert!(answering.payloads.is_none());
    }
}
