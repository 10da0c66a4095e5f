//! Check of this machine's capacity before it emulates a path.

use farhaul_emu::EmulateError;
use farhaul_netem::PathSpec;
use farhaul_units::Rate;

/// Rate that every supported machine carries without a check.
const SLOW: Rate = Rate::from_megabits_per_second(200);

/// Capacity of this machine in packets of `mtu` bytes; `None` if `asked` is too low to need a check.
pub(super) fn carried(asked: Option<Rate>, mtu: u32) -> Result<Option<Rate>, EmulateError> {
    asked.is_some_and(|rate| rate > SLOW).then(|| farhaul_emu::capacity(mtu)).transpose()
}

/// The warning, with `advice`, if `asked` exceeds the rate that this machine carries.
pub(super) fn too_fast(asked: Option<Rate>, carries: Rate, mtu: u32, advice: &str) -> Option<String> {
    let asked = asked.filter(|asked| *asked > carries)?;
    Some(format!("this machine carries about {carries} in packets of {mtu} bytes, not {asked}: {advice}"))
}

/// The rate of the faster direction; `None` if neither has one.
pub(super) fn faster(paths: [&PathSpec; 2]) -> Option<Rate> {
    paths.into_iter().filter_map(PathSpec::nominal_rate).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_fast_for_the_machine_is_named_with_what_it_carries() {
        let path = |megabits| PathSpec { rate: Some(Rate::from_megabits_per_second(megabits)), ..PathSpec::default() };
        let carries = Rate::from_megabits_per_second(1_900);
        let too_fast = |up, down| too_fast(faster([&path(up), &path(down)]), carries, 1_500, "take less");
        assert_eq!(too_fast(1_000, 1_900), None);
        assert_eq!(
            too_fast(10, 5_000).unwrap(),
            "this machine carries about 1.90 Gbit/s in packets of 1500 bytes, not 5.00 Gbit/s: take less"
        );
        let unlimited = PathSpec::default();
        assert_eq!(super::too_fast(faster([&unlimited, &unlimited]), carries, 1_500, "take less"), None);
    }
}
