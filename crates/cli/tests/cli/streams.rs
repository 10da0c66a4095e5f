use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::Signal;

use serde_json::Value;

use crate::process::{Scratch, Server, Started, farhaul, farhaul_with, records};

#[test]
fn a_pipe_carries_all_bytes_and_ends_with_the_input() {
    let mut input = vec![0u8; 5_000_003];
    input.iter_mut().enumerate().for_each(|(index, byte)| *byte = (index / 7) as u8);
    let server = Server::begin_with(&["pipe"], Stdio::null());
    let run = farhaul_with(&input, &["pipe", "--plain", "--json", "--connect", &server.address]);
    run.succeeds();
    let end = records(&run.stderr).pop().unwrap();
    assert_eq!((end["bytes"].as_u64(), end["verified"].as_bool()), (Some(5_000_003), Some(false)));
    let (code, received) = server.end();
    assert_eq!(code, 0);
    assert!(received == input, "{} bytes arrived", received.len());
}

#[test]
fn two_empty_inputs_end_with_the_idle_time_out() {
    let mut server = Server::begin(&["pipe", "--timeout", "300ms"]);
    server.feed(b"");
    let run = farhaul(&["pipe", "--plain", "--connect", &server.address, "--timeout", "300ms"]);
    // Whichever gives up first, it does not look as if it had sent something to its end.
    assert_eq!([server.end().0, run.code], [8, 8], "{}", run.stderr);
}

/// A free port below the ephemeral ones (from 32768), so that no concurrent test gets it meanwhile.
pub(crate) fn port_of_our_own() -> u16 {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let next = || 20_000 + (std::process::id() * 8 + TAKEN.fetch_add(1, Ordering::Relaxed)) % 10_000;
    std::iter::repeat_with(|| next() as u16).find(|port| UdpSocket::bind(("0.0.0.0", *port)).is_ok()).unwrap()
}

#[test]
fn a_rendezvous_needs_no_listener() {
    for host in ["127.0.0.1", ""] {
        let (left, right) = (port_of_our_own(), port_of_our_own());
        let [here, there] = [left, right].map(|port| (format!("{host}:{port}"), format!("127.0.0.1:{port}")));
        let meet = ["pipe", "--plain", "--rendezvous"];
        let receiver =
            Started::begin(&[&meet[..], &["--listen", &here.0, "--connect", &there.1]].concat(), Stdio::null());
        farhaul_with(b"met", &[&meet[..], &["--listen", &there.0, "--connect", &here.1]].concat()).succeeds();
        let run = receiver.end();
        run.succeeds();
        assert_eq!(run.stdout, b"met", "at '{host}'");
    }
}

#[test]
fn a_measurement_tells_both_sides_figures() {
    let mut server = Server::begin(&["bench", "--interval", "0"]);
    for reverse in [&[][..], &["--reverse"]] {
        let arguments = ["bench", "--plain", "--json", "--connect", &server.address, "--bytes", "20MB"];
        let run = farhaul(&[&arguments, reverse].concat());
        run.succeeds();
        let end = run.end();
        assert_eq!(end["bytes"], 20_000_000);
        assert!(end["goodput_bps"].as_u64().unwrap() > 0 && end["peer"]["cpu_seconds"]["user"].is_number(), "{end}");
        let there = server.wait_for("end");
        assert_eq!(there["bytes"], 20_000_000);
    }
    server.signal(Signal::INT);
    assert_eq!(server.end().0, 130);
}

#[test]
fn several_flows_are_measured_at_once_and_summed() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    for reverse in [&[][..], &["--reverse"]] {
        let arguments = ["bench", "--plain", "--json", "--connect", &server.address, "--flows", "3", "--bytes", "4MB"];
        let run = farhaul(&[&arguments, reverse].concat());
        run.succeeds();
        let end = run.end();
        let flows = end["flows"].as_array().unwrap();
        assert_eq!((flows.len(), end["bytes"].as_u64()), (3, Some(12_000_000)), "{end}");
        let sum = |field: &str| flows.iter().map(|flow| flow[field].as_u64().unwrap()).sum::<u64>();
        for field in ["bytes", "packets_sent", "packets_received", "packets_retransmitted"] {
            assert_eq!(end[field].as_u64(), Some(sum(field)), "{field}: {end}");
        }
        assert_eq!(end["peer"]["bytes"], 12_000_000);
        assert!(flows.iter().all(|flow| flow["bytes"] == 4_000_000 && flow["error"].is_null()), "{end}");
        assert!(end["goodput_bps"].as_u64().unwrap() > 0, "{end}");
    }
}

#[test]
fn intervals_of_several_flows_are_told_one_by_one_and_summed() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments = ["bench", "--plain", "--json", "--connect", &server.address, "--flows", "2", "--rate", "20mbit"];
    let run = farhaul(&[&arguments[..], &["--bytes", "1MB", "--interval", "0.1"]].concat());
    run.succeeds();
    let records = run.records();
    let total = |flow: Value| {
        let of_flow = |record: &&Value| record["event"] == "interval" && record["flow"] == flow;
        records.iter().rfind(of_flow).and_then(|record| record["bytes_total"].as_u64()).unwrap()
    };
    assert!(total(Value::Null) >= total(1.into()).max(total(2.into())), "{records:?}");
}

#[test]
fn a_trace_tells_how_a_connection_went_over_time() {
    let scratch = Scratch::new();
    let trace = scratch.at("trace");
    let server = Server::begin(&["bench", "--interval", "0"]);
    let arguments =
        ["bench", "--plain", "--connect", &server.address, "--flows", "2", "--bytes", "1MB", "--rate", "20mbit"];
    farhaul(&[&arguments[..], &["--trace", &trace]].concat()).succeeds();
    let text = std::fs::read_to_string(&trace).unwrap();
    let mut texts = text
        .split_terminator('\n')
        .map(|line| serde_json::from_str::<Value>(line.strip_prefix('\x1e').unwrap()).unwrap());
    assert_eq!(texts.next().unwrap()["serialization_format"], "application/qlog+json-seq");
    let events: Vec<Value> = texts.collect();
    for flow in ["1", "2"] {
        let of_flow: Vec<&Value> = events.iter().filter(|event| event["group_id"] == flow).collect();
        let sent: Vec<u64> = of_flow.iter().map(|event| event["data"]["packets_sent"].as_u64().unwrap()).collect();
        assert!(sent.len() > 5 && sent.is_sorted() && sent.last() > Some(&500), "{sent:?}");
        assert!(of_flow.iter().all(|event| event["name"] == "farhaul:metrics_updated" && event["time"].is_number()));
    }
    farhaul(&["bench", "--plain", "--connect", "127.0.0.1:9", "--trace", "/nonexistent/trace"])
        .fails(7, &["/nonexistent/trace"]);
}

#[test]
fn a_relay_passes_on_and_reports() {
    let server = Server::begin(&["bench", "--interval", "0"]);
    let relay = Started::begin(
        &["relay", "--json", "--listen", "127.0.0.1:0", "--to", &server.address, "--delay", "1ms", "--rate", "100mbit"],
        Stdio::null(),
    );
    let relay = relay.after("start");
    let address = relay.record["local"].as_str().unwrap().to_owned();
    farhaul(&["bench", "--plain", "--connect", &address, "--bytes", "1MB"]).succeeds();
    relay.signal(Signal::TERM);
    let report = relay.end().end();
    assert!(report["up"]["packets_in"].as_u64().unwrap() > 600, "{report}");
}
