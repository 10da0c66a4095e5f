//! Runs whose results are known beforehand.

use super::*;
use crate::scenario::{Experiment, Overrides};

fn records(text: &str) -> Vec<Record> {
    let experiment = Experiment::read("x", "x.toml", text, &Overrides::default()).unwrap();
    experiment.jobs("").unwrap().iter().map(|job| run("x", job, &Venue::Simulator, None, &|| false).unwrap()).collect()
}

fn record(text: &str) -> Record {
    records(text).remove(0)
}

#[track_caller]
fn near(value: f64, expected: f64, share: f64) {
    assert!((value - expected).abs() <= share * expected, "{value} is not {expected}");
}

const LINK: &str = "title = 'x'\nduration = '4s'\nwarmup = '1s'\n[link]\nrate = '12mbit'\nrtt = '10ms'\n";

#[test]
fn cross_traffic_sends_at_its_rate() {
    let metrics = record(&format!("{LINK}[[flow]]\nprotocol = 'cbr'\nrate = '6mbit'\n")).metrics;
    near(metrics["goodput.cbr"], 6e6, 0.001);
    near(metrics["utilisation"], 0.5, 0.001);
    assert_eq!((metrics["loss.cbr"], metrics["drops"]), (0.0, 0.0));
    assert!(!metrics.contains_key("jain"), "cross traffic asks for no fairness");
}

#[test]
fn packets_beyond_the_links_rate_are_dropped() {
    let flow = "[[flow]]\nprotocol = 'cbr'\nrate = '24mbit'\n";
    let metrics = record(&format!("{LINK}queue = 10\n{flow}")).metrics;
    near(metrics["utilisation"], 1.0, 0.001);
    near(metrics["loss.cbr"], 0.5, 0.01);
    near(metrics["queue.mean"], 10.0, 0.1);
    assert_eq!(metrics["queue.max"], 10.0);
}

#[test]
fn a_transfer_takes_its_bytes_over_the_rate() {
    // 1.5 MB over 12 Mbit/s take a second. The connection adds a round trip, and headers and the start add some more.
    for protocol in ["udt", "udt-2004", "tcp"] {
        let text =
            format!("{}[[flow]]\nname = 'a'\nprotocol = '{protocol}'\nbytes = '1.5MB'\n", LINK.replace("4s", "9s"));
        let metrics = record(&text).metrics;
        let taken = metrics["completion.a"];
        assert!((1.0..4.0).contains(&taken), "{protocol}: {taken}");
        near(metrics["goodput.a"], 12e6 / taken, 1e-9);
        assert_eq!(metrics["completed"], 1.0);
    }
}

#[test]
fn every_protocol_fills_a_link_that_is_its_own() {
    for protocol in ["udt", "udt-2004", "tcp"] {
        let text = format!(
            "{}[[flow]]\nname = 'a'\nprotocol = '{protocol}'\n",
            LINK.replace("4s", "20s").replace("'1s'", "'5s'")
        );
        let metrics = record(&text).metrics;
        assert!(metrics["utilisation"] > 0.9, "{protocol}: {}", metrics["utilisation"]);
        assert!(metrics["rtt.a"] >= 0.01, "{protocol}: {}", metrics["rtt.a"]);
    }
}

#[test]
fn a_flow_counts_while_it_sends() {
    let text = format!("{LINK}[[flow]]\nprotocol = 'cbr'\nrate = '6mbit'\nstart = '2s'\nstop = '3s'\n");
    let metrics = record(&text).metrics;
    near(metrics["goodput.cbr"], 6e6, 0.02);
    near(metrics["utilisation"], 0.5 / 3.0, 0.01);
}

#[test]
fn the_total_of_flows_with_different_lifetimes_is_no_more_than_the_link() {
    let lifetimes = [("", "stop = '9s'\n"), ("", "start = '9s'\n"), ("tcp", "start = '4s'\nbytes = '1.5MB'\n")];
    let flows: String = lifetimes
        .iter()
        .map(|(protocol, life)| {
            let protocol = if protocol.is_empty() { "udt" } else { protocol };
            format!("[[flow]]\nprotocol = '{protocol}'\n{life}")
        })
        .collect();
    let link = LINK.replace("'4s'", "'16s'").replace("'1s'", "'2s'");
    let metrics = record(&format!("{link}{flows}")).metrics;
    let rates: f64 = ["udt-1", "udt-2", "tcp"].iter().map(|flow| metrics[&format!("goodput.{flow}")]).sum();
    assert!(rates > 12e6, "each flow's rate is that of its own lifetime: {rates}");
    let total = metrics["goodput.total"];
    assert!((10e6..=12e6).contains(&total), "{total}");
}

#[test]
fn the_total_of_transfers_ends_with_the_last_of_them() {
    let flow = "[[flow]]\nname = 'a'\nbytes = '1.5MB'\n[[flow]]\nname = 'b'\nbytes = '750kB'\nstart = '1s'\n";
    let metrics = record(&format!("{}{flow}", LINK.replace("4s", "30s").replace("warmup = '1s'\n", ""))).metrics;
    near(metrics["goodput.total"], 2.25e6 * 8.0 / metrics["completion.all"], 1e-9);
    let list = "[[flow]]\nprotocol = 'tcp'\nbytes = '150kB'\ntransfers = 20\nconcurrent = 4\n";
    let metrics = record(&format!("{}{list}", LINK.replace("4s", "30s").replace("warmup = '1s'\n", ""))).metrics;
    near(metrics["goodput.total"], 20.0 * 150e3 * 8.0 / metrics["completion.all"], 1e-9);
}

#[test]
fn series_are_those_of_the_first_seed_and_add_up() {
    let text = format!("{}[[flow]]\nprotocol = 'cbr'\nrate = '6mbit'\n", LINK.replace("[link]", "seeds = 2\n[link]"));
    let records = records(&text);
    assert!(records[1].series.is_empty());
    let series = &records[0].series["goodput.cbr"];
    assert_eq!(series.len(), 40);
    near(series.iter().map(|(_, rate)| rate).sum::<f64>() / 40.0, 6e6, 0.01);
    assert_eq!(records[0].series["queue"].len(), 41);
}

#[test]
fn the_same_run_gives_the_same_record() {
    let text = format!("{LINK}loss = 0.01\n[[flow]]\n[[flow]]\nprotocol = 'tcp'\n");
    let (mut first, second) = (record(&text), record(&text));
    first.real_seconds = second.real_seconds;
    assert_eq!(first, second);
}

#[test]
fn a_host_that_arrivals_keep_busy_gets_less_than_a_fast_one() {
    let link = "title = 'x'\nduration = '2s'\nwarmup = '1s'\n[link]\nrate = '1gbit'\nrtt = '1ms'\n";
    let goodput = |receiver: &str| {
        record(&format!("{link}[[flow]]\nprotocol = 'cbr'\nrate = '480mbit'\n{receiver}")).metrics["goodput.cbr"]
    };
    near(goodput(""), 480e6, 0.001);
    // 40 000 packets a second: interrupts of 20 µs take 0.8 of the processor, and each packet that is read takes 80 µs.
    let slow = "receiver = { per_arrival = '20us', per_data = '80us', receive_buffer = '150kB' }";
    near(goodput(slow), 30e6, 0.01);
    // 10 000 packets a second at most, and other programs take half of them.
    let shared = "receiver = { per_data = '100us', receive_buffer = '150kB', load = { busy = '5ms', every = '10ms' } }";
    near(goodput(shared), 60e6, 0.01);
}

#[test]
fn packets_of_a_host_with_late_timers_overflow_a_queue_that_even_packets_do_not() {
    let link = "title = 'x'\nduration = '4s'\n[link]\nrate = '100mbit'\nrtt = '1ms'\nqueue = 5\n";
    let drops =
        |sender: &str| record(&format!("{link}[[flow]]\nprotocol = 'cbr'\nrate = '90mbit'\n{sender}")).metrics["drops"];
    assert_eq!(drops(""), 0.0);
    // At 7500 packets a second, 2 ms are 15 packets, which leave together when one of them is late.
    let late = drops("sender = { send_jitter = '2ms' }");
    assert!(late > 1_000.0, "{late} of 30 000");
}

#[test]
fn transfers_of_a_list_run_so_many_at_a_time_until_all_are_done() {
    let flow = "[[flow]]\nname = 't'\nprotocol = 'tcp'\nbytes = '150kB'\ntransfers = 20\n";
    let run = |concurrent: &str| record(&format!("{}{flow}{concurrent}", LINK.replace("'4s'", "'9s'"))).metrics;
    let (one, four) = (run(""), run("concurrent = 4\n"));
    for metrics in [&one, &four] {
        assert_eq!(metrics["completed"], 1.0);
        assert!(metrics["completion.mean"] < metrics["completion.max"] + 1e-9);
    }
    // One after the other, all transfers take the sum of their durations.
    near(one["completion.all"], 20.0 * one["completion.mean"], 1e-9);
    near(one["goodput.t"], 20.0 * 8.0 * 150e3 / one["completion.all"], 1e-9);
    assert!(
        !one.contains_key("completion.t-1")
            && four.contains_key("completion.t-4")
            && !four.contains_key("completion.t-5")
    );
    // Four transfers at a time leave the link idle less often.
    assert!(four["completion.mean"] > 2.0 * one["completion.mean"]);
    assert!(four["completion.all"] < one["completion.all"]);
    assert!(four["completion.all"] > 20.0 * 8.0 * 150e3 / 12e6);
    // Unfinished transfers count as far as they came.
    let cut = record(&format!("{LINK}{flow}").replace("'4s'", "'2s'")).metrics;
    assert!(cut["completed"] > 0.2 && cut["completed"] < 1.0 && !cut.contains_key("completion.all"));
}

#[test]
fn a_window_of_a_bandwidth_delay_product_is_that_of_the_flows_own_round_trip() {
    let flow = |name: &str, rest: &str| {
        format!("[[flow]]\nname = '{name}'\nprotocol = 'tcp'\ndelayed_ack = false\nwindow = {rest}\n")
    };
    // 12 Mbit/s carry 1000 packets a second: 10 in 10 ms.
    let half = record(&format!("{LINK}{}", flow("a", "'0.5bdp'"))).metrics["goodput.a"];
    near(half, 5.0 * 1_460.0 * 8.0 / 0.011, 0.01);
    let far = record(&format!("{LINK}{}rtt = '100ms'\n", flow("a", "'0.5bdp'"))).metrics["goodput.a"];
    near(far, 50.0 * 1_460.0 * 8.0 / 0.101, 0.1);
    let least = record(&format!("{LINK}{}", flow("a", "{ limit = '0.1bdp', at_least = 5 }"))).metrics["goodput.a"];
    near(least, half, 1e-9);
}

#[test]
fn a_late_host_costs_steady_traffic_only_what_its_buffer_cannot_hold() {
    // The sender is absent for a third of the time, in pauses of 10 ms.
    let late = "late = { every = '20ms', least = '10ms', most = '10ms' }";
    let of = |hosts: &str| {
        let flow = format!("[[flow]]\nname = 'a'\nprotocol = 'cbr'\nrate = '6mbit'\n{hosts}");
        record(&format!("{LINK}{flow}"))
    };
    let (punctual, sender) = (of(""), of(&format!("sender = {{ {late} }}\n")));
    let receiver = of(&format!("receiver = {{ receive_buffer = '100kB', {late} }}\n"));
    near(sender.metrics["goodput.a"], punctual.metrics["goodput.a"], 0.02);
    near(receiver.metrics["goodput.a"], punctual.metrics["goodput.a"], 0.02);
    assert!(sender.metrics["queue.p99"] > punctual.metrics["queue.p99"] + 2.0, "what was late leaves in a burst");
    // At 6 Mbit/s, a packet comes every 2 ms. One fits the buffer, and four or five of an absence do not.
    let lossy = of(&format!("receiver = {{ receive_buffer = '2kB', {late} }}\n"));
    assert!(lossy.metrics["loss.a"] > 0.1 && receiver.metrics["loss.a"] == 0.0, "{:?}", lossy.metrics);
    let traces = |hosts: &str| of(hosts).trace;
    assert_eq!(traces(&format!("sender = {{ {late} }}\n")), sender.trace);
    assert_ne!(sender.trace, receiver.trace);
}
