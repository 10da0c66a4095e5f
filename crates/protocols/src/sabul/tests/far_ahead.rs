//! Datagrams far ahead, which cost many reports.

use farhaul_units::{Duration, Instant};
use farhaul_wire::blast::Tag;
use farhaul_wire::sabul::{Record, encode_data_header};

use super::super::numbering::Numbering;
use super::super::{MAX_WINDOW, Options, Sabul};
use crate::blast::engine::{Prefix, Protocol, Receiver as _, Setup};
use farhaul_proto::config::Config;

#[test]
fn c3_a_datagram_far_ahead_costs_few_reports_at_a_time_and_all_losses_are_reported() {
    let mut now = Instant::ZERO + Duration::from_secs(1_000);
    let config = Config::default();
    let (prefix, round_trip) = (Prefix::Tag(Tag(7)), Duration::from_secs(10));
    let setup = Setup { config: &config, datagram: 1_472, prefix, round_trip, now };
    let options = Options { window: MAX_WINDOW, ..Options::default() };
    let mut receiver = Sabul::receiver(&options, &Sabul::hello(&options), setup).expect("its own hello");
    let last = Numbering::new().wire(Numbering::FIRST.plus(MAX_WINDOW - 1));
    assert!(receiver.handle_datagram(now, &[&encode_data_header(last)[..], &[1]].concat()));
    receiver.end_batch(now);
    let mut reported = 0;
    for _ in 0..100 {
        let mut out = Vec::new();
        receiver.poll_control(now, &mut out);
        assert!(out.len() <= 300_000, "{} bytes at once", out.len());
        let mut rest = &out[..];
        while let Some((record, length)) = Record::decode(rest).expect("its own record") {
            if let Record::Err(losses) | Record::More(losses) = record {
                reported += losses.count() as u32;
            }
            rest = &rest[length..];
        }
        now += Duration::from_millis(20);
        receiver.handle_timeout(now);
    }
    assert_eq!(reported, MAX_WINDOW - 1, "each once within an RTT");
}
