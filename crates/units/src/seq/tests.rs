//! Serial numbers at their wraps, and against integers that never wrap as a model.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

#[test]
fn order_holds_across_the_wrap() {
    let last = SeqNo::MAX;
    assert_eq!(last.next(), SeqNo::new(0));
    assert!(last.is_before(SeqNo::new(0)) && SeqNo::new(5).is_after(last));
    assert_eq!(SeqNo::new(5).distance_from(last), 6);
    assert_eq!(last.distance_from(SeqNo::new(5)), -6);
    assert_eq!(SeqRange::new(last.minus(1), SeqNo::new(1)).len(), 4);
}

#[test]
fn the_top_bit_is_never_part_of_a_number() {
    assert_eq!(SeqNo::new(0x8000_0003), SeqNo::new(3));
    assert_eq!(SeqNo::new(0).minus(1), SeqNo::MAX);
}

#[test]
fn a_reversed_range_is_empty() {
    assert!(SeqRange::new(SeqNo::new(9), SeqNo::new(3)).is_empty());
}

#[test]
fn clipping_keeps_the_common_part() {
    let window = SeqRange::new(SeqNo::MAX.minus(9), SeqNo::new(10));
    let report = SeqRange::new(SeqNo::MAX.minus(100), SeqNo::new(2));
    assert_eq!(report.clip(window), Some(SeqRange::new(SeqNo::MAX.minus(9), SeqNo::new(2))));
    assert_eq!(SeqRange::new(SeqNo::new(11), SeqNo::new(20)).clip(window), None);
    let far = SeqNo::new(1 << 30).minus(5);
    assert_eq!(SeqRange::new(far, far.plus(1 << 29)).clip(SeqRange::new(SeqNo::new(0), SeqNo::new(11))), None);
}

#[test]
fn message_numbers_skip_zero_and_the_largest() {
    assert_eq!(MsgNo::new(0x1FFF_FFFE).next(), MsgNo::FIRST);
    assert_eq!(MsgNo::FIRST.next(), MsgNo::new(2));
}

#[test]
fn acknowledgement_numbers_wrap_to_zero() {
    assert_eq!(AckNo::new(0x7FFF_FFFF).next(), AckNo::new(0));
}

/// Half the circle. The largest distance with a direction is one less.
const HALF: i64 = 1 << 30;

fn seq() -> impl Strategy<Value = SeqNo> {
    prop_oneof![any::<u32>(), 0x7FFF_FF00..=0x7FFF_FFFF_u32, 0..256_u32].prop_map(SeqNo::new)
}

/// Steps of less than half the circle, often near its ends.
fn step() -> impl Strategy<Value = i64> {
    prop_oneof![-HALF + 1..HALF, -300..300_i64, Just(HALF - 1), Just(1 - HALF)]
}

/// `base` plus a step, in integers that do not wrap until the end.
fn walk(base: SeqNo, step: i64) -> SeqNo {
    let wrapped = (i64::from(base.value()) + step).rem_euclid(2 * HALF);
    SeqNo::new(u32::try_from(wrapped).expect("less than 2^31"))
}

/// The offset from `a` to `b` by the rule of libudt 4.11, whose threshold is 2^30 - 1.
fn libudt_offset(a: SeqNo, b: SeqNo) -> i64 {
    let (a, b) = (i64::from(a.value()), i64::from(b.value()));
    if (a - b).abs() < HALF - 1 {
        b - a
    } else if a < b {
        b - a - 2 * HALF
    } else {
        b - a + 2 * HALF
    }
}

proptest! {
    #[test]
    fn distance_undoes_a_step(base in seq(), step in step()) {
        let there = walk(base, step);
        prop_assert_eq!(i64::from(there.distance_from(base)), step);
        prop_assert_eq!(i64::from(base.distance_from(there)), -step);
        prop_assert_eq!(there.is_after(base), step > 0);
        prop_assert_eq!(there.is_before(base), step < 0);
    }

    #[test]
    fn plus_and_minus_are_steps(base in seq(), step in 0..HALF) {
        let packets = u32::try_from(step).unwrap();
        prop_assert_eq!(base.plus(packets), walk(base, step));
        prop_assert_eq!(base.minus(packets), walk(base, -step));
        prop_assert_eq!(base.plus(packets).minus(packets), base);
    }

    #[test]
    fn distance_is_the_offset_of_libudt(base in seq(), step in step()) {
        prop_assume!(step.abs() < HALF - 1);
        let there = walk(base, step);
        prop_assert_eq!(i64::from(there.distance_from(base)), libudt_offset(base, there));
    }

    #[test]
    fn of_two_numbers_one_is_later_and_the_other_earlier(base in seq(), step in step()) {
        let there = walk(base, step);
        prop_assert_eq!(base.later(there), walk(base, step.max(0)));
        prop_assert_eq!(base.earlier(there), walk(base, step.min(0)));
    }

    #[test]
    fn the_order_does_not_depend_on_where_the_circle_begins(base in seq(), step in step(), turn: u32) {
        let there = walk(base, step);
        prop_assert_eq!(there.plus(turn).distance_from(base.plus(turn)), there.distance_from(base));
    }

    #[test]
    fn the_length_of_a_range_counts_both_ends(first in seq(), step in step()) {
        let range = SeqRange::new(first, walk(first, step));
        prop_assert_eq!(i64::from(range.len()), (step + 1).max(0));
        prop_assert_eq!(range.is_empty(), step < 0);
    }

    #[test]
    fn clipping_is_the_intersection_of_sets(base in seq(), ends in [-40..40_i64, -40..40, -40..40, -40..40]) {
        let [a, b, c, d] = ends;
        let range = |first, last| SeqRange::new(walk(base, first), walk(base, last));
        let model: BTreeSet<i64> = (a.max(c)..=b.min(d)).collect();
        let clipped = range(a, b).clip(range(c, d));
        let found: BTreeSet<i64> = clipped.map_or_else(BTreeSet::new, |range| {
            (0..range.len()).map(|step| i64::from(range.first.plus(step).distance_from(base))).collect()
        });
        prop_assert_eq!(found, model);
    }

    #[test]
    fn a_message_number_is_never_zero_nor_the_largest_after_another(value: u32) {
        let next = MsgNo::new(value).next().value();
        prop_assert!((1..MsgNo::MASK).contains(&next));
    }
}
