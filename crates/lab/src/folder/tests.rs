//! Results that are read again, by a program that lacks the controllers of the one that made them.

use super::*;
use crate::store::Store;

const TEXT: &str = "title = 'Two'\nduration = '1s'\nlink = { rate = '1mbit', rtt = '1ms' }\n\
                    [[flow]]\nname = 'f'\ncontroller = 'mine'\n\
                    [[curve]]\nname = 'mine'\n[[curve]]\nname = 'added'\nset = { 'flow.f.controller' = 'added-here' }\n";

fn law(name: &str, revision: &str) -> Spec {
    Spec::made(name, |seed| Spec::default().build(seed)).revised(revision)
}

fn figure(revision: &str) -> Figure {
    let controllers = [("mine".to_owned(), law("Mine", revision))].into();
    Figure::text("scenario", TEXT.to_owned(), &Overrides { seeds: vec![4, 7], controllers, ..Overrides::default() })
        .expect("it can be run")
}

fn record(job: &Job) -> Record {
    Record {
        figure: "scenario".into(),
        curve: job.curve.clone(),
        point: job.point.clone(),
        seed: job.seed,
        world: World::Simulated,
        emulation: None,
        metrics: BTreeMap::new(),
        series: BTreeMap::new(),
        key: job.key.clone(),
        trace: String::new(),
        simulated_seconds: 1.0,
        real_seconds: 1.0,
        packet_hops: 1,
    }
}

#[test]
fn records_that_are_kept_together_are_found_without_the_controllers_of_their_program() {
    law("added-here", "1").register().expect("the name is free");
    let out = std::env::temp_dir().join(format!("farhaul-lab-together-{}", std::process::id()));
    drop(fs::remove_dir_all(&out));
    let figure = figure("1");
    let settings = Settings { figure: "two".into(), build: "b".into(), seeds: vec![4, 7], ..Settings::default() };
    begin(&out, &figure, &settings).unwrap();
    let jobs = figure.experiment.jobs("b").unwrap();
    let mut store = Store::claim(&out).unwrap();
    jobs.iter().skip(1).for_each(|job| store.add(&record(job)).unwrap());
    // A run of other code.
    store.add(&record(&self::figure("2").experiment.jobs("b").unwrap()[0])).unwrap();
    let read = results(&out).unwrap();
    let [result] = &read[..] else { panic!("{read:?}") };
    let of = |result: &FigureResult| -> Vec<(String, u64)> {
        result.records.iter().map(|record| (record.curve.clone(), record.seed)).collect()
    };
    assert_eq!((result.info.id.as_str(), result.info.title.as_str()), ("two", "Two"));
    assert_eq!(of(result), [("mine".into(), 7), ("added".into(), 4), ("added".into(), 7)]);
    let kept = fs::read_to_string(out.join("two/run.json")).unwrap();
    let kept: Settings = serde_json::from_str(&kept).unwrap();
    let known: Vec<&str> = kept.controllers.keys().map(String::as_str).collect();
    assert_eq!(known, ["added-here", "mine"]);
    fs::remove_dir_all(&out).unwrap();
}
