//! Bounds of the sending period, and the order of periods.

use farhaul_units::SendPeriod;

/// The longest period, µs. One packet per second keeps acknowledgements coming, which recovery needs.
const MAX_PERIOD: f64 = 1e6;
/// The shortest period, µs: a billion packets per second, beyond any host and far from underflow.
const MIN_PERIOD: f64 = 1e-3;

/// A period of `micros` within the bounds of the law: paced, and short enough to keep acknowledgements coming.
pub(crate) fn bounded(micros: f64) -> SendPeriod {
    SendPeriod::from_micros(micros.clamp(MIN_PERIOD, MAX_PERIOD))
}

/// The longer of two periods: the lower rate.
pub(crate) fn longer(one: SendPeriod, other: SendPeriod) -> SendPeriod {
    if one < other { other } else { one }
}

/// The shorter of two periods: the higher rate.
pub(super) fn shorter(one: SendPeriod, other: SendPeriod) -> SendPeriod {
    if one < other { one } else { other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_never_zero_nor_so_long_that_nothing_is_acknowledged() {
        let micros = [0.0, 10.0, f64::INFINITY].map(|micros| bounded(micros).as_micros());
        assert_eq!(micros, [MIN_PERIOD, 10.0, MAX_PERIOD]);
    }

    #[test]
    fn the_longer_period_is_the_lower_rate() {
        let [short, long] = [10.0, 20.0].map(SendPeriod::from_micros);
        assert_eq!((longer(short, long), shorter(short, long)), (long, short));
        assert_eq!((longer(long, short), shorter(long, short)), (long, short));
    }
}
