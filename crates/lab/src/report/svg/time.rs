//! Series over time, of the first seed. Each curve has one panel at each point of the grid.

use super::chart::Horizontal;
use super::data::{PlotSource, meant_at};
use super::marks::{Mark, Spot};
use super::panel::{Line, Panel};
use super::words::{capital, titled, words};
use crate::expression::Unit;
use crate::metric::Quantity;
use crate::record::Record;

/// The most panels of a drawing. A scenario selects points by `where`.
const MOST_PANELS: usize = 12;
/// The most points of a line that readers can tell apart. Of more points, the least and greatest of neighbours are
/// drawn.
const MOST_POINTS: usize = 600;

pub(super) fn panels(source: &PlotSource<'_>) -> (Horizontal, Vec<Panel>) {
    let horizontal = Horizontal { name: "time".to_owned(), unit: Unit::Seconds, values: Vec::new(), words: Vec::new() };
    let curves = source.curves();
    let together = source.plot.y.len() == 1 && !source.plot.y[0].ends_with('*');
    let mut panels = Vec::new();
    for (group, point) in source.points().iter().enumerate() {
        let place = source.describe(point);
        let mut shared = Panel { title: capital(&place), group, ..Panel::default() };
        for (index, curve) in &curves {
            let title = titled(curve, &place);
            let mut own = Panel { title, group, ..Panel::default() };
            let panel = if together { &mut shared } else { &mut own };
            let Some(run) = source.first_run(&curve.name, point) else { continue };
            let names = source.series(run);
            for name in &names {
                if !run.series.contains_key(name) {
                    continue;
                }
                let label = match name.split_once('.') {
                    _ if together => curve.label.clone(),
                    Some((_, flow)) => source.flow_words(flow, curve),
                    None => words(name),
                };
                let mut line = Line::new(label);
                line.colour = if together { source.hue(*index) } else { panel.lines.len() };
                line.over_time = true;
                line.emulated = together && !curve.world.is_simulated();
                line.points = thin(begun(run, name));
                let number = panel.lines.len();
                let published =
                    source.published(name, *index).into_iter().filter(|published| meant_at(published, point));
                panel.marks.extend(published.map(|published| Mark {
                    spot: Spot::Across(published.value),
                    bound: published.bound,
                    line: number,
                    text: published.text.clone(),
                }));
                panel.lines.push(line);
            }
            if !together && !own.lines.is_empty() {
                panels.push(own);
            }
        }
        if together && !shared.lines.is_empty() {
            panels.push(shared);
        }
    }
    panels.truncate(MOST_PANELS);
    (horizontal, panels)
}

/// The series of a run, from the start of its flow.
///
/// A goodput series keeps the last zero before the start, from which the line rises. Series of the run, such as the
/// queue, keep all their zeros.
fn begun<'a>(run: &'a Record, name: &str) -> &'a [(f64, f64)] {
    let series = run.series.get(name).map_or(&[][..], Vec::as_slice);
    let first = series.iter().position(|(_, value)| *value != 0.0).unwrap_or(0);
    match Quantity::of_key(name) {
        Some(Quantity::Goodput) => &series[first.saturating_sub(1)..],
        // A zero means that nothing was measured yet.
        Some(Quantity::Rtt | Quantity::Period) => &series[first..],
        _ => series,
    }
}

/// A series with few enough points, which keeps peaks and troughs.
fn thin(series: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if series.len() <= MOST_POINTS {
        return series.to_vec();
    }
    let bucket = series.len().div_ceil(MOST_POINTS / 2);
    let by_value = |one: &&(f64, f64), other: &&(f64, f64)| one.1.total_cmp(&other.1);
    let mut points = Vec::with_capacity(MOST_POINTS);
    for part in series.chunks(bucket) {
        let (Some(least), Some(greatest)) = (part.iter().min_by(by_value), part.iter().max_by(by_value)) else {
            continue;
        };
        let (first, second) = if least.0 <= greatest.0 { (least, greatest) } else { (greatest, least) };
        points.extend([*first, *second]);
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_begins_with_its_flow_and_no_other_series_does() {
        let mut run = crate::testing::gallery()[1].records[0].clone();
        let late = vec![(0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.4, 5.0), (0.5, 0.0)];
        let silent = vec![(0.1, 0.0), (0.2, 0.0)];
        run.series.clear();
        for name in ["goodput.a", "rtt.a", "queue"] {
            run.series.insert(name.to_owned(), late.clone());
        }
        run.series.insert("goodput.silent".to_owned(), silent.clone());
        assert_eq!(begun(&run, "goodput.a"), &late[2..]);
        assert_eq!(begun(&run, "rtt.a"), &late[3..]);
        assert_eq!(begun(&run, "queue"), &late[..]);
        assert_eq!(begun(&run, "goodput.silent"), &silent[..]);
        assert!(begun(&run, "goodput.unknown").is_empty());
    }

    #[test]
    fn a_long_series_keeps_its_peaks() {
        let series: Vec<(f64, f64)> = (0..6_000).map(|i| (f64::from(i), if i == 4_321 { 9.0 } else { 1.0 })).collect();
        let thinned = thin(&series);
        assert!(thinned.len() <= MOST_POINTS);
        assert!(thinned.contains(&(4_321.0, 9.0)));
        assert!(thinned.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
