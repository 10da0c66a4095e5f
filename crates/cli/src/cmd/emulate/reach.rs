//! Whether this machine can be such a path, before anything depends on it.

use farhaul_netem::PathSpec;
use farhaul_units::Rate;

use crate::exit::Fault;
use crate::fault;

/// Any machine that runs this carries so much.
const SLOW: Rate = Rate::from_megabits_per_second(200);
/// The usual size of large packets on Ethernet.
pub(super) const JUMBO: u32 = 9_000;

/// What this machine carries in packets of `mtu` bytes; `None` if the path is so slow that it does not matter.
pub(crate) fn carried(paths: [&PathSpec; 2], mtu: u32) -> Result<Option<Rate>, Fault> {
    let asks = fastest(paths).is_some_and(|rate| rate > SLOW);
    asks.then(|| farhaul_emu::capacity(mtu)).transpose().map_err(|error| fault::of_emulation(&error))
}

/// What to say about a path that is more than this machine carries; `larger` is the option for larger packets, where that could help.
pub(crate) fn too_fast(paths: [&PathSpec; 2], carries: Rate, mtu: u32, larger: Option<&str>) -> Option<String> {
    let asked = fastest(paths).filter(|asked| *asked > carries)?;
    let larger = larger.map_or_else(String::new, |option| format!(" or larger packets ({option} {JUMBO})"));
    Some(format!(
        "this machine carries about {carries} in packets of {mtu} bytes, not {asked}: take a lower --rate{larger}, and look at the verdict at the end"
    ))
}

fn fastest(paths: [&PathSpec; 2]) -> Option<Rate> {
    paths.into_iter().filter_map(PathSpec::nominal_rate).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_is_too_fast_for_the_machine_is_named_with_what_it_carries() {
        let path = |megabits| PathSpec { rate: Some(Rate::from_megabits_per_second(megabits)), ..PathSpec::default() };
        let carries = Rate::from_megabits_per_second(1_900);
        let too_fast = |up, down, larger| too_fast([&path(up), &path(down)], carries, 1_500, larger);
        assert_eq!(too_fast(1_000, 1_900, None), None);
        let warning = too_fast(10, 5_000, Some("--mtu")).unwrap();
        assert!(warning.contains("1.90 Gbit/s in packets of 1500 bytes, not 5.00 Gbit/s"), "{warning}");
        assert!(warning.contains("--mtu 9000"), "{warning}");
        assert!(!too_fast(10, 5_000, None).unwrap().contains("larger"));
        let unlimited = PathSpec::default();
        assert_eq!(super::too_fast([&unlimited, &unlimited], carries, 1_500, None), None);
    }
}
