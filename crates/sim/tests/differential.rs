//! The comparison of stores compares: a store that lacks one of its rules differs from the reference.

use evenbeat_core::time::Timestamp;
use evenbeat_sim::differential::{compare, fail_each_call};
use evenbeat_sim::reference::{ReferenceStore, Weakness};

fn fresh() -> ReferenceStore {
    ReferenceStore::new(Timestamp::UNIX_EPOCH)
}

#[test]
fn a_store_is_like_itself() {
    for seed in 0..60 {
        compare(&mut fresh(), seed, 400).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn a_store_without_one_of_its_rules_is_told_apart() {
    let differs = |weakness: Weakness| {
        (0..200).any(|seed| compare(&mut fresh().weakened(weakness), seed, 400).is_err())
    };
    let unnoticed: Vec<Weakness> = Weakness::ALL.into_iter().filter(|it| !differs(*it)).collect();
    assert_eq!(unnoticed, []);
}

#[test]
fn whichever_call_fails_the_books_balance() {
    assert_eq!(fail_each_call(1, 150, fresh), Ok(300));
    let leaky = || fresh().weakened(Weakness::CountersNotReleased);
    assert!(
        (0..20).any(|seed| fail_each_call(seed, 60, leaky).is_err()),
        "and if they did not, it would show"
    );
}
