//! Clients that a server refuses, and whose close packet is lost.

use super::*;

/// The close packet of a server that refuses a client is its only Handshake packet without messages of TLS.
fn is_close(end: usize, datagram: &[u8]) -> bool {
    let handshake = Header::decode(datagram).is_ok_and(|header| header.epoch == Epoch::HANDSHAKE);
    end == 1 && handshake && datagram.len() < 100
}

/// A pair whose server admits nobody, and whose first `lost` close packets are lost.
fn refused(lost: u32) -> Pair {
    let mut pair = Pair::of(Null::new(1), Null::new(2).that_admits_nobody());
    let mut closes = 0;
    pair.fate = Box::new(move |end, datagram| {
        closes += u32::from(is_close(end, datagram));
        u32::from(!is_close(end, datagram) || closes > lost)
    });
    pair
}

#[test]
fn a_client_is_told_that_it_is_not_admitted_even_if_the_first_close_is_lost() {
    for lost in [1, 2, 3] {
        let mut pair = refused(lost);
        let caller = pair.call();
        let began = pair.now;
        let end = Event::Closed(caller, ConnectionLost::Insecure(SecurityFault::NotAdmitted));
        pair.run_until(5, |pair| pair.events[0].contains(&end));
        assert!(pair.news - began < Duration::from_secs(2), "{lost} lost: {:?}", pair.news - began);
        assert_eq!(pair.ends[1].connections(), 0, "the opening itself is gone");
        assert!(pair.events[1].is_empty());
    }
}

#[test]
fn a_client_that_goes_on_is_answered_at_most_once_a_packet() {
    let mut pair = refused(u32::MAX);
    pair.call();
    let end = pair.now + Duration::from_secs(12);
    while pair.now < end && pair.step() {}
    let answers = pair.sent[1].iter().filter(|len| **len < 100).count();
    // Its first three packets are those of the handshake.
    let goes_on = pair.sent[0].len() - 3;
    assert!((2..=goes_on.min(6)).contains(&answers), "{answers} answers within 2 s, {goes_on} packets in all");
}

/// Refused clients take no places, and their calls that go on are no new ones.
#[test]
fn a6_refused_clients_leave_all_places_free() {
    let mut pair = refused(u32::MAX);
    for _ in 0..400 {
        pair.call();
        let end = pair.now + Duration::from_millis(50);
        while pair.now < end && pair.step() {}
        assert_eq!(pair.ends[1].connections(), 0);
    }
}
