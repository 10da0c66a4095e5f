//! Every shipped figure is complete, and a smoke run of it gives the same results as before.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use farhaul_lab::figures::shipped;
use farhaul_lab::misses::{Miss, misses};
use farhaul_lab::sweep::{Options, Work, sweep};
use farhaul_lab::world::Venue;
use farhaul_lab::{Figure, Overrides, Record, check};

/// Metrics in the snapshot of a smoke run.
const METRICS: [&str; 5] = ["goodput.total", "utilisation", "jain", "queue.mean", "drops"];

#[test]
fn every_figure_has_a_source_and_scores() {
    let bibliography = include_str!("../../../../docs/papers/papers.bib");
    assert!(!shipped().is_empty());
    for figure in shipped() {
        let id = figure.id;
        assert_eq!(id, id.to_ascii_lowercase());
        assert!(shipped().iter().filter(|other| other.id == id).count() == 1, "{id} is there twice");
        let Figure { info, experiment, .. } =
            figure.read(&Overrides::default()).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(info.paper, figure.paper, "{id} lies in the folder of another paper");
        assert!(bibliography.contains(&format!("{{{},", info.paper)), "{id}: {}", info.paper);
        assert!(!info.source.is_empty() && !info.shows.is_empty(), "{id} needs `source` and `shows`");
        assert!(!figure.published.is_empty(), "{id} needs paper.csv, if only to say that nothing is printed");
        assert!(
            !experiment.scenario.plots.is_empty() && !experiment.scenario.scores.is_empty(),
            "{id} draws and scores nothing"
        );
        let quick = figure.read(&Overrides { quick: true, ..Overrides::default() });
        quick.and_then(|quick| Ok(quick.experiment.jobs("")?)).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

// Slow: it lists the runs of every figure twenty times. Each of the four checks looks at all four forms beside its own.
#[test]
fn every_figure_names_only_metrics_and_axes_that_exist() {
    for (quick, emulated) in [(false, false), (true, false), (false, true), (true, true)] {
        let overrides = Overrides { quick, emulated, ..Overrides::default() };
        let figures: Vec<Figure> = shipped().iter().map(|figure| figure.read(&overrides).unwrap()).collect();
        let figures: Vec<&Figure> = figures.iter().collect();
        check(&figures, std::path::Path::new("nothing here")).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

#[test]
fn drawings_of_figures_show_words_and_neither_expressions_nor_ids() {
    for shipped in shipped() {
        let scenario = shipped.read(&Overrides::default()).unwrap().experiment.scenario;
        let id = shipped.id;
        for plot in &scenario.plots {
            let is_expression = plot.y.iter().any(|y| y.contains(' '));
            assert!(!is_expression || plot.y_axis.label.is_some(), "{id}: {} needs a `y_label`", plot.name);
        }
        for axis in &scenario.axes {
            for value in axis.values.iter().filter(|value| value.number.is_none()) {
                // What a key is set to is written for the program.
                let is_id = !axis.set.is_empty() || value.text.contains('-');
                let is_word = !is_id || scenario.labels.contains_key(&value.text);
                assert!(is_word, "{id}: axis {} shows '{}': give it one of [labels]", axis.name, value.text);
            }
        }
    }
}

#[test]
fn the_list_of_misses_agrees_with_the_readmes() {
    let missed: Vec<Miss<'_>> = misses().collect();
    for miss in &missed {
        assert!(miss.shipped().is_some(), "{miss:?} is of no figure");
    }
    for shipped in shipped() {
        let id = shipped.id;
        let scores = shipped.read(&Overrides::default()).unwrap().experiment.scenario.scores;
        let scores: Vec<&str> = scores.iter().map(|score| score.id.as_str()).collect();
        let mine: Vec<&str> = missed.iter().filter(|miss| miss.figure == id).map(|miss| miss.score).collect();
        // In the order of the scenario, which also finds lines that are there twice or are of no score.
        let known: Vec<&str> = scores.iter().copied().filter(|score| mine.contains(score)).collect();
        assert_eq!(mine, known, "{id}");
        for score in &mine {
            assert!(shipped.readme.contains(&format!("`{score}`")), "{} does not name `{score}`", shipped.page());
        }
        let (met, all) = met_of(shipped.readme).unwrap_or_else(|| panic!("{} counts no scores", shipped.page()));
        let all = all.unwrap_or(scores.len());
        assert_eq!((met.unwrap_or(all), all), (scores.len() - mine.len(), scores.len()), "{}", shipped.page());
    }
}

/// The numbers of scores that a README says are met in the full run, and of all: `Two of three scores are met`. That is its
/// first sentence of this kind. `None` within is all.
fn met_of(readme: &str) -> Option<(Option<usize>, Option<usize>)> {
    const NUMBERS: [&str; 10] = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let words: Vec<String> = readme.split_whitespace().map(str::to_lowercase).collect();
    let number = |word: &str| NUMBERS.iter().position(|name| *name == word);
    let is_end = |words: &[String]| {
        let [scores, verb, met] = words else { return false };
        scores.starts_with("score") && ["is", "are"].contains(&&**verb) && met.starts_with("met")
    };
    let place = words.windows(3).position(is_end)?;
    let before = |back: usize| place.checked_sub(back).map_or("", |place| words[place].as_str());
    Some(match [4, 3, 2, 1].map(before) {
        [_, met, "of", all] | [met, "of", "the", all] => (number(met), number(all)),
        [_, _, "all", all] => (None, number(all)),
        [.., "all" | "the"] => (None, None),
        [.., "both"] => (None, Some(2)),
        [.., "neither"] => (Some(0), Some(2)),
        _ => return None,
    })
}

#[test]
fn a_figure_read_from_its_file_is_the_shipped_one() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../figures");
    let read = |path: &std::path::Path| Figure::file(path, &Overrides::default()).unwrap();
    for shipped in shipped() {
        assert!(
            read(&folder.join(shipped.paper).join(shipped.id).join("scenario.toml")).is_shipped(),
            "{}",
            shipped.id
        );
    }
}

#[test]
fn every_figure_says_how_to_run_it() {
    for figure in shipped() {
        assert!(figure.readme.contains(&format!("farhaul lab run {}", figure.id)), "{}: README.md", figure.id);
    }
}

// Slow: it runs every figure.
#[test]
fn smoke_runs_of_all_figures_are_as_they_were() {
    let overrides = Overrides { quick: true, seeds: vec![1], smoke: true, ..Overrides::default() };
    let figures: Vec<Figure> = shipped().iter().map(|figure| figure.read(&overrides).unwrap()).collect();
    let work = |figure: &Figure| Work {
        figure: figure.info.id.clone(),
        jobs: figure.experiment.jobs("").unwrap(),
        store: None,
    };
    let mut works: Vec<Work> = figures.iter().map(work).collect();
    let mut results = vec![Vec::new(); works.len()];
    let options = Options {
        venue: &Venue::Simulator,
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        stop: &AtomicBool::new(false),
        progress: &mut |_, _| {},
        ran: &mut |_| {},
        finished: &mut |place, records| {
            results[place] = records;
            Ok(())
        },
    };
    sweep(&mut works, options).unwrap();
    for (figure, records) in figures.iter().zip(&results) {
        insta::assert_snapshot!(figure.info.id.as_str(), records.iter().map(line).collect::<String>());
    }
}

/// A run in a line, to three digits.
fn line(record: &Record) -> String {
    let mut line = record.curve.clone();
    for (axis, value) in &record.point {
        let _ = write!(line, " {axis}={}", value.text);
    }
    line.push(':');
    for metric in METRICS {
        if let Some(value) = record.metrics.get(metric) {
            let _ = write!(line, " {metric} {value:.2e}");
        }
    }
    line.trim_start().to_owned() + "\n"
}
