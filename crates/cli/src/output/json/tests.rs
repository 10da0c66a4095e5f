use std::time::Duration;

use farhaul_transfer::internal::limit::share;
use farhaul_transfer::internal::report::goodput;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::exit::{Code, Fault};

/// The fields of `end` that scripts rely on.
const REQUIRED: &[&str] = &[
    "bytes",
    "seconds",
    "goodput_bps",
    "packets_sent",
    "packets_retransmitted",
    "packets_received",
    "loss_ratio",
    "rtt_us",
    "cpu_seconds",
    "peer",
    "controller",
    "protocol",
    "limited_by",
];

fn parsed(record: &Record) -> Value {
    let line = serde_json::to_string(record).unwrap();
    assert!(!line.contains('\n'), "one line per record");
    serde_json::from_str(&line).unwrap()
}

proptest! {
    #[test]
    fn no_figures_make_an_end_record_that_scripts_cannot_read(
        bytes: u64, nanos: u64, part in any::<f64>(), whole in any::<f64>(), message in ".*",
    ) {
        let time = Duration::from_nanos(nanos);
        let fault = Fault::new(Code::PeerLost, message.clone());
        let report = Report {
            bytes,
            seconds: time.as_secs_f64(),
            goodput_bps: goodput(bytes, time),
            loss_ratio: share(part, whole),
            ..Report::default()
        };
        let error = Some(ErrorRecord::from(&fault));
        let end = parsed(&Record::End(Box::new(End { report, error, ..End::default() })));
        prop_assert_eq!(&end["event"], "end");
        for field in REQUIRED {
            prop_assert!(end.get(field).is_some(), "{} is missing", field);
        }
        prop_assert!(end["goodput_bps"].is_number() == (bytes > 0 && nanos > 0), "{}", end["goodput_bps"]);
        for number in ["seconds", "loss_ratio"] {
            prop_assert!(end[number].is_number(), "{} is {}", number, end[number]);
        }
        prop_assert!((0.0..=1.0).contains(&end["loss_ratio"].as_f64().unwrap()));
        prop_assert_eq!(end["error"]["message"].as_str().unwrap(), message);
    }
}

#[test]
fn processor_time_has_exactly_user_and_system() {
    let end = parsed(&Record::End(Box::default()));
    let cpu = end["cpu_seconds"].as_object().unwrap();
    assert_eq!(cpu.keys().collect::<Vec<_>>(), ["system", "user"]);
    assert!(end["peer"].is_null());
}

#[test]
fn options_in_the_words_of_the_library_are_those_of_the_command() {
    let fault = Fault::new(Code::PeerLost, "nothing heard").remedy("‹connect-timeout› waits longer");
    let record = end_record(json!({}), 0, Some(&fault));
    assert_eq!(record["error"]["message"], "nothing heard; --connect-timeout waits longer");
}
