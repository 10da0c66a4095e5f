//! Attempts to have something weaker: another version, plain packets in place of protected ones. `farhaul-secure` has those on
//! the ClientHello, because only TLS protects that.

use farhaul_proto::{ConnectionLost, Event, Mode, SecurityFault};
use farhaul_sim::topology::path::{CALLER, LISTENER, address};
use farhaul_sim::{OutgoingDatagram, TapAction, Workload};
use farhaul_units::{Duration, SeqNo};
use farhaul_wire::secure::{HEADER_LEN, is_protected};
use farhaul_wire::udt4::{Control, Handshake, Request, SocketId, SocketType};

use crate::attack_secure::bench::{Run, encode, endpoint, null, upload};

/// The end of a call that `attack` disturbs. There is no connection at either side.
fn outcome(attack: impl FnMut(&mut OutgoingDatagram<'_>) -> TapAction + 'static) -> ConnectionLost {
    let mut run = upload();
    run.set_tap(Some(Box::new(attack)));
    run.run_for(Duration::from_secs(15));
    end_of(&run)
}

fn end_of(run: &Run) -> ConnectionLost {
    let events = || run.application(CALLER).log().iter().map(|(_, event)| event);
    assert!(!events().any(|event| matches!(event, Event::Connected(_))));
    assert!(run.flows(LISTENER).is_empty());
    let ends = events().find_map(|event| if let Event::Closed(_, reason) = event { Some(*reason) } else { None });
    ends.expect("the call ends")
}

#[test]
fn a9_another_version_in_the_initial_packets_is_no_connection() {
    for version in [0, 2, 0xFF] {
        let end = outcome(move |datagram| {
            if datagram.from == address(CALLER) && is_protected(datagram.bytes) {
                datagram.bytes[HEADER_LEN + 3] = version;
            }
            TapAction::Pass
        });
        // The listener names the version that it lacks, in a packet of that version, which this client does not read.
        let named = ConnectionLost::Insecure(SecurityFault::Version);
        assert!(end == named || matches!(end, ConnectionLost::ConnectTimeout(_)), "{end:?}");
    }
}

#[test]
fn a9_a_client_without_an_answer_never_falls_back() {
    let end = outcome(|datagram| {
        assert!(is_protected(datagram.bytes), "nothing else ever leaves");
        TapAction::Drop
    });
    assert!(matches!(end, ConnectionLost::ConnectTimeout(_)), "{end:?}");
}

/// A handshake of UDT4, as a plain side sends it.
fn plain(request: Request, to: SocketId) -> Vec<u8> {
    let packet = Handshake {
        version: Handshake::VERSION,
        socket_type: SocketType::Stream,
        isn: SeqNo::new(5),
        mss: 1_500,
        flow_window: 8_192,
        request,
        socket_id: SocketId::new(77),
        cookie: 9,
        peer_ip: [127, 0, 0, 1].into(),
        largest: farhaul_wire::udt4::Largest::Unsaid,
        wants_receipts: false,
    };
    encode(to, &Control::Handshake(packet))
}

/// The Initial packet has the client's id in clear.
#[test]
fn a9_plain_answers_in_place_of_protected_ones_are_no_connection() {
    let end = outcome(|datagram| {
        if datagram.from == address(CALLER) {
            let id: [u8; 4] = datagram.bytes[HEADER_LEN + 4..HEADER_LEN + 8].try_into().unwrap();
            for request in [Request::Induction, Request::Conclusion] {
                let answer = plain(request, SocketId::new(u32::from_be_bytes(id)));
                datagram.forged.push((address(LISTENER), address(CALLER), answer));
            }
        }
        TapAction::Drop
    });
    assert!(matches!(end, ConnectionLost::ConnectTimeout(_)), "{end:?}");
}

#[test]
fn a9_a_secure_listener_answers_no_plain_caller() {
    let mut run = upload();
    run.set_tap(Some(Box::new(|datagram| {
        assert!(datagram.from == address(CALLER), "it answers");
        TapAction::Drop
    })));
    for request in [Request::Induction, Request::Conclusion, Request::Rendezvous] {
        run.inject(LISTENER, address(CALLER), &plain(request, SocketId::NONE));
    }
    run.run_for(Duration::from_secs(1));
    assert!(run.flows(LISTENER).is_empty());
}

#[test]
fn a9_a_listener_for_messages_takes_no_stream() {
    let mut listener = endpoint(2, farhaul_proto::Config::default(), null(2));
    listener.listen(Mode::Message).expect("UDT has the mode");
    let caller = endpoint(1, farhaul_proto::Config::default(), null(1));
    let pair = farhaul_sim::topology::path::Pair::new(caller, listener).path(crate::attack_secure::bench::path());
    let mut run = pair.caller(Workload::send(1_000)).start();
    run.run_for(Duration::from_secs(15));
    assert!(matches!(end_of(&run), ConnectionLost::PeerIncompatible(_)));
}
