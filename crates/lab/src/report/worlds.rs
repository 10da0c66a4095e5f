//! One figure from several worlds: each curve once for each world, side by side.

use crate::figures::FigureResult;
use crate::record::{Record, World};
use crate::scenario::{Axis, Curve};
use crate::world::twin::emulated_twin;

/// All figures, each once. A figure that was run in both worlds has every curve twice.
#[must_use]
pub fn joined(results: &[FigureResult]) -> Vec<FigureResult> {
    let mut joined: Vec<FigureResult> = Vec::new();
    for result in results {
        match joined.iter_mut().find(|other| other.info.id == result.info.id && other.world != result.world) {
            None => joined.push(result.clone()),
            Some(other) if other.world.is_simulated() => *other = join(other, result),
            Some(other) => *other = join(result, other),
        }
    }
    joined.into_iter().map(labelled).collect()
}

/// Joins the results of both worlds into one figure.
fn join(simulated: &FigureResult, emulated: &FigureResult) -> FigureResult {
    let mut both = simulated.clone();
    let scenario = &mut both.scenario;
    scenario.curves = Vec::new();
    for curve in &simulated.scenario.curves {
        scenario.curves.push(curve.clone());
        scenario.curves.extend(emulated.scenario.curves.iter().filter(|other| other.name == curve.name).map(renamed));
    }
    let known = |curve: &&Curve| simulated.scenario.curves.iter().any(|other| other.name == curve.name);
    scenario.curves.extend(emulated.scenario.curves.iter().filter(|curve| !known(curve)).map(renamed));
    for axis in &emulated.scenario.axes {
        match scenario.axes.iter_mut().find(|other| other.name == axis.name) {
            Some(other) => add_values(other, axis),
            None => scenario.axes.push(axis.clone()),
        }
    }
    for plot in &mut scenario.plots {
        plot.curves = plot.curves.iter().flat_map(|curve| [curve.clone(), emulated_twin(curve)]).collect();
    }
    both.records.extend(emulated.records.iter().map(|run| Record { curve: emulated_twin(&run.curve), ..run.clone() }));
    both.emulated = Some(Box::new(emulated.clone()));
    both
}

fn renamed(curve: &Curve) -> Curve {
    Curve { name: emulated_twin(&curve.name), world: World::Emulated, ..curve.clone() }
}

fn add_values(axis: &mut Axis, from: &Axis) {
    for value in &from.values {
        if !axis.values.iter().any(|other| crate::aggregate::same(other, value)) {
            axis.values.push(value.clone());
        }
    }
}

/// Labels emulated curves, and those with invalid runs.
fn labelled(mut figure: FigureResult) -> FigureResult {
    let (world, joined) = (figure.world, figure.emulated.is_some());
    let mut curves = std::mem::take(&mut figure.scenario.curves);
    for curve in &mut curves {
        if !world.is_simulated() {
            curve.world = world;
        }
        if curve.world.is_simulated() && !(joined && curve.label.is_empty()) {
            continue;
        }
        let separator = if curve.label.is_empty() { "" } else { ", " };
        curve.label = format!("{}{separator}{}", curve.label, curve.world);
        if figure.records.iter().any(|run| run.curve == curve.name && !run.is_valid()) {
            curve.label.push_str(", invalid");
        }
    }
    figure.scenario.curves = curves;
    figure
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::{Measurements, grid};
    use crate::expression::Expression;
    use crate::testing::{both_worlds, gallery};

    #[test]
    fn a_figure_of_both_worlds_has_every_curve_twice_with_the_numbers_of_each() {
        let results = both_worlds();
        let joined = joined(&results);
        assert_eq!(joined.len(), gallery().len());
        let [simulated, emulated] = [&results[0], &results[1]];
        let both = joined.iter().find(|figure| figure.info.id == simulated.info.id).unwrap();
        let curves = &simulated.scenario.curves;
        assert_eq!(both.scenario.curves.len(), 2 * curves.len());
        let measurements = Measurements::new(&joined);
        let [in_one, in_other] = [simulated, emulated].map(|result| Measurements::new([result]));
        let metric = simulated.records[0].metrics.keys().next().unwrap();
        let expression = Expression::parse(metric).unwrap();
        let id = &simulated.info.id;
        let mut seen = 0;
        for point in grid(&simulated.scenario) {
            for curve in curves {
                let one = in_one.at(id, &curve.name, &point).estimate(&expression);
                let other = in_other.at(id, &curve.name, &point).estimate(&expression);
                assert_eq!(measurements.at(id, &curve.name, &point).estimate(&expression), one);
                assert_eq!(measurements.at(id, &emulated_twin(&curve.name), &point).estimate(&expression), other);
                assert_ne!(one, other);
                seen += 1;
            }
        }
        assert!(seen > 0);
    }

    #[test]
    fn a_reference_to_another_curve_stays_in_its_world() {
        let results = both_worlds();
        let joined = joined(&results);
        let measurements = Measurements::new(&joined);
        let (result, point) = (&results[0], &results[0].records[0].point);
        let metric = result.records[0].metrics.keys().next().unwrap();
        let [first, second] = [0, 1].map(|curve| result.scenario.curves[curve].name.as_str());
        let other = Expression::parse(&format!("{metric}[{second}]")).unwrap();
        let own = Expression::parse(metric).unwrap();
        let at = |curve: &str, expression: &Expression| {
            measurements.at(&result.info.id, curve, point).estimate(expression).unwrap().mean
        };
        assert_eq!(at(first, &other), at(second, &own));
        assert_eq!(at(&emulated_twin(first), &other), at(&emulated_twin(second), &own));
    }

    #[test]
    fn curves_say_where_they_are_from_and_whether_they_are_valid() {
        let mut results = both_worlds();
        let flawed = results[1].scenario.curves[0].name.clone();
        let run = results[1].records.iter_mut().find(|run| run.curve == flawed).unwrap();
        run.emulation = Some(crate::testing::flawed());
        let joined = joined(&results);
        let labels: Vec<&str> = joined[0].scenario.curves.iter().map(|curve| curve.label.as_str()).collect();
        assert!(!labels[0].contains("emulated") && labels[1].ends_with(", emulated, invalid"), "{labels:?}");
        assert!(labels[3].ends_with(", emulated"), "{labels:?}");
    }
}
