use farhaul_proto::Channels;
use farhaul_units::Rate;

use crate::RateChoice;
use crate::blast::Registered;
use core::net::SocketAddr;

use farhaul_units::Instant;

use super::*;
use farhaul_proto::error::ConnectError;
use farhaul_proto::transport::{ConnectOptions, MessageOptions};
use farhaul_proto::transport::{StreamError, Streams};

fn endpoint(entry: &Entry) -> Endpoint {
    let protocol: Protocol = entry.name.parse().unwrap();
    protocol.endpoint(Config::default(), Entropy { cookie_key: [1; 16], seed: 1 })
}

fn refusal(text: &str) -> String {
    text.parse::<Protocol>().unwrap_err().to_string()
}

#[test]
fn names_are_unique_and_lines_are_single() {
    for (index, entry) in protocols().iter().enumerate() {
        assert!(protocols()[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
        assert!(!entry.summary.contains('\n') && !entry.summary.is_empty(), "{}", entry.name);
        assert!(entry.modes.contains(&Mode::Stream), "{}: programs and simulations use streams", entry.name);
        assert!(!entry.name.contains([':', ',', '=', ' ']), "{} could not be told from its options", entry.name);
    }
}

#[test]
fn the_feature_brings_all_protocols_but_the_first() {
    let names: Vec<&str> = protocols().iter().map(|entry| entry.name).collect();
    assert_eq!(&names[1..], PAPERS);
}

#[test]
fn every_source_is_a_key_of_the_bibliography() {
    let bibliography = include_str!("../../../../docs/papers/papers.bib");
    for key in protocols().iter().flat_map(|entry| entry.source.split(", ")).filter(|key| *key != "none") {
        assert!(bibliography.contains(&format!("{{{key},")), "{key}");
    }
}

#[test]
fn every_default_controller_is_in_the_registry_of_controllers() {
    for entry in protocols() {
        let protocol: Protocol = entry.name.parse().unwrap();
        assert_eq!(protocol.controller().map(|spec| spec.to_string()).as_deref(), entry.controller);
    }
}

#[test]
fn text_survives_parsing_and_printing() {
    for text in ["udt", "udt-2004", "udt-2004:delay-warnings=off"] {
        let protocol: Protocol = text.parse().unwrap();
        assert_eq!(protocol.to_string(), text);
        assert_eq!(protocol.to_string().parse::<Protocol>().unwrap(), protocol);
    }
    assert_eq!(Protocol::default(), "udt".parse().unwrap());
    assert_ne!(Protocol::default(), "udt-2004".parse().unwrap());
}

#[test]
fn an_unknown_protocol_is_refused_with_the_known_ones() {
    let names: Vec<&str> = protocols().iter().map(|entry| entry.name).collect();
    assert_eq!(refusal("tcp"), format!("unknown protocol 'tcp': choose one of {}", names.join(", ")));
}

#[test]
fn options_that_a_protocol_does_not_have_are_refused_with_those_that_it_has() {
    for (text, expected) in [
        ("udt:blast=rtt", "'udt' has no option 'blast': it takes none"),
        ("udt-2004:blast=rtt", "'udt-2004' has no option 'blast': it takes delay-warnings=on"),
        ("udt-2004:delay-warnings", "option 'delay-warnings' of 'udt-2004' has the form delay-warnings=on"),
        ("tsunami:rate=0mbit", "option 'rate' of 'tsunami' must be above zero, or auto, not '0mbit'"),
        ("tsunami:rate=5", "option 'rate' of 'tsunami': '5' has no unit: write 5mbit (megabits) or 5MB/s (megabytes)"),
        ("udt-2004:delay-warnings=no", "option 'delay-warnings' of 'udt-2004' must be on or off, not 'no'"),
    ] {
        assert_eq!(refusal(text), expected);
    }
}

#[test]
fn options_reach_their_protocol() {
    let fixed = RateChoice::Fixed(Rate::from_megabits_per_second(5));
    for (options, rate) in [("rate=auto", RateChoice::Auto), ("rate=5mbit", fixed)] {
        let protocol: Protocol = format!("tsunami:{options}").parse().unwrap();
        assert_eq!(Tsunami::read(protocol.0.settings()).unwrap().rate, rate, "{options}");
    }
    for (text, finds_rate) in [
        ("udt", false),
        ("tsunami", true),
        ("tsunami:rate=5mbit", false),
        ("sabul", false),
        ("hurricane", true),
        ("hurricane:window=10", true),
        ("hurricane:window=10,sleep=1ms", false),
    ] {
        assert_eq!(text.parse::<Protocol>().unwrap().finds_rate(), finds_rate, "{text}");
    }
}

#[test]
fn every_endpoint_has_the_modes_of_its_row_and_refuses_the_others() {
    for entry in protocols() {
        for mode in [Mode::Stream, Mode::Message] {
            let has_mode = entry.modes.contains(&mode);
            let mut end = endpoint(entry);
            let refused = if has_mode { Ok(()) } else { Err(ConnectError::StreamsOnly) };
            assert_eq!(end.listen(mode), refused, "{} {}", entry.name, mode.name());
            let peer = SocketAddr::from(([10, 0, 0, 1], 9000));
            let called = end.connect_with(Instant::ZERO, peer, ConnectOptions { mode, rendezvous: false });
            assert_eq!(called.err(), refused.err(), "{} {}", entry.name, mode.name());
            assert_eq!(end.connections(), usize::from(has_mode));
        }
    }
}

#[test]
fn every_row_says_whether_its_endpoint_needs_control_channels() {
    for entry in protocols() {
        assert_eq!(endpoint(entry).needs_channels(), entry.needs_control_channel, "{}", entry.name);
    }
}

#[test]
fn messages_on_a_protocol_without_them_fail_and_signals_do_nothing() {
    for entry in protocols().iter().filter(|entry| !entry.modes.contains(&Mode::Message)) {
        let mut end = endpoint(entry);
        let id = end.connect(Instant::ZERO, SocketAddr::from(([10, 0, 0, 1], 9000))).unwrap();
        let sent = end.send_message(Instant::ZERO, id, b"x", MessageOptions::default());
        assert_eq!(sent, Err(StreamError::WrongMode));
        assert!(matches!(end.recv_message(Instant::ZERO, id, &mut []), Err(StreamError::WrongMode)));
        end.signal_error(id, 1);
        end.send_custom(id, 1, b"x");
        assert_eq!(end.connections(), 1);
    }
}

/// The table of the book. A failure prints the rows that belong there.
#[test]
fn the_book_has_the_row_of_every_protocol() {
    let page = include_str!("../../../../docs/book/protocols.md");
    let table: String = protocols().iter().map(row).collect();
    assert!(page.contains(&table), "docs/book/protocols.md must have these rows:\n{table}");
    let of_page = page.lines().filter(|line| line.starts_with("| `")).count();
    let options: usize = protocols().iter().map(|entry| entry.options.len()).sum();
    assert_eq!(of_page, protocols().len() + options, "and no others than those of protocols and their options");
    for entry in protocols() {
        for option in entry.options {
            let line = format!("| `{}:{}` | {} |\n", entry.name, option.written(), option.meaning);
            assert!(page.contains(&line), "docs/book/protocols.md must have this row:\n{line}");
        }
    }
}

fn row(entry: &Entry) -> String {
    let modes: Vec<&str> = entry.modes.iter().map(|mode| mode.name()).collect();
    format!(
        "| `{}` | {} | {} | {} | {} | {} |\n",
        entry.name,
        entry.summary,
        entry.source,
        modes.join(", "),
        if entry.needs_control_channel { "TCP" } else { "none" },
        entry.controller.unwrap_or("none"),
    )
}

#[test]
fn only_blasts_without_a_rate_by_hand_find_theirs() {
    for (text, finds) in [
        ("udt", false),
        ("sabul", false),
        ("rbudp", true),
        ("tsunami:rate=auto", true),
        ("fobs:rate=5mbit", false),
        ("hurricane", true),
        ("hurricane:window=10", true),
        ("hurricane:window=10,sleep=1ms", false),
    ] {
        assert_eq!(text.parse::<Protocol>().unwrap().finds_rate(), finds, "{text}");
    }
}
