use std::collections::BTreeSet;

use super::*;
use crate::record::AxisValue;
use crate::report::page::tests::tags;
use crate::scenario::{Curve, PlotAxis};
use crate::testing::gallery;

/// The first drawing of a figure of the gallery, without its style.
fn drawing(id: &str) -> String {
    drawing_of(&gallery(), id)
}

fn drawing_of(results: &[FigureResult], id: &str) -> String {
    let figure = results.iter().find(|result| result.info.id == id).unwrap();
    draw(&first_of(figure, &Measurements::new(results)), false).svg
}

fn first_of<'a>(figure: &'a FigureResult, measurements: &'a Measurements<'a>) -> PlotSource<'a> {
    PlotSource { figure, plot: &figure.scenario.plots[0], measurements, width: WIDTH }
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

/// The gallery with this many flows in its figure over time.
fn flows(count: u32) -> Vec<FigureResult> {
    let mut results = gallery();
    for record in &mut results[1].records {
        record.series.clear();
        for flow in 1..=count {
            record.series.insert(format!("goodput.udt-{flow}"), vec![(0.0, 1e6), (9.0, 1e6 * f64::from(flow))]);
        }
    }
    results
}

#[test]
fn ten_lines_have_a_colour_or_a_dash_of_their_own_and_a_label_at_their_end() {
    let results = flows(10);
    let figure = &results[1];
    let measurements = Measurements::new(&results);
    for drawing in [drawing_of(&results, "a5"), draw(&first_of(figure, &measurements).narrow(), false).svg] {
        let lines = |kind: &str| -> Vec<String> {
            let begin = format!("<path class=\"{kind} ");
            let classes =
                drawing.lines().filter_map(|line| Some(line.strip_prefix(&*begin)?.split_once('"')?.0.to_owned()));
            classes.collect()
        };
        for panel in lines("line thin").chunks(10) {
            assert_eq!(panel.iter().collect::<BTreeSet<_>>().len(), 10, "{panel:?}");
            assert!(panel.iter().all(|class| class.starts_with('s')), "no ramp of one colour: {panel:?}");
        }
        assert_eq!(lines("leader").len(), lines("line thin").len());
        let labels: Vec<(f64, f64, String)> =
            texts(&drawing, "words").into_iter().filter(|(.., text)| text.starts_with("UDT ")).collect();
        assert_eq!(labels.len(), 2 * 10, "each panel has its own");
        for (index, (x, y, _)) in labels.iter().enumerate() {
            assert!(
                labels[index + 1..].iter().all(|(other, row, _)| x != other || (y - row).abs() >= 15.9),
                "{labels:?}"
            );
        }
    }
    // More lines than labels fit have a legend above. Still, no two of them look alike.
    let many = drawing_of(&flows(18), "a5");
    assert!(!many.contains("leader"));
    assert_eq!((0..18).map(|line| panel::colour(line, 18, false)).collect::<BTreeSet<_>>().len(), 18);
    assert_eq!((0..12).map(|line| panel::colour(line, 12, true)).collect::<BTreeSet<_>>().len(), 12);
}

#[test]
fn curves_keep_their_colour_in_all_drawings_unless_there_are_more_than_colours() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b1").unwrap();
    figure.scenario.plots[0].curves = vec!["udt".to_owned()];
    let hue = |figure: &FigureResult| {
        let measurements = Measurements::new([figure]);
        let plot = &figure.scenario.plots[0];
        let source = PlotSource { figure, plot, measurements: &measurements, width: WIDTH };
        (source.hue(1), source.hues())
    };
    assert_eq!(hue(figure), (1, 2));
    let more = (0..style::HUES).map(|number| Curve::named(format!("more-{number}"), String::new()));
    figure.scenario.curves.extend(more);
    assert_eq!(hue(figure), (0, 1), "no dash in a drawing of one curve");
}

#[test]
fn panels_of_small_values_beside_large_ones_have_axes_of_their_own() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b3").unwrap();
    figure.scenario.plots[0].by.clear();
    let ticks = |results: &[FigureResult]| {
        texts(&drawing_of(results, "b3"), "tick").into_iter().map(|(.., text)| text).collect::<BTreeSet<_>>()
    };
    assert!(ticks(&results).contains("100") && !ticks(&results).contains("1"), "{:?}", ticks(&results));
    let figure = results.iter_mut().find(|result| result.info.id == "b3").unwrap();
    for record in &mut figure.records {
        let slow = record.point["rate"].text == "10mbit";
        record.metrics.values_mut().for_each(|value| *value *= if slow { 0.01 } else { 1.0 });
    }
    assert!(ticks(&results).contains("1"), "{:?}", ticks(&results));
}

#[test]
fn titles_of_labelled_panels_stand_clear_of_the_legend() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "b3").unwrap();
    figure.scenario.curves[0].label = "hosts of two nodes: queue of ten packets".to_owned();
    (figure.scenario.plots[0].x, figure.scenario.plots[0].by) = (Some("rate".to_owned()), vec!["rtt".to_owned()]);
    figure.info.published.clear();
    let svg = drawing_of(&results, "b3");
    assert!(svg.contains("leader"), "its lines are labelled");
    let above = texts(&svg, "words").iter().find(|(.., text)| text.starts_with("Lines by")).expect("the legend").1;
    for (_, y, title) in texts(&svg, "title") {
        assert!(y >= above + 17.9, "{title} meets the legend: {svg}");
    }
}

#[test]
fn a_bar_without_data_is_not_taken_for_zero() {
    let mut results = gallery();
    let figure = results.iter_mut().find(|result| result.info.id == "a10").unwrap();
    for record in figure.records.iter_mut().filter(|record| record.curve == "udt") {
        record.metrics.remove("goodput.flow-2");
    }
    assert_eq!(texts(&drawing_of(&results, "a10"), "tick").iter().filter(|(.., text)| text == "–").count(), 1);
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

/// The texts of a drawing and their positions, as `(x, y, text)`.
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
    let svg = draw(&first_of(figure, &measurements).narrow(), false).svg;
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
    let svg = draw(&first_of(figure, &measurements).narrow(), false).svg;
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
    assert_eq!(columns(draw(&first_of(figure, &measurements).narrow(), false)), y);
    assert_eq!(columns(draw(&first_of(figure, &measurements), false)), x);
}

#[test]
fn a_panel_of_a_scenario_without_curves_has_the_name_of_its_place() {
    let mut curve = gallery()[0].scenario.curves[0].clone();
    curve.label = "UDT4".to_owned();
    assert_eq!(["", "loss 1 %"].map(|place| words::titled(&curve, place)), ["UDT4", "UDT4: loss 1 %"]);
    curve.label.clear();
    assert_eq!(["", "loss 1 %"].map(|place| words::titled(&curve, place)), ["", "Loss 1 %"]);
}
