//! Maps values to positions, and chooses the ticks.

use crate::scenario::Scale as Spacing;

/// The greatest distance of a position from the beginning of the axis, in lengths of the axis.
const FARTHEST: f64 = 20.0;

/// One direction of a drawing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    spacing: Spacing,
    values: (f64, f64),
    places: (f64, f64),
}

impl Scale {
    /// Maps `values` to `places`. Widens a range without width, so that there is something to draw on.
    pub(crate) fn new(spacing: Spacing, values: (f64, f64), places: (f64, f64)) -> Self {
        let (low, high) = values;
        let values = match spacing {
            _ if high > low && (spacing == Spacing::Linear || low > 0.0) => (low, high),
            Spacing::Linear if low == 0.0 => (0.0, 1.0),
            Spacing::Linear => (low - low.abs() * 0.5, low + low.abs() * 0.5),
            Spacing::Log if high > 0.0 => (high / 10.0, high * 10.0),
            Spacing::Log => (1.0, 10.0),
        };
        Self { spacing, values, places }
    }

    /// Whether equal ratios are equally far apart.
    pub(crate) fn is_log(&self) -> bool {
        self.spacing == Spacing::Log
    }

    /// The position of a value; `None` for values that a logarithmic axis cannot show.
    ///
    /// Values outside of the range have positions outside, where they are cut off. The distance is bounded.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let (low, high) = self.values;
        let share = match self.spacing {
            Spacing::Linear => (value - low) / (high - low),
            Spacing::Log if value > 0.0 => {
                (libm::log10(value) - libm::log10(low)) / (libm::log10(high) - libm::log10(low))
            }
            Spacing::Log => return None,
        };
        let place = self.places.0 + share.clamp(-FARTHEST, FARTHEST) * (self.places.1 - self.places.0);
        place.is_finite().then_some(place)
    }

    /// The values with ticks, whose labels need this much space each. Measured values are taken if they are few and far
    /// enough apart, otherwise round ones.
    pub(crate) fn ticks(&self, measured: &[f64], room: f64) -> Vec<f64> {
        let places: Vec<f64> = measured.iter().filter_map(|value| self.place(*value)).collect();
        let apart = places.windows(2).all(|pair| (pair[1] - pair[0]).abs() >= room);
        if (2..=8).contains(&measured.len()) && places.len() == measured.len() && apart {
            return measured.to_vec();
        }
        let most = ((self.places.1 - self.places.0).abs() / room).max(2.0);
        match self.spacing {
            Spacing::Linear => round_values(self.values, most.min(6.0)),
            Spacing::Log => round_ratios(self.values, most),
        }
    }
}

/// A step of 1, 2 or 5 times a power of ten that gives about `most` values at most.
fn round_step(span: f64, most: f64) -> f64 {
    let rough = span / most;
    let power = libm::pow(10.0, libm::log10(rough).floor());
    let step = [1.0, 2.0, 5.0].into_iter().find(|step| step * power >= rough * 0.999);
    step.unwrap_or(10.0) * power
}

fn round_values((low, high): (f64, f64), most: f64) -> Vec<f64> {
    let step = round_step(high - low, most);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|index| index as f64 * step).collect()
}

/// The end of a linear axis that begins at zero: the next tick above the data.
pub(crate) fn round_up(high: f64) -> f64 {
    if high <= 0.0 {
        return high;
    }
    let step = round_step(high, 5.0);
    (high / step - 1e-6).ceil() * step
}

fn round_ratios((low, high): (f64, f64), most: f64) -> Vec<f64> {
    let (first, last) = ((libm::log10(low) - 1e-9).floor() as i32, (libm::log10(high) + 1e-9).ceil() as i32);
    let within = |value: &f64| *value >= low * (1.0 - 1e-9) && *value <= high * (1.0 + 1e-9);
    let decade = |exponent: i32| libm::pow(10.0, f64::from(exponent));
    let all: Vec<f64> = (first..=last).map(decade).filter(within).collect();
    let every = (all.len() as f64 / most).ceil().max(1.0) as usize;
    let decades: Vec<f64> = all.into_iter().step_by(every).collect();
    let between: Vec<f64> = (first..=last)
        .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * decade(exponent)))
        .filter(within)
        .collect();
    if decades.len() > 2 || (decades.len() == 2 && between.len() as f64 > most) { decades } else { between }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let scale = Scale::new(Spacing::Linear, (0.0, 97.0), (0.0, 300.0));
        assert_eq!(scale.ticks(&[], 50.0), [0.0, 20.0, 40.0, 60.0, 80.0]);
        let log = Scale::new(Spacing::Log, (1e-5, 0.1), (0.0, 500.0));
        assert_eq!(log.ticks(&[], 50.0).len(), 5);
        let narrow = Scale::new(Spacing::Log, (1.0, 12.0), (0.0, 300.0));
        assert_eq!(narrow.ticks(&[], 50.0), [1.0, 2.0, 5.0, 10.0]);
    }

    #[test]
    fn decades_without_room_for_each_are_not_filled_up() {
        let log = Scale::new(Spacing::Log, (1e5, 1e8), (0.0, 240.0));
        assert_eq!(log.ticks(&[1e5, 1e6, 1e7, 1e8], 90.0), [1e5, 1e7]);
    }

    #[test]
    fn measured_values_are_marked_where_there_is_room() {
        let scale = Scale::new(Spacing::Log, (0.025, 0.2), (0.0, 300.0));
        assert_eq!(scale.ticks(&[0.025, 0.1, 0.2], 50.0), [0.025, 0.1, 0.2]);
        assert_ne!(scale.ticks(&[0.1, 0.101, 0.2], 50.0), [0.1, 0.101, 0.2]);
    }

    #[test]
    fn values_that_cannot_be_shown_have_no_place() {
        let log = Scale::new(Spacing::Log, (1.0, 100.0), (0.0, 100.0));
        assert_eq!([log.place(10.0), log.place(0.0), log.place(-1.0)], [Some(50.0), None, None]);
        assert_eq!(Scale::new(Spacing::Linear, (5.0, 5.0), (0.0, 100.0)).place(5.0), Some(50.0));
    }

    #[test]
    fn values_out_of_range_are_not_drawn_at_the_border() {
        let scale = Scale::new(Spacing::Linear, (0.8, 1.0), (100.0, 0.0));
        assert_eq!(scale.place(0.7).map(f64::round), Some(150.0));
        assert_eq!(scale.place(f64::MAX), Some(-1_900.0));
    }

    #[test]
    fn axes_end_on_a_tick() {
        assert_eq!([0.97, 97.0, 100.0, 1.2e9, 0.0].map(round_up), [1.0, 100.0, 100.0, 1.5e9, 0.0]);
    }
}
