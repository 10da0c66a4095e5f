//! `lab`: scenario files and figures as people and scripts run them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::emulate::FORBIDDEN;
use crate::process::{Scratch, Started, farhaul, farhaul_under};
use crate::requirement::runs;

/// The first scenario of a newcomer, after one page of the documentation.
const NEWCOMER: &str = "\
title = \"My first link\"
duration = \"3s\"

[link]
rate = \"20mbit\"
rtt = \"20ms\"

[[flow]]
[[flow]]
protocol = \"tcp\"
";

/// The text as a file.
fn write(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.at(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn drawings_are_files_for_print_and_slides_where_their_program_is_installed() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "mine.toml", NEWCOMER);
    let words = ["lab", "run", &scenario, "--out", &scratch.at("out"), "--format", "pdf,png"];
    let nowhere = scratch.dir("nowhere");
    let without_path = ["env", &*format!("PATH={nowhere}")];
    farhaul_under(&without_path, &words).fails(1, &["rsvg-convert", "not installed", "librsvg2-bin"]);
    assert!(!Path::new(&scratch.at("out")).exists(), "it is checked before anything runs");
    if runs(&["rsvg-convert", "--version"], "it makes PDF and PNG").is_none() {
        return;
    }
    farhaul(&words).succeeds();
    are_pdf_and_png(&scratch, "out/mine");
}

/// Checks that a folder has drawings as PDF and PNG, and none as SVG.
pub(crate) fn are_pdf_and_png(scratch: &Scratch, folder: &str) {
    let names = scratch.names(folder);
    let begin_with = |extension: &str, bytes: &[u8]| {
        let paths = names.iter().filter(|name| name.ends_with(extension));
        let files: Vec<Vec<u8>> =
            paths.map(|name| fs::read(scratch.at(&format!("{folder}/{name}"))).unwrap()).collect();
        !files.is_empty() && files.iter().all(|file| file.starts_with(bytes))
    };
    assert!(begin_with(".pdf", b"%PDF-") && begin_with(".png", b"\x89PNG"), "{names:?}");
    assert!(!names.iter().any(|name| name.ends_with(".svg")), "{names:?}");
}

#[test]
fn ten_lines_by_a_newcomer_run() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "mine.toml", NEWCOMER);
    let run = farhaul(&["lab", "run", &scenario, "--out", &scratch.at("out")]);
    run.succeeds();
    let stdout = String::from_utf8(run.stdout).unwrap();
    for words in ["goodput.total", "utilisation", "\n\nflow ", "\nudt ", "\ntcp ", " loss ", " rtt "] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    assert!(stdout.ends_with("scores: 0 of 0 met\n"), "{stdout}");
    let csv = fs::read_to_string(scratch.at("out/mine/records.csv")).unwrap();
    assert_eq!(csv.lines().count(), 2);
    let page = farhaul(&["lab", "report", &scratch.at("out")]);
    page.succeeds();
    let page = String::from_utf8(page.stdout).unwrap();
    let page = fs::read_to_string(page.trim()).unwrap();
    for words in [
        "My first link",
        "Goodput of each flow over time",
        "Queue at the bottleneck",
        "<path class=\"line",
        "<th>Flow</th>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("no data"));
}

#[test]
fn the_same_scenario_and_seed_give_the_same_trace() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "mine.toml", NEWCOMER);
    let trace = |out: &str, seed: &str| {
        farhaul(&["lab", "run", &scenario, "--seed", seed, "--out", &scratch.at(out)]).succeeds();
        let text = fs::read_to_string(Path::new(&scratch.at(out)).join("mine/records.ndjson")).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["trace"].clone()
    };
    let first = trace("a", "7");
    assert_eq!(first, trace("b", "7"));
    assert_ne!(first, trace("c", "8"));
}

#[test]
fn a_mistake_is_one_line_with_file_and_place() {
    let scratch = Scratch::new();
    for (from, to, words) in [
        ("rtt = ", "rrt = ", ["mine.toml:6: unknown key `rrt` (`rtt`?) in [link]", "queue, rate"]),
        ("20mbit", "20ms", ["mine.toml:5: `rate` in [link]", "mbit"]),
        ("20mbit", "0mbit", ["mine.toml:5: ", "above zero"]),
        ("title", "seeds = 0\ntitle", ["mine.toml:1: ", "1 to 10000"]),
    ] {
        let scenario = write(&scratch, "mine.toml", &NEWCOMER.replacen(from, to, 1));
        farhaul(&["lab", "run", &scenario, "--out", &scratch.at("out")]).fails(1, &words);
        assert!(!Path::new(&scratch.at("out")).exists(), "nothing is begun");
    }
    farhaul(&["lab", "run", "a5555"]).fails(2, &["no figure 'a5555'", "farhaul lab list"]);
    farhaul(&["lab", "run", &scratch.at("nothing.toml")]).fails(2, &["nothing.toml", "check the name"]);
    farhaul(&["lab", "run", "a5", "--seed=-1"]).fails(2, &["--seed"]);
}

#[test]
fn a_plot_or_metric_that_does_not_exist_is_an_error_before_anything_runs() {
    let scratch = Scratch::new();
    let plot = "[[plot]]\nkind = \"time\"\ny = \"goodput.udt\"\n";
    let score = "[[score]]\nid = \"a\"\nsays = \"b\"\nsource = \"ours\"\nmust = \"jain > 0\"\n";
    let whole = format!("{NEWCOMER}{plot}{score}");
    for (from, to, words) in [
        ("y = \"goodput.udt", "y = \"godput.udt", ["mine.toml:13: ", "did you mean 'goodput.udt'?"]),
        ("kind = \"time", "kind = \"tiem", ["mine.toml:12: ", "time"]),
        ("jain > 0", "jian > 0", ["mine.toml:18: ", "did you mean 'jain'?"]),
    ] {
        let scenario = write(&scratch, "mine.toml", &whole.replacen(from, to, 1));
        farhaul(&["lab", "run", &scenario, "--out", &scratch.at("out")]).fails(1, &words);
        assert!(!Path::new(&scratch.at("out")).exists(), "nothing is begun");
    }
    let scenario = write(&scratch, "mine.toml", &whole);
    farhaul(&["lab", "run", &scenario, "--out", &scratch.at("out")]).succeeds();
}

#[test]
fn an_unmet_score_fails_a_strict_run() {
    let scratch = Scratch::new();
    let score =
        "[[score]]\nid = \"more\"\nsays = \"more than there is\"\nsource = \"ours\"\nmust = \"utilisation > 1\"\n";
    let scenario = write(&scratch, "mine.toml", &format!("{NEWCOMER}{score}"));
    let out = scratch.at("out");
    let run = farhaul(&["lab", "run", &scenario, "--out", &out]);
    run.succeeds();
    assert!(String::from_utf8(run.stdout).unwrap().ends_with("scores: 0 of 1 met\n"));
    farhaul(&["lab", "run", &scenario, "--strict", "--out", &out]).fails(1, &["1 of 1 scores not met: mine/more"]);
    let end = farhaul(&["lab", "run", &scenario, "--json", "--out", &out]).end();
    assert_eq!((&end["scores_met"], &end["scores"], &end["exit_code"]), (&0.into(), &1.into(), &0.into()));
}

#[test]
fn a_sweep_that_was_killed_goes_on() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "mine.toml", NEWCOMER);
    let out = scratch.at("out");
    let arguments = [
        "lab",
        "sweep",
        &scenario,
        "--axis",
        "link.rtt=1ms,2ms,5ms,10ms,20ms,50ms",
        "--jobs",
        "1",
        "--json",
        "--out",
        &out,
    ];
    let begun = Started::begin(&arguments, Stdio::null()).after("run");
    begun.signal(Signal::KILL);
    drop(begun.end());
    let records = Path::new(&scratch.at("out/mine/records.ndjson")).to_owned();
    let kept = fs::read_to_string(&records).unwrap();
    let whole: Vec<&str> = kept.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect();
    assert!((1..6).contains(&whole.len()), "{} runs were finished", whole.len());
    let run = farhaul(&arguments);
    run.succeeds();
    let ran = run.records().iter().filter(|record| record["event"] == "run").count();
    assert_eq!(ran, 6 - whole.len());
    let after = fs::read_to_string(&records).unwrap();
    assert!(after.starts_with(&whole.concat()));
    let keys: BTreeSet<String> =
        after.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["key"].to_string()).collect();
    assert_eq!((after.lines().count(), keys.len()), (6, 6));
}

#[test]
fn the_copy_of_a_scenario_runs_with_the_recorded_links_that_it_names() {
    let scratch = Scratch::new();
    let folder = scratch.at("mine");
    fs::create_dir_all(Path::new(&folder).join("links")).unwrap();
    let recorded = ["mine/links/slow.trace", "fast.trace", "mine/back.trace"];
    for (file, milliseconds) in recorded.iter().zip(["5\n", "1\n", "1\n2\n"]) {
        fs::write(scratch.at(file), milliseconds).unwrap();
    }
    // One is named by the scenario, one by a curve and lies elsewhere, one is for the return path.
    let link = "[link]\ntrace = \"links/slow.trace\"\nrtt = \"20ms\"\nback = { trace = \"back.trace\" }\n";
    let curves =
        "[[curve]]\nname = \"slow\"\n[[curve]]\nname = \"fast\"\nset = { \"link.trace\" = \"../fast.trace\" }\n";
    let text = format!("title = \"x\"\nduration = \"2s\"\n{link}[[flow]]\nprotocol = \"tcp\"\n{curves}");
    let scenario = write(&scratch, "mine/recorded.toml", &text);
    let ran = |scenario: &str, out: &str| -> Vec<Value> {
        let run = farhaul(&["lab", "run", scenario, "--json", "--out", &scratch.at(out)]);
        run.succeeds();
        let mut records: Vec<Value> = run.records().into_iter().filter(|record| record["event"] == "run").collect();
        records.sort_by_key(|record| record["curve"].to_string());
        records.into_iter().map(|mut record| record["metrics"].take()).collect()
    };
    let first = ran(&scenario, "out");
    assert_eq!(first.len(), 2);
    assert_ne!(first[0], first[1], "the links differ");
    fs::remove_dir_all(&folder).unwrap();
    fs::remove_file(scratch.at("fast.trace")).unwrap();
    fs::create_dir(scratch.at("elsewhere")).unwrap();
    fs::rename(scratch.at("out/recorded"), scratch.at("elsewhere/recorded")).unwrap();
    let copy = scratch.at("elsewhere/recorded/scenario.toml");
    assert_eq!(ran(&copy, "again"), first);
    assert!(ran(&copy, "elsewhere").is_empty(), "and its results are known by the same names");
    farhaul(&["lab", "report", &scratch.at("elsewhere")]).succeeds();
}

#[test]
fn figures_are_listed_with_their_content() {
    let run = farhaul(&["lab", "list", "--json"]);
    run.succeeds();
    let figures: Value = serde_json::from_slice(&run.stdout).unwrap();
    let a5 = figures.as_array().unwrap().iter().find(|figure| figure["id"] == "a5").unwrap();
    assert_eq!(a5["paper"], "udt-2004");
    assert!(a5["shows"].as_str().unwrap().contains("fair share"));
    assert!(!a5["scores"].as_array().unwrap().is_empty());
}

#[test]
fn scores_that_the_shipped_results_miss_are_listed_with_the_page_that_explains_them() {
    let run = farhaul(&["lab", "list", "--misses", "--json"]);
    run.succeeds();
    let misses: Value = serde_json::from_slice(&run.stdout).unwrap();
    let misses = misses.as_array().unwrap();
    let full = misses.iter().find(|miss| miss["figure"] == "a5").unwrap();
    assert_eq!((&full["score"], &full["source"]), (&"full".into(), &"ours".into()));
    assert_eq!(full["page"], "figures/udt-2004/a5/README.md");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    assert!(misses.iter().all(|miss| root.join(miss["page"].as_str().unwrap()).is_file()));
    let run = farhaul(&["lab", "list", "--misses"]);
    run.succeeds();
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("README.md\n    full: The link stays full"), "{text}");
    assert!(text.contains(&format!("\n{} of ", misses.len())), "{text}");
    farhaul(&["lab", "list", "--misses", "--scores"]).fails(2, &["--scores"]);
}

#[test]
fn a_run_lists_the_scores_that_it_misses_and_a_short_one_leaves_out_those_of_no_point() {
    let scratch = Scratch::new();
    let score = |id: &str, more: &str| format!("[[score]]\nid = \"{id}\"\nsays = \"x\"\nsource = \"ours\"\n{more}\n");
    let scores = score("met", "must = \"jain >= 0\"")
        + &score("missed", "must = \"jain > 1\"")
        + &score("elsewhere", "must = \"jain > 1\"\nwhere = \"rtt > 1s\"");
    let axis = "[[axis]]\nname = \"rtt\"\nset = \"link.rtt\"\nvalues = [\"20ms\"]\n";
    let scenario = write(&scratch, "mine.toml", &format!("{}{axis}{scores}", NEWCOMER.replace("3s", "500ms")));
    let run = farhaul(&["lab", "run", &scenario, "--quick", "--out", &scratch.at("out"), "--json"]);
    run.succeeds();
    assert_eq!(run.end()["unmet"], serde_json::json!(["mine/missed"]));
    assert_eq!(fs::read_to_string(scratch.at("out/misses.csv")).unwrap(), "figure,score\nmine,missed\n");
}

/// Needs tshark; where there is none, only the file's own framing is looked at.
#[test]
fn packets_of_a_run_are_read_by_wireshark() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "mine.toml", &NEWCOMER.replace("3s", "500ms"));
    let pcap = scratch.at("run.pcap");
    farhaul(&["lab", "run", &scenario, "--pcap", &pcap, "--out", &scratch.at("out")]).succeeds();
    let packets = framed(&fs::read(&pcap).unwrap());
    assert!(packets > 500, "{packets}");
    let Some(lines) = dissected(&pcap, &["_ws.col.Protocol"]) else { return };
    assert_eq!(lines.lines().count(), packets);
    let protocols: BTreeSet<&str> = lines.lines().filter_map(|line| line.split('\t').next()).collect();
    assert!(protocols.contains("UDT") && protocols.contains("TCP"), "{protocols:?}");
}

/// Needs tshark; where there is none, only the run itself is looked at.
#[test]
fn selective_acknowledgements_of_a_run_are_read_by_wireshark() {
    let scratch = Scratch::new();
    let lossy = NEWCOMER.replace("rtt =", "loss = \"1%\"\nrtt =").replacen("[[flow]]\n", "", 1);
    let pcap = scratch.at("run.pcap");
    for (controller, has_blocks) in [("sack", true), ("newreno", false)] {
        let scenario = write(&scratch, "mine.toml", &format!("{lossy}controller = \"{controller}\"\n"));
        farhaul(&["lab", "run", &scenario, "--pcap", &pcap, "--out", &scratch.at(controller)]).succeeds();
        let fields =
            ["tcp.flags.syn", "tcp.options.sack_perm", "tcp.ack_raw", "tcp.options.sack_le", "tcp.options.sack_re"];
        let Some(lines) = dissected(&pcap, &fields) else { return };
        let rows: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
        let offers: Vec<&str> = rows.iter().filter(|row| ["1", "True"].contains(&row[0])).map(|row| row[1]).collect();
        assert!(offers.len() >= 2 && offers.iter().all(|offer| offer.is_empty() != has_blocks), "{offers:?}");
        let blocks: Vec<[u32; 3]> = rows
            .iter()
            .filter(|row| !row[3].is_empty())
            .map(|row| [2, 3, 4].map(|field| row[field].split(',').next().unwrap().parse().unwrap()))
            .collect();
        assert_eq!(!blocks.is_empty(), has_blocks, "{controller}");
        for [ack, left, right] in blocks {
            assert!(ack < left && left < right, "{ack} {left} {right}");
            assert_eq!(((left - 1) % 1_460, (right - left) % 1_460), (0, 0), "whole segments: {left} {right}");
        }
    }
}

/// These fields from tshark, one line per packet, after a check for malformed packets; `None` if it is not installed.
fn dissected(pcap: &str, fields: &[&str]) -> Option<String> {
    let mut command = Command::new("tshark");
    command.args(["-r", pcap, "-d", "udp.port==9000,udt", "-T", "fields"]);
    for field in fields.iter().chain(&["_ws.malformed"]) {
        command.args(["-e", field]);
    }
    let Ok(tshark) = command.output() else {
        eprintln!("skipped: tshark is not installed");
        return None;
    };
    assert!(tshark.status.success(), "{}", String::from_utf8_lossy(&tshark.stderr));
    let lines = String::from_utf8(tshark.stdout).unwrap();
    assert!(!lines.contains("alformed"), "{lines}");
    Some(lines)
}

/// How many packets a pcap file holds, each as long as its header says.
fn framed(bytes: &[u8]) -> usize {
    assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    let mut rest = &bytes[24..];
    let mut packets = 0;
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[8..12].try_into().unwrap()) as usize;
        let packet = &rest[16..16 + length];
        assert_eq!(packet[0], 0x45);
        rest = &rest[16 + length..];
        packets += 1;
    }
    packets
}

#[test]
fn a_page_of_nothing_is_refused() {
    let scratch = Scratch::new();
    farhaul(&["lab", "report", &scratch.at(".")]).fails(2, &["holds no results", "farhaul lab run"]);
    assert!(!Path::new(&scratch.at("report.html")).exists());
}

/// Whether this machine lets programs make networks of their own.
fn may_emulate(stderr: &str) -> bool {
    let refused = stderr.contains("an emulated network needs ");
    if refused {
        eprintln!("skipped: {stderr}");
    }
    !refused
}

#[test]
fn a_scenario_runs_in_both_worlds_and_a_report_shows_them_side_by_side() {
    let scratch = Scratch::new();
    let text = NEWCOMER.replace("3s", "1500ms") + "[[plot]]\nkind = \"bars\"\ny = [\"goodput.udt\", \"goodput.tcp\"]\n";
    let scenario = write(&scratch, "mine.toml", &text);
    let out = scratch.at("out");
    farhaul(&["lab", "run", &scenario, "--out", &out]).succeeds();
    let emulated = farhaul(&["lab", "run", &scenario, "--world", "emu", "--json", "--out", &out]);
    if !may_emulate(&emulated.stderr) {
        return;
    }
    emulated.succeeds();
    let records: Vec<Value> =
        String::from_utf8(emulated.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let run = records.iter().find(|record| record["event"] == "run").unwrap();
    assert_eq!((&run["world"], &run["emulation"]["tcp"]), (&Value::from("emulated"), &Value::from("reno")));
    assert!(run["metrics"]["goodput.tcp"].as_f64().unwrap() > 0.0);
    let figure = records.iter().find(|record| record["event"] == "figure").unwrap();
    assert_eq!(figure["valid"], run["emulation"]["valid"]);
    for file in ["records.csv", "records-emulated.csv", "run.json", "run-emulated.json"] {
        assert!(Path::new(&out).join("mine").join(file).is_file(), "{file}");
    }
    farhaul(&["lab", "report", &out]).succeeds();
    let page = fs::read_to_string(Path::new(&out).join("report.html")).unwrap();
    assert_eq!(page.matches("<section").count(), 1);
    assert!(page.contains("emulated") && page.contains("--world emu"));
}

#[test]
fn a_scenario_that_is_too_fast_for_the_machine_says_so_before_it_runs() {
    let scratch = Scratch::new();
    let scenario = write(&scratch, "fast.toml", &NEWCOMER.replace("20mbit", "400gbit").replace("3s", "500ms"));
    let run = farhaul(&["lab", "run", &scenario, "--world", "emu", "--out", &scratch.at("out")]);
    if !may_emulate(&run.stderr) {
        return;
    }
    run.succeeds();
    let warning = run.stderr.lines().find(|line| line.contains("this machine carries about")).unwrap();
    assert!(warning.contains("fast: ") && warning.contains("not 400 Gbit/s"), "{warning}");
}

#[test]
fn features_that_the_emulated_world_lacks_are_refused_in_one_line() {
    let scratch = Scratch::new();
    let costs = "sender = { per_sent = \"1us\" }\n";
    let scenario = write(&scratch, "costs.toml", &NEWCOMER.replacen("[[flow]]\n", &format!("[[flow]]\n{costs}"), 1));
    let out = scratch.at("out");
    for (arguments, words) in [
        (
            vec!["lab", "run", &scenario, "--world", "emu", "--out", &out],
            vec!["costs.toml:8:", "`sender`", "--world sim"],
        ),
        (vec!["lab", "run", "a14", "--world", "emu", "--jobs", "2"], vec!["--jobs"]),
        (vec!["lab", "run", "a14", "--world", "emu", "--pcap", "x.pcap"], vec!["--pcap"]),
        (vec!["lab", "run", "a14", "--tcp", "bbr"], vec!["--world emu"]),
    ] {
        let run = farhaul(&arguments);
        let stderr = run.stderr;
        assert!(run.code != 0 && run.stdout.is_empty(), "{arguments:?}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
        assert!(words.iter().all(|word| stderr.contains(word)), "{stderr}");
    }
}

#[test]
fn where_nothing_is_permitted_the_simulator_is_offered_before_anything_is_begun() {
    if runs(&[FORBIDDEN, &["true"]].concat(), "a system that permits nothing").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let (scenario, out) = (write(&scratch, "mine.toml", NEWCOMER), scratch.at("out"));
    for verb in ["run", "sweep"] {
        let lab = ["lab", verb, &scenario, "--world", "emu", "--out", &out];
        farhaul_under(FORBIDDEN, &lab).fails(5, &["root", "namespaces", "--world sim"]);
        let end = farhaul_under(FORBIDDEN, &[&lab[..], &["--json"]].concat()).end();
        assert_eq!((&end["exit_code"], &end["error"]["code"]), (&5.into(), &"NOT_PERMITTED".into()));
    }
    assert!(!Path::new(&out).exists());
}
