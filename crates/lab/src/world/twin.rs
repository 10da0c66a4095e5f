//! Names of curves that were run in both worlds: the emulated curve is the twin of the simulated one.

/// Suffix of an emulated curve's name. A scenario cannot name a curve so by chance.
const EMULATED: &str = " \u{2192} emulated";

/// The name of the emulated twin of a simulated curve.
pub(crate) fn emulated_twin(curve: &str) -> String {
    format!("{curve}{EMULATED}")
}

/// The name of the simulated twin; `None` if the curve is no emulated twin.
pub(crate) fn simulated_twin(curve: &str) -> Option<&str> {
    curve.strip_suffix(EMULATED)
}
