use std::collections::BTreeSet;

use farhaul_units::{SeqNo, SeqRange};
use proptest::prelude::*;

use super::*;

#[test]
fn the_first_number_is_found_across_the_wrap() {
    let base = SeqNo::MAX.minus(3);
    let mut set = SeqSet::new(base);
    assert_eq!(set.insert_range(SeqRange::new(SeqNo::MAX, SeqNo::new(1))), 3);
    assert_eq!(set.first(), Some(SeqNo::MAX));
    set.advance(SeqNo::new(1));
    assert_eq!((set.first(), set.len()), (Some(SeqNo::new(1)), 1));
}

#[test]
fn a_number_further_than_any_window_is_ignored() {
    let mut set = SeqSet::new(SeqNo::new(0));
    assert!(!set.insert(SeqNo::new(MAX_CAPACITY)));
    assert_eq!(set.memory(), 0);
}

#[test]
fn numbers_before_the_window_are_ignored() {
    let mut set = SeqSet::new(SeqNo::new(100));
    assert!(!set.insert(SeqNo::new(99)));
    assert_eq!(set.insert_range(SeqRange::new(SeqNo::new(90), SeqNo::new(101))), 2);
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u32, u32),
    Remove(u32, u32),
    Advance(u32),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        (0u32..3000, 1u32..200).prop_map(|(at, n)| Op::Insert(at, n)),
        (0u32..3000, 1u32..200).prop_map(|(at, n)| Op::Remove(at, n)),
        (0u32..300).prop_map(Op::Advance),
    ];
    proptest::collection::vec(op, 1..60)
}

proptest! {
    #[test]
    fn behaves_like_a_plain_set(start in 0u32..=0x7FFF_FFFF, near_wrap: bool, ops in ops()) {
        let origin = SeqNo::new(if near_wrap { 0x7FFF_FFFF - start % 2000 } else { start });
        let mut set = SeqSet::new(origin);
        // The model holds offsets from the origin.
        let (mut model, mut base) = (BTreeSet::new(), 0u32);
        for op in ops {
            match op {
                Op::Insert(at, n) => {
                    let (first, last) = (base + at, base + at + n - 1);
                    let fresh = (first..=last).filter(|&i| model.insert(i)).count();
                    let range = SeqRange::new(origin.plus(first), origin.plus(last));
                    prop_assert_eq!(set.insert_range(range) as usize, fresh);
                }
                Op::Remove(at, n) => {
                    let (first, last) = (base + at, base + at + n - 1);
                    let gone = (first..=last).filter(|i| model.remove(i)).count();
                    let range = SeqRange::new(origin.plus(first), origin.plus(last));
                    prop_assert_eq!(set.remove_range(range) as usize, gone);
                }
                Op::Advance(n) => {
                    base += n;
                    model.retain(|&i| i >= base);
                    set.advance(origin.plus(base));
                }
            }
            prop_assert_eq!(set.len() as usize, model.len());
            prop_assert_eq!(set.first(), model.first().map(|&i| origin.plus(i)));
            let end = base + 3300;
            let absent = (base..end).find(|i| !model.contains(i)).unwrap_or(end);
            prop_assert_eq!(set.next_absent(origin.plus(base), origin.plus(end)), origin.plus(absent));
            let missing: usize = set
                .absent_runs(origin.plus(base), origin.plus(end))
                .map(|run| run.len() as usize)
                .sum();
            prop_assert_eq!(missing, (end - base) as usize - model.len());
        }
    }
}
