//! The example meets the requirements on congestion controllers.

use farhaul::cc::Spec;
use farhaul_sim::conformance::{Extent, check};

#[test]
fn aimd_meets_all_requirements() {
    farhaul_own_controller::aimd().register().expect("the name is free");
    let report = check(Extent::Short, |seed| "aimd".parse::<Spec>().expect("it is registered").build(seed));
    assert!(report.is_met(), "{report}");
}
