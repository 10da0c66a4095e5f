use std::collections::BTreeSet;

use super::*;
use crate::record::AxisValue;
use crate::report::page::tests::tags;
use crate::scenario::PlotAxis;
use crate::testing::gallery;

/// The first drawing of a figure of the gallery, without its style.
fn drawing(id: &str) -> String {
    drawing_of(&gallery(), id)
}

fn drawing_of(results: &[FigureResult], id: &str) -> String {
    let figure = results.iter().find(|result| result.info.id == id).unwrap();
    draw(figure, &figure.scenario.plots[0], &Measurements::new(results), false).svg
}

#[test]
fn lines_over_an_axis() {
    insta::assert_snapshot!(drawing("b1"));
}

#[test]
fn lines_by_a_second_axis_have_a_panel_for_each_curve() {
    insta::assert_snapshot!(drawing("b3"));
}

#[test]
fn series_over_time() {
    insta::assert_snapshot!(drawing("a5"));
}

#[test]
fn a_map_of_two_axes() {
    insta::assert_snapshot!(drawing("a3"));
}

#[test]
fn bars_by_flow() {
    insta::assert_snapshot!(drawing("a10"));
}

#[test]
fn every_drawing_alone_is_well_formed_and_the_same_each_time() {
    let results = gallery();
    let measurements = Measurements::new(&results);
    for figure in &results {
        for (one, other) in drawings(figure, &measurements).iter().zip(drawings(figure, &measurements)) {
            assert_eq!(tags(&one.svg)[..4], ["svg", "title", "desc", "style"]);
            assert!(one.svg.contains("role=\"img\"") && one.svg.contains("prefers-color-scheme"));
            assert_eq!(*one, other);
        }
    }
}

#[test]
fn a_drawing_without_data_says_so() {
    for mut figure in gallery() {
        figure.records.clear();
        let measurements = Measurements::new([&figure]);
        for drawing in drawings(&figure, &measurements) {
            tags(&drawing.svg);
            assert!(drawing.svg.contains("no data"), "{}", drawing.name);
        }
    }
}

#[test]
fn values_out_of_any_range_do_no_harm() {
    for mut figure in gallery() {
        for (index, record) in figure.records.iter_mut().enumerate() {
            let strange = [0.0, -1.0, 1e300, 1e-300, f64::MAX][index % 5];
            record.metrics.values_mut().for_each(|value| *value = strange);
            record.series.values_mut().flatten().for_each(|point| point.1 = strange);
        }
        for scale in [crate::scenario::Scale::Linear, crate::scenario::Scale::Log] {
            for plot in &mut figure.scenario.plots {
                plot.y_axis = PlotAxis { scale, ..PlotAxis::default() };
                plot.x_axis = PlotAxis { scale, ..PlotAxis::default() };
            }
            let measurements = Measurements::new([&figure]);
            for drawing in drawings(&figure, &measurements) {
                tags(&drawing.svg);
                assert!(!drawing.svg.contains("NaN") && !drawing.svg.contains("inf"), "{}", drawing.svg);
            }
        }
    }
}

#[test]
fn an_axis_for_several_metrics_names_them_all() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "a10").unwrap();
    figure.scenario.plots[0].y = vec!["jain".to_owned(), "utilisation".to_owned()];
    for record in &mut figure.records {
        record.metrics.insert("jain".to_owned(), 0.9);
        record.metrics.insert("utilisation".to_owned(), 0.5);
    }
    let svg = drawing_of(&results, "a10");
    assert!(svg.contains(">Jain index, utilisation</text>"), "{svg}");
    assert!(svg.contains(">Jain index</text>") && svg.contains(">Utilisation</text>"), "{svg}");
}

#[test]
fn an_interval_does_not_draw_the_axis_below_nothing() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b1").unwrap();
    for record in &mut figure.records {
        record.metrics.values_mut().for_each(|rate| *rate = 1e8 * (record.seed % 3) as f64);
    }
    let svg = drawing_of(&results, "b1");
    assert!(svg.contains("class=\"band"), "{svg}");
    assert!(!svg.contains(">\u{2212}"), "{svg}");
}

#[test]
fn a_label_too_long_for_its_line_stands_above() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b1").unwrap();
    figure.scenario.curves[0].label = "modified flow control with thresholds 1.5 and 3.5".to_owned();
    assert!(!drawing_of(&results, "b1").contains("leader"));
    assert!(drawing_of(&gallery(), "b1").contains("leader"));
}

/// Texts of a drawing and where they begin, as `(x, y, text)`.
fn texts(svg: &str, class: &str) -> Vec<(f64, f64, String)> {
    let number = |text: &str, name: &str| -> f64 {
        text.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().parse().unwrap()
    };
    svg.lines()
        .filter(|line| line.starts_with(&format!("<text class=\"{class}\"")))
        .map(|line| {
            let text = line.split_once('>').unwrap().1.trim_end_matches("</text>");
            (number(line, "x"), number(line, "y"), text.to_owned())
        })
        .collect()
}

#[test]
fn names_of_bars_stand_clear_of_each_other_on_a_narrow_page() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "a10").unwrap();
    let names = ["every-other-lost", "100 Mbit/s and a name", "f3", "every-third-lost", "f5", "the-last-of-all"];
    for record in &mut figure.records {
        for (number, name) in names.iter().enumerate() {
            record.metrics.insert(format!("goodput.{name}"), 1e8 * (number + 1) as f64);
        }
    }
    figure.scenario.plots[0].y = names.iter().map(|name| format!("goodput.{name}")).collect();
    figure.info.published.clear();
    let measurements = Measurements::new(&results);
    let figure = results.iter().find(|result| result.info.id == "a10").unwrap();
    let svg = draw_narrow(figure, &figure.scenario.plots[0], &measurements).svg;
    let placed: Vec<(f64, f64, f64)> = texts(&svg, "tick")
        .into_iter()
        .filter(|(_, _, text)| names.contains(&text.as_str()))
        .map(|(middle, row, text)| (row, middle - canvas::width(&text) / 2.0, middle + canvas::width(&text) / 2.0))
        .collect();
    assert_eq!(placed.len() % names.len(), 0, "{svg}");
    assert!(!placed.is_empty() && placed.iter().all(|(_, left, right)| *left >= -0.1 && *right <= NARROW + 0.1));
    for (index, (row, left, right)) in placed.iter().enumerate() {
        let meets = |other: &&(f64, f64, f64)| other.0 == *row && other.1 < *right && *left < other.2;
        assert_eq!(placed[index + 1..].iter().find(meets), None, "{placed:?}");
    }
}

#[test]
fn a_legend_too_long_for_a_narrow_page_is_broken() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b1").unwrap();
    figure.scenario.curves[0].label =
        "modified flow control with thresholds 1.5 and 3.5 on a path of two links".to_owned();
    let measurements = Measurements::new(&results);
    let figure = results.iter().find(|result| result.info.id == "b1").unwrap();
    let svg = draw_narrow(figure, &figure.scenario.plots[0], &measurements).svg;
    let words = texts(&svg, "words");
    assert!(words.iter().any(|(_, _, text)| text.ends_with("two links")), "{svg}");
    let first = words.iter().find(|(_, _, text)| text.starts_with("modified")).unwrap();
    let next = words.iter().find(|(_, _, text)| text.contains("Farhaul")).unwrap();
    assert!(next.1 > first.1 + 18.0, "{words:?}");
    for (x, _, text) in words.iter().filter(|(x, ..)| *x == first.0) {
        assert!(x + canvas::width(text) <= NARROW, "{text}");
    }
}

#[test]
fn a_map_of_many_columns_is_turned_on_a_narrow_page() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "a3").unwrap();
    let plot = figure.scenario.plots[0].clone();
    let across = figure.scenario.axes.iter_mut().find(|axis| Some(&axis.name) == plot.x.as_ref()).unwrap();
    let value = across.values[0].clone();
    across.values.extend(["2s", "3s", "4s"].map(|text| AxisValue { text: text.to_owned(), ..value.clone() }));
    let x = across.values.len();
    let y = figure.scenario.axes.iter().find(|axis| axis.name == plot.by[0]).unwrap().values.len();
    assert!(x > 6 && y < x);
    let measurements = Measurements::new(&results);
    let figure = results.iter().find(|result| result.info.id == "a3").unwrap();
    let columns = |drawing: Drawing| {
        let cells =
            drawing.svg.lines().filter(|line| line.starts_with("<rect class=\"cell") || line.contains("\"empty\""));
        let lefts = cells.map(|line| line.split(" x=\"").nth(1).unwrap().split('"').next().unwrap().to_owned());
        lefts.collect::<BTreeSet<String>>().len()
    };
    assert_eq!(columns(draw_narrow(figure, &plot, &measurements)), y);
    assert_eq!(columns(draw(figure, &plot, &measurements, false)), x);
}
