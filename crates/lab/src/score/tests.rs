use super::*;
use crate::testing::{Grid, both_worlds, figure, flawed, score};

fn holds(expression: &str, share: f64) -> Demand {
    Demand::Holds { expression: expression.to_owned(), share }
}

/// Utilisation 0.99, except 0.90 at 100 kbit/s with 100 ms, and 0.97 at 1 Mbit/s with 100 ms.
fn grid_figure(scores: Vec<ScoreSpec>) -> FigureResult {
    let value = |rate: f64, rtt: f64| match (rate, rtt) {
        (1e5, 0.1) => 0.90,
        (1e6, 0.1) => 0.97,
        _ => 0.99,
    };
    figure("a3", Grid { rates: &["100kbit", "1mbit", "10mbit"], rtts: &["1ms", "100ms"], seeds: 2 }, scores, |run| {
        vec![("utilisation".to_owned(), value(run.rate, run.rtt) + if run.seed == 1 { 0.001 } else { -0.001 })]
    })
}

fn evaluated(figure: &FigureResult) -> ScoreResult {
    evaluate(figure, &Measurements::new([figure])).remove(0)
}

#[test]
fn a_score_names_its_worst_point_and_by_how_much() {
    let result = evaluated(&grid_figure(vec![score("fills", holds("utilisation >= 0.98", 1.0), None)]));
    assert!(!result.met);
    assert_eq!((result.holds, result.places), (4, 6));
    let worst = result.worst.as_ref().unwrap();
    assert_eq!(worst.place, "rate 100kbit, rtt 100ms");
    assert_eq!(worst.by().unwrap(), "8\u{a0}points short");
    assert_eq!(
        result.measured().replace('\u{a0}', " "),
        "holds at 4 of 6; worst at rate 100kbit, rtt 100ms: 90 % (≥ 98 %), 8 points short"
    );
}

#[test]
fn a_share_of_the_points_is_enough_where_the_score_says_so() {
    assert!(evaluated(&grid_figure(vec![score("fills", holds("utilisation >= 0.98", 0.66), None)])).met);
    assert!(!evaluated(&grid_figure(vec![score("fills", holds("utilisation >= 0.98", 0.67), None)])).met);
}

#[test]
fn only_the_points_that_are_meant_count() {
    let filter = Some("rate >= 10mbit or rtt <= 10ms");
    let result = evaluated(&grid_figure(vec![score("fills", holds("utilisation >= 0.98", 1.0), filter)]));
    assert!(result.met);
    assert_eq!(result.places, 4);
    let none = evaluated(&grid_figure(vec![score("fills", holds("utilisation >= 0.98", 1.0), Some("rate > 1gbit"))]));
    assert!(!none.met && none.applies, "the full form must have them");
    assert!(none.measured().contains("no point of the grid"));
    let mut quick = grid_figure(vec![score("fills", holds("utilisation >= 0.98", 1.0), Some("rate > 1gbit"))]);
    quick.quick = true;
    let open = evaluated(&quick);
    assert!(!open.applies && open.measured().contains("not judged"), "{open:?}");
    assert_eq!(count(&[open]), (0, 0), "neither met nor missed");
}

#[test]
fn missing_data_is_never_met() {
    for (demand, filter) in [
        (holds("jain <= 2", 0.0), None),
        (holds("utilisation >= 0 or jain >= 0", 1.0), None),
        (holds("utilisation >= 0", 1.0), Some("hops > 1")),
        (holds("utilisation >= ", 1.0), None),
    ] {
        let result = evaluated(&grid_figure(vec![score("fills", demand, filter)]));
        assert!(!result.met && result.trouble.is_some(), "{result:?}");
    }
}

#[test]
fn a_point_of_which_a_run_is_missing_has_no_data() {
    let mut figure = grid_figure(vec![score("fills", holds("utilisation >= 0.5", 1.0), None)]);
    assert!(evaluated(&figure).met);
    figure.records.remove(0);
    let result = evaluated(&figure);
    assert!(!result.met);
    assert_eq!((result.holds, result.places), (5, 6));
    assert_eq!(result.trouble.as_deref(), Some("no data: utilisation at 1 of 6"));
}

#[test]
fn a_rise_along_an_axis_is_looked_at_step_by_step() {
    let monotone = |direction, tolerance| Demand::Monotone {
        expression: "utilisation".to_owned(),
        along: "rate".to_owned(),
        direction,
        tolerance,
    };
    let rising = evaluated(&grid_figure(vec![score("rises", monotone(Direction::Rising, 0.0), None)]));
    assert!(rising.met, "{rising:?}");
    assert_eq!(rising.places, 4);
    let falling = evaluated(&grid_figure(vec![score("falls", monotone(Direction::Falling, 0.01), None)]));
    assert!(!falling.met);
    assert_eq!(falling.worst.unwrap().place, "rate 1mbit, rtt 100ms (from 100kbit)");
    assert!(evaluated(&grid_figure(vec![score("falls", monotone(Direction::Falling, 0.1), None)])).met);
}

#[test]
fn two_figures_differ_if_they_do_in_one_place() {
    let differs = |by| Demand::Differs { expression: "utilisation".to_owned(), than: "utilisation@a4".to_owned(), by };
    let one = grid_figure(vec![score("differs", differs(0.05), None), score("too-much", differs(0.1), None)]);
    let mut other = grid_figure(Vec::new());
    other.info.id = "a4".to_owned();
    for record in &mut other.records {
        record.metrics.insert("utilisation".to_owned(), 0.985);
    }
    let results = evaluate(&one, &Measurements::new([&one, &other]));
    assert!(results[0].met && !results[1].met, "{results:?}");
    let alone = evaluated(&one);
    assert!(!alone.met);
    assert!(alone.measured().contains("no data: utilisation@a4"));
}

#[test]
fn nothing_is_met_by_invalid_runs() {
    let mut results = both_worlds();
    let must = Demand::Holds { expression: "1 == 1".to_owned(), share: 1.0 };
    results[1].scenario.scores = vec![score("true", must, None)];
    let judge = |results: &[FigureResult]| evaluate(&results[1], &Measurements::new(&results[1..2])).remove(0);
    assert!(judge(&results).met);
    results[1].records[0].emulation = Some(flawed());
    let judged = judge(&results);
    assert!(!judged.met && judged.trouble.unwrap().contains("a run is invalid: 97 %"));
}

#[test]
fn an_invalid_run_at_another_point_does_not_count() {
    let mut scores = vec![
        score("low", holds("utilisation >= 0.1", 1.0), None),
        score("all", holds("utilisation >= 0.1", 1.0), None),
    ];
    scores[0].filter = Some("rate <= 1mbit".to_owned());
    let mut figure = grid_figure(scores);
    let fast = figure.records.iter_mut().find(|run| run.point["rate"].text == "10mbit").unwrap();
    fast.emulation = Some(flawed());
    let judged = evaluate(&figure, &Measurements::new([&figure]));
    assert_eq!(judged.iter().map(|score| score.met).collect::<Vec<_>>(), [true, false]);
}
