//! Published numbers beside ours.

use crate::aggregate::{Estimate, Measurements, grid};
use crate::expression::{Expression, Unit};
use crate::figures::FigureResult;
use crate::metric::Quantity;
use crate::paper::Published;
use crate::record::World;
use crate::report::svg::{in_words, meant_at};

/// The result of one curve at the place of a published number.
#[derive(Clone, Debug, PartialEq)]
pub struct Ours {
    /// The name of the curve for readers.
    pub curve: String,
    /// The world of the runs.
    pub world: World,
    /// The least and the greatest value of all points at that place; `None` without data.
    pub range: Option<(Estimate, Estimate)>,
}

/// One published number and our results beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonRow<'a> {
    /// The published number.
    pub published: &'a Published,
    /// The place in words; empty for all points.
    pub place: String,
    /// The unit of the number.
    pub unit: Unit,
    /// All curves, in the scenario's order.
    pub ours: Vec<Ours>,
}

impl Ours {
    /// The number, or the range over several points.
    #[must_use]
    pub fn print(&self, unit: Unit) -> String {
        match self.range {
            None => "–".to_owned(),
            Some((low, high)) if low == high => low.print(unit),
            Some((low, high)) => format!("{} … {}", unit.print(low.mean), unit.print(high.mean)),
        }
    }
}

impl ComparisonRow<'_> {
    /// The published number with its unit, and whether it is a bound.
    #[must_use]
    pub fn print_published(&self) -> String {
        in_words(&self.unit.print(self.published.value), self.published.bound)
    }

    /// The results of all curves with their unit.
    pub fn print_ours(&self) -> impl Iterator<Item = String> {
        self.ours.iter().map(|ours| ours.print(self.unit))
    }
}

/// All published numbers of a figure beside ours.
///
/// Numbers about a series over time are compared with the metric of the same name.
#[must_use]
pub fn compare<'a>(figure: &'a FigureResult, measurements: &Measurements<'_>) -> Vec<ComparisonRow<'a>> {
    let points = grid(&figure.scenario);
    let row = |published: &'a Published| {
        let expression = Expression::parse(&published.metric).ok();
        let meant: Vec<_> = points.iter().filter(|point| meant_at(published, point)).collect();
        let unit = expression.as_ref().zip(meant.first());
        let unit = unit.map_or(Quantity::unit_of_key(&published.metric), |(expression, point)| {
            expression.unit(&measurements.at(&figure.info.id, "", point))
        });
        let ours = figure.scenario.curves.iter().map(|curve| {
            let values = meant.iter().filter_map(|point| {
                measurements.at(&figure.info.id, &curve.name, point).estimate(expression.as_ref()?)
            });
            let mut values: Vec<Estimate> = values.collect();
            values.sort_by(|one, other| one.mean.total_cmp(&other.mean));
            let range = values.first().zip(values.last()).map(|(low, high)| (*low, *high));
            Ours { curve: label(curve), world: curve.world, range }
        });
        ComparisonRow { published, place: figure.scenario.point_words(&published.point), unit, ours: ours.collect() }
    };
    figure.info.published.iter().map(row).collect()
}

/// The name of the curve for readers, without the name of its world.
fn label(curve: &crate::scenario::Curve) -> String {
    let world = curve.world.to_string();
    let label = curve.label.replace(&format!(", {world}"), "");
    if label.is_empty() || label == world { "ours".to_owned() } else { label }
}
