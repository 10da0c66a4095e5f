//! `stream` and `profile`: the records, the ends, the files, the stored rate.

use std::fs;
use std::process::Stdio;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::lab::are_pdf_and_png;
use crate::limits::relay;
use crate::process::{Run, Scratch, Server, Started, farhaul, farhaul_under, farhaul_where};
use crate::requirement::runs;

fn stream(address: &str, options: &[&str]) -> Run {
    farhaul(&[&["stream", "--plain", "--json", "--connect", address], options].concat())
}

fn profile(cache: &str, address: &str, options: &[&str]) -> Run {
    let arguments = [&["profile", "--plain", "--json", "--connect", address], options].concat();
    farhaul_where(&[("XDG_CACHE_HOME", cache)], &arguments)
}

fn number(record: &Value, field: &str) -> f64 {
    record[field].as_f64().unwrap_or_else(|| panic!("{field} in {record}"))
}

#[test]
fn a_stream_reports_its_goodput_and_its_delays() {
    let listener = Server::begin(&["bench"]);
    let (_relay, address) = relay(&listener, &["--delay", "5ms", "--loss", "20%"]);
    let run = stream(&address, &["--rate", "2mbit", "--seconds", "2", "--interval", "0.5", "--window", "3"]);
    run.succeeds();
    let records = run.records();
    assert_eq!((&records[0]["event"], &records[0]["settings"]["window_datagrams"]), (&"start".into(), &3.into()));
    let intervals: Vec<&Value> = records.iter().filter(|record| record["event"] == "interval").collect();
    assert!(intervals.len() >= 2, "{}", intervals.len());
    let end = run.end();
    let [sent, arrived, acknowledged] =
        ["datagrams_sent", "datagrams_arrived", "datagrams_acknowledged"].map(|field| number(&end, field));
    assert!(acknowledged > 0.0 && acknowledged <= arrived && arrived < sent, "{end}");
    assert!(number(&end["delay_us"], "mean") >= 10_000.0, "twice 5 ms: {end}");
    assert!(number(&end["delay_us"], "p99") >= number(&end["delay_us"], "p50"), "{end}");
    let total: f64 = intervals.iter().map(|interval| number(interval, "bytes")).sum();
    assert!(total > 0.0 && total <= number(&end, "bytes"), "{end}");
    assert_eq!((&end["target_bps"], &end["exit_code"], &end["error"]), (&2_000_000.into(), &0.into(), &Value::Null));
}

#[test]
fn a_signal_ends_a_stream_in_order() {
    let listener = Server::begin(&["bench"]);
    let arguments =
        ["stream", "--plain", "--json", "--connect", &listener.address, "--rate", "1mbit", "--interval", "0.2"];
    let running = Started::begin(&arguments, Stdio::null()).after("interval");
    running.signal(Signal::INT);
    let run = running.end();
    assert_eq!(run.code, 130);
    let end = run.end();
    assert_eq!((&end["error"]["code"], &end["exit_code"]), (&"INTERRUPTED".into(), &130.into()));
    assert!(number(&end, "datagrams_acknowledged") > 0.0, "{end}");
}

#[test]
fn a_port_where_nobody_answers_is_named() {
    let scratch = Scratch::new();
    // A port of this program that answers no measured streams, and one that nobody has.
    let server = Server::begin(&["pipe"]);
    let cache = scratch.dir("cache");
    let is_named = |address: &str, run: Run| {
        run.fails(4, &[address, "UDP is blocked", "farhaul bench"]);
        assert_eq!(run.end()["error"]["code"], "CONNECT_TIMEOUT");
    };
    // Side by side, since each waits for an answer.
    thread::scope(|scope| {
        for address in [server.address.as_str(), "127.0.0.1:9"] {
            scope.spawn(move || is_named(address, stream(address, &["--rate", "1mbit"])));
            let cache = &cache;
            scope.spawn(move || is_named(address, profile(cache, address, &[])));
        }
    });
    assert!(scratch.names("cache").is_empty(), "nothing was measured");
}

#[test]
fn a_profile_has_a_point_for_each_pair_and_files() {
    let scratch = Scratch::new();
    let listener = Server::begin(&["bench"]);
    let (_relay, address) = relay(&listener, &["--rate", "20mbit", "--queue", "20"]);
    let (out, cache) = (scratch.at("out/deep"), scratch.dir("cache"));
    let options = ["--window", "1,8", "--sleep", "1ms,2ms", "--seconds", "0.2", "--repeat", "2", "--out", &out];
    let run = profile(&cache, &address, &options);
    run.succeeds();
    let end = run.end();
    let points = end["points"].as_array().unwrap();
    assert_eq!(run.records().iter().filter(|record| record["event"] == "point").count(), 8);
    assert_eq!((points.len(), &points[0]["runs"], &end["capacity_bps"]), (4, &2.into(), &Value::Null));
    let at = |window: u64, sleep: u64| {
        points.iter().find(|point| point["window_datagrams"] == window && point["sleep_us"] == sleep).unwrap()
    };
    // 94 Mbit/s into 20.
    let fast = at(8, 1_000);
    assert!(number(&fast["loss_ratio"], "mean") > 0.2, "{fast}");
    assert!(number(&fast["goodput_bps"], "low") <= number(&fast["goodput_bps"], "high"), "{fast}");
    assert!(number(&end["advice"], "goodput_bps") < 21e6, "{end}");
    let names = ["goodput-over-rate.svg", "goodput.svg", "loss.svg", "profile.csv", "profile.json", "rate.svg"];
    assert_eq!(scratch.names("out/deep"), names);
    let written: Value = serde_json::from_slice(&fs::read(scratch.at("out/deep/profile.json")).unwrap()).unwrap();
    assert_eq!(written["points"], end["points"]);
    assert_eq!(fs::read_to_string(scratch.at("out/deep/profile.csv")).unwrap().lines().count(), 9);
    let stored = fs::read_to_string(scratch.at("cache/farhaul/paths.toml")).unwrap();
    let table: toml::Table = stored.parse().unwrap();
    assert_eq!(table[&address]["rate_bps"].as_integer(), end["advice"]["rate_bps"].as_i64());
}

// Waits for 26 points, each of 0.1 s and of about 0.12 s of questions for its counts.
#[test]
fn a_profile_without_options_finds_its_grid_and_the_shape() {
    let scratch = Scratch::new();
    let listener = Server::begin(&["bench"]);
    let (_relay, address) = relay(&listener, &["--rate", "20mbit", "--queue", "20"]);
    let mut measured = (0..3).map(|_| {
        let run = profile(&scratch.dir("cache"), &address, &["--seconds", "0.1", "--repeat", "1"]);
        run.succeeds();
        let end = run.end();
        assert_eq!(end["points"].as_array().unwrap().len(), 26, "{end}");
        end
    });
    // A machine that is busy for a time is its own limit, and the profile says so.
    let end = measured.find(|end| end["shape"] != "unsaturated").expect("one of three profiles fills the path");
    assert_eq!(end["shape"], "plateau", "{end}");
    for capacity in [&end["capacity_bps"], &end["advice"]["goodput_bps"]] {
        let capacity = capacity.as_f64().unwrap();
        assert!((15e6..21e6).contains(&capacity), "{capacity} of 20 Mbit/s");
    }
}

#[test]
fn the_delays_of_messages_have_a_distribution() {
    let scratch = Scratch::new();
    let listener = Server::begin(&["bench"]);
    let out = scratch.at("out");
    let options = ["--jitter", "--seconds", "0.5", "--sleep", "5ms", "--out", &out];
    let run = profile(&scratch.dir("cache"), &listener.address, &options);
    run.succeeds();
    let end = run.end();
    let bins = end["histogram"].as_array().unwrap();
    let counted: f64 = bins.iter().map(|bin| number(bin, "count")).sum();
    assert!(counted > 0.0 && (counted - number(&end, "messages_acknowledged")).abs() < 0.5, "{end}");
    assert!(number(&end, "messages_acknowledged") <= number(&end, "messages_sent"), "{end}");
    assert_eq!(scratch.names("out"), ["delays.csv", "delays.json", "delays.svg"]);
    profile(&scratch.dir("cache"), &listener.address, &["--jitter", "--sleep", "1ms,2ms"]).fails(2, &["one --sleep"]);
}

#[test]
fn pictures_of_a_profile_have_the_formats_of_print_and_slides() {
    let scratch = Scratch::new();
    let (cache, out) = (scratch.dir("cache"), scratch.at("out"));
    let options = ["profile", "--plain", "--jitter", "--seconds", "0.2", "--out", &out, "--format", "pdf,png"];
    let nowhere = ["env", &*format!("PATH={cache}")];
    farhaul_under(&nowhere, &[&options[..], &["--connect", "127.0.0.1:9"]].concat())
        .fails(1, &["rsvg-convert", "not installed", "librsvg2-bin"]);
    assert!(scratch.names("").iter().all(|name| name != "out"), "it is checked before anything is sent");
    if runs(&["rsvg-convert", "--version"], "it makes PDF and PNG").is_none() {
        return;
    }
    let listener = Server::begin(&["bench"]);
    farhaul(&[&options[..], &["--connect", &listener.address]].concat()).succeeds();
    are_pdf_and_png(&scratch, "out");
    let relay = relay(&listener, &["--rate", "20mbit", "--queue", "20"]);
    let grid = ["--window", "1", "--sleep", "2ms", "--seconds", "0.2", "--repeat", "1", "--format", "pdf,png"];
    let surfaces = scratch.at("grid");
    profile(&cache, &relay.1, &[&grid[..], &["--out", &surfaces]].concat()).succeeds();
    are_pdf_and_png(&scratch, "grid");
    profile(&cache, &relay.1, &grid).fails(2, &["--out"]);
}

#[test]
fn a_directory_that_cannot_be_made_is_named_before_anything_is_sent() {
    let scratch = Scratch::new();
    let file = scratch.file("file", 1);
    profile(&scratch.dir("cache"), "127.0.0.1:9", &["--out", &format!("{file}/out")]).fails(7, &[&file, "--out"]);
}

#[test]
fn a_search_for_the_rate_begins_at_the_stored_rate_of_the_path() {
    let scratch = Scratch::new();
    let cache = scratch.dir("cache");
    fs::create_dir_all(scratch.at("cache/farhaul")).unwrap();
    let listener = Server::begin(&["bench", "--protocol", "hurricane"]);
    let today = farhaul::probe::now().as_secs();
    let line = format!(
        "\"{}\" = {{ rate_bps = 147200000, goodput_bps = 147000000, window_datagrams = 3, sleep_us = 240, \
         datagram_bytes = 1472, measured_unix_seconds = {today} }}\n",
        listener.address
    );
    fs::write(scratch.at("cache/farhaul/paths.toml"), line).unwrap();
    let start = |options: &[&str]| {
        let arguments = ["bench", "--plain", "--json", "--connect", &listener.address, "--bytes", "1MB"];
        let run = farhaul_where(&[("XDG_CACHE_HOME", &cache)], &[&arguments, options].concat());
        run.succeeds();
        run.records().remove(0)["first_rate"].clone()
    };
    let found = start(&["--protocol", "hurricane"]);
    assert_eq!(found, serde_json::json!({ "rate_bps": 150_000_000, "measured_unix_seconds": today }), "with headers");
    assert_eq!(start(&["--protocol", "hurricane:rate=100mbit"]), Value::Null);
    assert_eq!(start(&["--protocol", "hurricane", "--rate", "100mbit"]), Value::Null);
}
