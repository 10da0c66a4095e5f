//! `lab arena`: its records, its page, its cells as scenarios, and its refusals.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process::{Scratch, farhaul};

#[test]
fn an_arena_has_a_record_for_each_cell_and_controller_and_a_page() {
    let scratch = Scratch::new();
    let out = scratch.at("arena");
    let below = "fixed:rate=100kbit";
    let arguments =
        ["lab", "arena", "ideal", below, "--family", "slow", "--cells", "2", "--seed", "1..2", "--json", "--out", &out];
    let run = farhaul(&arguments);
    run.succeeds();
    let records = run.records();
    let events: Vec<&str> = records.iter().filter_map(|record| record["event"].as_str()).collect();
    assert_eq!(events, [&["start"][..], &["cell"; 8], &["end"]].concat());
    for (place, record) in records[1..9].iter().enumerate() {
        assert_eq!(record["seed"], place as u64 / 4 + 1);
        assert_eq!((&record["family"], &record["controller"]), (&"slow".into(), &["ideal", below][place % 2].into()));
        assert_eq!(record["passed"], place % 2 == 0, "{record}");
        let goals = record["goals"].as_array().unwrap();
        assert_eq!(goals.iter().map(|goal| &goal["name"]).collect::<Vec<_>>(), ["goodput", "waste"]);
        let goodput = &goals[0];
        let met = goodput["value"].as_f64() >= goodput["least"].as_f64();
        assert_eq!((&goodput["met"], &goodput["most"]), (&met.into(), &Value::Null));
        assert!(goodput["formula"].as_str().unwrap().contains("I = f"));
        assert!((0.0..=1.0).contains(&record["score"].as_f64().unwrap()));
    }
    let end = run.end();
    assert_eq!((&end["exit_code"], &end["seeds"]), (&0.into(), &vec![1, 2].into()));
    let all = &end["controllers"][0];
    assert_eq!((&all["controller"], &all["passed"], &all["cells"]), (&"ideal".into(), &4.into(), &4.into()));
    assert_eq!(end["controllers"][1]["families"]["slow"]["passed"], 0);
    let page = fs::read_to_string(end["page"].as_str().unwrap()).unwrap();
    let again = format!("farhaul lab arena ideal {below} --seed 1..2 --cells 2 --family slow");
    assert!(page.contains(&again), "{page}");
    // The second time, nothing is run.
    let stored = fs::read_to_string(Path::new(&out).join("records.ndjson")).unwrap();
    assert_eq!(stored.lines().count(), 8);
    let sums =
        |record: Value| record["controllers"].as_array().unwrap().iter().map(|sum| sum["passed"].clone()).collect();
    let (first, second): (Vec<Value>, Vec<Value>) = (sums(end), sums(farhaul(&arguments).end()));
    assert_eq!(first, second);
    assert_eq!(fs::read_to_string(Path::new(&out).join("records.ndjson")).unwrap(), stored);
    let arguments = arguments.map(|argument| if argument == "--json" { "--misses" } else { argument });
    let table = farhaul(&arguments);
    table.succeeds();
    let table = String::from_utf8(table.stdout).unwrap();
    let row = |name: &str| table.lines().find(|line| line.starts_with(name)).map(|line| line.split_whitespace());
    assert!(row("slow").unwrap().eq("slow 4 of 4 0 of 4".split(' ')), "{table}");
    assert_eq!(table.lines().filter(|line| line.starts_with("seed ")).count(), 4, "{table}");
}

#[test]
fn a_cell_of_an_arena_runs_as_a_scenario() {
    let scratch = Scratch::new();
    let shown = farhaul(&["lab", "arena", "ideal", "--family", "slow", "--cells", "1", "--show"]);
    shown.succeeds();
    let scenario = scratch.at("cell.toml");
    fs::write(&scenario, shown.stdout).unwrap();
    let run = farhaul(&["lab", "run", &scenario, "--json", "--out", &scratch.at("out")]);
    run.succeeds();
    let metrics = run.records().into_iter().find(|record| record["event"] == "run").unwrap()["metrics"].take();
    let arena = ["lab", "arena", "ideal", "--family", "slow", "--cells", "1", "--json", "--out", &scratch.at("arena")];
    let cell = farhaul(&arena).records().into_iter().find(|record| record["event"] == "cell").unwrap();
    assert_eq!(cell["goals"][0]["value"], metrics["goodput.total"]);
}

#[test]
fn a_wrong_choice_of_an_arena_is_refused_before_anything_runs() {
    let scratch = Scratch::new();
    let out = scratch.at("out");
    for (arguments, words) in [
        (["udtt", "--cells", "1"], ["unknown congestion controller 'udtt'", "or use ideal"]),
        (["--family", "clena", "udt"], ["no family 'clena' (clean?)", "multi-bottleneck"]),
        (["--seed", "4..1", "udt"], ["'4..1'", "--seed"]),
        (["--cell", "48", "udt"], ["no cell has this number", "--cells"]),
        (["--json", "--show", "udt"], ["--json", "--show"]),
    ] {
        farhaul(&[&["lab", "arena", "--out", &out][..], &arguments].concat()).fails(2, &words);
        assert!(!Path::new(&out).exists(), "nothing is begun");
    }
}
