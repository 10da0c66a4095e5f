//! Forged packets during a transfer: whatever is inside, they do not open.

use farhaul_units::{AckNo, Duration, MsgNo, SeqRange};
use farhaul_wire::udt4::{
    Ack, CONNECTION_BROKEN, Control, DataHeader, DropRequest, HEADER_LEN, LossList, MessageField, Position, Timestamp,
    encode_losses,
};

use farhaul_sim::topology::path::{CALLER, LISTENER};

use crate::attack_secure::bench::{Overheard, assert_nothing_changes, encode};

/// The same control packet for both hosts.
fn both(known: &Overheard, control: &Control<'_>) -> Vec<(usize, Vec<u8>)> {
    [CALLER, LISTENER].map(|host| (host, encode(known.ids[host], control))).into()
}

fn data(known: &Overheard, ahead: u32) -> Vec<u8> {
    let field = MessageField { position: Position::Only, in_order: false, message: MsgNo::new(1) };
    let destination = known.ids[LISTENER];
    let header = DataHeader { seq: known.seq.plus(ahead), field, timestamp: Timestamp::ZERO, destination };
    let mut out = vec![0xEE; HEADER_LEN + 1_000];
    header.encode((&mut out[..HEADER_LEN]).try_into().unwrap());
    out
}

#[test]
fn b1_forged_shutdowns_and_aborts_end_nothing() {
    assert_nothing_changes(|known| {
        [both(known, &Control::Shutdown), both(known, &Control::ErrorSignal(CONNECTION_BROKEN))].concat()
    });
}

#[test]
fn b2_b3_forged_acknowledgements_beyond_what_was_sent_change_nothing() {
    assert_nothing_changes(|known| {
        let (seq, rtt) = (known.seq.plus(50_000), Duration::from_millis(20));
        let full =
            Ack::Full { number: AckNo::new(77), seq, rtt, rtt_var: rtt, free_buffer: 0, arrival_rate: 1, capacity: 1 };
        [Ack::Light { seq }, full].map(|ack| (CALLER, encode(known.ids[CALLER], &Control::Ack(ack)))).into()
    });
}

#[test]
fn b4_packets_of_every_length_change_nothing() {
    assert_nothing_changes(|known| {
        let whole = data(known, 1);
        let cut = known.seq.value() as usize % 40;
        vec![(CALLER, whole[..cut].to_vec()), (LISTENER, whole[..cut].to_vec())]
    });
}

#[test]
fn b5_b6_forged_loss_reports_cause_no_retransmission() {
    assert_nothing_changes(|known| {
        let all = SeqRange::new(known.seq.minus(20_000), known.seq.plus(20_000));
        let mut body = Vec::new();
        encode_losses([all; 100].into_iter(), 364, &mut body);
        vec![(CALLER, encode(known.ids[CALLER], &Control::Nak(LossList::from_body(&body).unwrap())))]
    });
}

#[test]
fn b7_forged_drop_requests_drop_nothing() {
    assert_nothing_changes(|known| {
        let range = SeqRange::new(known.seq.minus(100_000), known.seq.plus(100_000));
        let request = DropRequest { message: MsgNo::new(1), range };
        vec![(LISTENER, encode(known.ids[LISTENER], &Control::DropRequest(request)))]
    });
}

/// In plain mode, the sender would forget data that is still in flight.
#[test]
fn b3_b8_forged_acknowledgements_of_what_is_in_flight_forget_nothing() {
    assert_nothing_changes(|known| {
        let ack = Control::Ack(Ack::Light { seq: known.seq });
        vec![(CALLER, encode(known.ids[CALLER], &ack))]
    });
}

#[test]
fn b9_b10_forged_measurements_and_closed_windows_change_no_rate() {
    assert_nothing_changes(|known| {
        let report = |arrival_rate, free_buffer| {
            let (rtt, seq) = (Duration::from_micros(1), known.seq.minus(10));
            let number = AckNo::new(5);
            Ack::Full { number, seq, rtt, rtt_var: rtt, free_buffer, arrival_rate, capacity: arrival_rate }
        };
        let acks = [report(10_000_000, 8_192), report(1, 0)];
        acks.map(|ack| (CALLER, encode(known.ids[CALLER], &Control::Ack(ack)))).into()
    });
}

#[test]
fn b10_b14_forged_warnings_and_custom_packets_change_no_rate() {
    assert_nothing_changes(|known| {
        [both(known, &Control::CongestionWarning), both(known, &Control::Custom { kind: 3, body: b"four" })].concat()
    });
}

#[test]
fn b11_forged_data_is_not_mixed_in() {
    assert_nothing_changes(|known| [0, 1, 2, 1 << 20, 1 << 29].map(|ahead| (LISTENER, data(known, ahead))).into());
}

#[test]
fn b13_numbers_with_the_top_bit_change_nothing() {
    assert_nothing_changes(|known| {
        let mut ack = encode(known.ids[CALLER], &Control::Ack(Ack::Light { seq: known.seq }));
        ack[HEADER_LEN] |= 0x80;
        let mut other = ack.clone();
        // The connection id, too.
        other[12] |= 0x80;
        vec![(CALLER, ack), (LISTENER, other)]
    });
}
