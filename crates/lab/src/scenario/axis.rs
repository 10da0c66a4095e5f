//! What a sweep changes: axes of a grid, and curves drawn over it.

use crate::record::AxisValue;

/// One dimension of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// How plots, scores and records call it.
    pub name: String,
    /// The keys that it sets, as dotted paths: `link.rate`, `flow.udt.rtt`.
    pub set: Vec<String>,
    /// The values in the scenario's order.
    pub values: Vec<AxisValue>,
}

/// The same experiment with some keys changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// How plots, scores and records call it; empty for the only curve of a scenario that names none.
    pub name: String,
    /// How a reader of the plot should see it; the name unless the scenario says otherwise.
    pub label: String,
}
