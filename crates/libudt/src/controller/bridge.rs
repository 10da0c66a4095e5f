//! Translates between a controller of Farhaul and a CCC object.

use std::collections::VecDeque;
use std::time::Duration;

use farhaul::cc::{
    AckEvent, Control, Controller, CustomMessage, DataPacket, LossEvent, Path, ReceivedEvent, SentEvent, TimeoutEvent,
};
use farhaul::units::{Instant, PacketRate, SendPeriod, SeqNo, SeqRange};

use super::callback::{self, Counts};
use super::foreign::{OwnedController, Packet, Settings, View};

/// The bit of a word in a loss list that marks the first packet of a range.
const RANGE: i32 = i32::MIN;
/// Both boundary bits of a message number: the packet is a message of its own.
const SOLE: i32 = -1 << 30;

/// A CCC object as a controller.
#[derive(Debug)]
pub(super) struct Bridge {
    controller: OwnedController,
    counts: Counts,
    settings: Settings,
    /// The last acknowledgement that the object has heard of.
    acked: Option<SeqNo>,
    messages: VecDeque<CustomMessage>,
    /// Reused lists.
    list: Vec<i32>,
    packets: Vec<Packet>,
    closed: bool,
}

impl Bridge {
    pub(super) fn new(controller: OwnedController) -> Self {
        Self {
            controller,
            counts: Counts::default(),
            settings: Settings::default(),
            acked: None,
            messages: VecDeque::new(),
            list: Vec::new(),
            packets: Vec::new(),
            closed: false,
        }
    }

    /// Makes a callback, and applies what the object has set.
    fn call(
        &mut self,
        path: &Path,
        control: &mut Control,
        callback: impl FnOnce(&mut OwnedController, &View, &mut Settings),
    ) {
        let view = view(path);
        let (controller, settings) = (&mut self.controller, &mut self.settings);
        self.messages.extend(callback::run(Some((*path, self.counts)), || callback(controller, &view, settings)));
        apply(settings, control);
        (self.counts.period, self.counts.window) = (settings.period, settings.window);
    }

    fn packets(&mut self, packets: &[DataPacket], at: Instant) -> Vec<Packet> {
        let begun = self.counts.begun.unwrap_or(at);
        let stamp = at.saturating_since(begun).as_micros() as u32 as i32;
        let mut list = std::mem::take(&mut self.packets);
        list.clear();
        list.extend(packets.iter().map(|packet| Packet {
            seq: word(packet.seq),
            message: SOLE | packet.message.map_or(0, |message| message.value() as i32),
            stamp,
            payload: i32::try_from(packet.payload).unwrap_or(i32::MAX),
        }));
        list
    }
}

impl Controller for Bridge {
    fn name(&self) -> &str {
        "ccc"
    }

    fn on_connect(&mut self, path: &Path, control: &mut Control) {
        self.counts.begun = Some(path.now);
        self.acked = Some(path.next_seq);
        self.call(path, control, |controller, view, settings| controller.init(view, settings));
    }

    /// Light acknowledgements, and repeated ones, never reach a CCC object.
    fn on_ack(&mut self, path: &Path, ack: &AckEvent, control: &mut Control) {
        if ack.light || self.acked.is_some_and(|acked| !acked.is_before(ack.seq)) {
            return;
        }
        self.acked = Some(ack.seq);
        self.counts.acks += 1;
        self.call(path, control, |controller, view, settings| controller.on_ack(view, word(ack.seq), settings));
    }

    fn on_loss(&mut self, path: &Path, loss: &LossEvent<'_>, control: &mut Control) {
        self.counts.naks += 1;
        self.counts.lost += u64::from(loss.newly_lost);
        let mut list = std::mem::take(&mut self.list);
        compress(loss.ranges, &mut list);
        self.call(path, control, |controller, view, settings| controller.on_loss(view, &list, settings));
        self.list = list;
    }

    fn on_timeout(&mut self, path: &Path, _: &TimeoutEvent, control: &mut Control) {
        self.call(path, control, |controller, view, settings| controller.on_timeout(view, settings));
    }

    fn on_sent(&mut self, path: &Path, sent: &SentEvent<'_>, control: &mut Control) {
        self.counts.retransmitted += if sent.retransmission { sent.packets.len() as u64 } else { 0 };
        let packets = self.packets(sent.packets, sent.at);
        self.call(path, control, |controller, view, settings| controller.on_sent(view, &packets, settings));
        self.packets = packets;
    }

    fn on_received(&mut self, path: &Path, received: &ReceivedEvent<'_>, control: &mut Control) {
        self.counts.received += received.packets.len() as u64;
        let packets = self.packets(received.packets, received.at);
        self.call(path, control, |controller, view, settings| controller.on_received(view, &packets, settings));
        self.packets = packets;
    }

    /// libudt gives the body as words in the order of the host.
    fn on_custom_message(&mut self, path: &Path, kind: u16, body: &[u8], control: &mut Control) {
        let mut body = body.to_vec();
        swap_words(&mut body);
        self.call(path, control, |controller, view, settings| controller.on_custom(view, kind, &mut body, settings));
    }

    fn next_message(&mut self) -> Option<CustomMessage> {
        self.messages.pop_front()
    }

    fn on_close(&mut self) {
        if !self.closed {
            self.closed = true;
            callback::run(None, || self.controller.close());
        }
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn wants_custom_messages(&self) -> bool {
        true
    }
}

impl Drop for Bridge {
    /// The object's destructor runs under the lock of the port, as a callback does.
    fn drop(&mut self) {
        self.on_close();
    }
}

/// Whole words change between the order of the network and that of the host. libudt leaves a rest as it is.
pub(crate) fn swap_words(body: &mut [u8]) {
    for word in body.chunks_exact_mut(4) {
        let value = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
        word.copy_from_slice(&value.to_ne_bytes());
    }
}

fn view(path: &Path) -> View {
    let rate = |rate: Option<PacketRate>| rate.map_or(1, |rate| rate.packets_per_second() as i32).max(1);
    View {
        max_window: f64::from(path.max_window),
        bandwidth: rate(path.capacity),
        recv_rate: rate(path.arrival_rate),
        mss: path.mss as i32,
        sent: word(path.next_seq.minus(1)),
        rtt: i32::try_from(path.rtt.as_micros()).unwrap_or(i32::MAX),
    }
}

/// Applies the settings of the object. What is no number changes nothing.
fn apply(settings: &Settings, control: &mut Control) {
    if settings.window >= 0.0 {
        control.cwnd = Some(settings.window.max(1.0));
    }
    if settings.period >= 0.0 && settings.period.is_finite() {
        control.send_period = SendPeriod::from_micros(settings.period);
    }
    let time = |micros: i32| u64::try_from(micros).ok().filter(|micros| *micros > 0).map(Duration::from_micros);
    control.ack_period = time(settings.ack_period);
    control.full_ack_interval = u32::try_from(settings.ack_interval).ok().filter(|packets| *packets > 0);
    control.rto = time(settings.rto);
}

fn word(seq: SeqNo) -> i32 {
    seq.value() as i32
}

/// The ranges as the words of a loss report: one for a packet, and two for more.
fn compress(ranges: &[SeqRange], list: &mut Vec<i32>) {
    list.clear();
    for range in ranges {
        if range.first == range.last {
            list.push(word(range.first));
        } else {
            list.extend([word(range.first) | RANGE, word(range.last)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_list_has_one_word_for_a_packet_and_two_for_a_range() {
        let seq = SeqNo::new;
        let mut list = vec![9];
        compress(&[SeqRange::new(seq(5), seq(5)), SeqRange::new(seq(7), seq(9))], &mut list);
        assert_eq!(list, [5, 7 | RANGE, 9]);
    }

    #[test]
    fn settings_that_are_no_numbers_change_nothing() {
        let mut control = Control::initial();
        let wrong = Settings { period: f64::NAN, window: f64::NAN, ack_period: -1, ack_interval: -1, rto: 0 };
        apply(&wrong, &mut control);
        assert_eq!(control, Control::initial());
        apply(
            &Settings { period: 10.0, window: 0.0, ack_period: 5_000, ack_interval: 2, rto: 1_000_000 },
            &mut control,
        );
        assert_eq!((control.cwnd, control.send_period.as_micros()), (Some(1.0), 10.0));
        assert_eq!((control.ack_period, control.full_ack_interval), (Some(Duration::from_millis(5)), Some(2)));
        assert_eq!(control.rto, Some(Duration::from_secs(1)));
    }

    #[test]
    fn bodies_are_swapped_by_words() {
        let mut body = [1, 2, 3, 4, 5];
        swap_words(&mut body);
        assert_eq!(body, if cfg!(target_endian = "little") { [4, 3, 2, 1, 5] } else { [1, 2, 3, 4, 5] });
    }
}
