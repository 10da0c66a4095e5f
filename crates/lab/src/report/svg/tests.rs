use super::*;
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
