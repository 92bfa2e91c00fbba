//! Random fleets over random windows, against asking every job and sorting the answers.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

use super::fleet::{Expected, any_fleet};
use super::{Agenda, build, is_dense};
use crate::agenda::Occurrence;
use crate::time::{Duration, Timestamp};

const N_FLEETS: u32 = 300;
/// Both layouts must have been seen so often.
const N_LAYOUT_MIN: u32 = 60;

fn as_expected(occurrence: Occurrence<'_>) -> Expected<'_> {
    (occurrence.at, occurrence.job.as_str(), occurrence.is_estimate)
}

/// What is asked: two instants as shares of the window, a bit more than all of it.
fn any_question() -> impl Strategy<Value = (i64, i64, i64)> {
    (-50_i64..1_050, -50_i64..1_050, -2_i64..3)
}

/// Holds an agenda against everything that was expected of it, in questions of many sizes.
fn check(agenda: &Agenda, expected: &[Expected], questions: &[(i64, i64, i64)]) -> Result<(), TestCaseError> {
    let found: Vec<Expected> = agenda.all().iter().map(as_expected).collect();
    prop_assert_eq!(&found, expected);
    prop_assert_eq!(agenda.len(), expected.len());
    prop_assert_eq!(agenda.is_empty(), expected.is_empty());
    prop_assert!(agenda.bytes() <= 8 * agenda.len() + size_of::<Agenda>());

    let window = agenda.window();
    let length_ms = window.length().as_millis();
    for (start, end, nudge_ms) in questions {
        let at_share = |share: i64| window.start() + Duration::from_millis(length_ms * share / 1_000);
        // Also exactly at an occurrence, and a millisecond or two beside it.
        let nearest = |at: Timestamp| expected.iter().find(|it| at <= it.0).map_or(at, |it| it.0);
        let nudged = |at: Timestamp| at + Duration::from_millis(*nudge_ms);
        let (start, end) = (at_share(*start), at_share(*end));
        for (start, end) in
            [(start, end), (nearest(start), end), (nudged(nearest(start)), nudged(nearest(end)))]
        {
            let in_question: Vec<Expected> =
                expected.iter().copied().filter(|it| start <= it.0 && it.0 < end).collect();
            let slice = agenda.between(start, end);
            prop_assert_eq!(slice.iter().map(as_expected).collect::<Vec<_>>(), &*in_question);
            prop_assert_eq!(slice.len(), in_question.len());
            prop_assert_eq!(slice.first().map(as_expected), in_question.first().copied());
            prop_assert_eq!(slice.last().map(as_expected), in_question.last().copied());
            let peeked = agenda.peek(start).map(as_expected);
            prop_assert_eq!(peeked, expected.iter().copied().find(|it| start <= it.0));
        }
    }
    Ok(())
}

#[test]
fn an_agenda_is_what_every_job_says_sorted() {
    let (n_dense, n_sparse) = (Cell::new(0), Cell::new(0));
    let count = |of: &Cell<u32>| of.set(of.get() + 1);
    let mut runner = TestRunner::new(Config { cases: N_FLEETS, ..Config::default() });
    let cases = (any_fleet(), prop::collection::vec(any_question(), 12));
    let outcome = runner.run(&cases, |(fleet, questions)| {
        let agenda = build(&fleet.sources(), fleet.window);
        count(if is_dense(&agenda) { &n_dense } else { &n_sparse });
        check(&agenda, &fleet.occurrences(), &questions)
    });
    outcome.unwrap_or_else(|error| panic!("{error}\n{runner}"));
    let (n_dense, n_sparse) = (n_dense.get(), n_sparse.get());
    assert!(N_LAYOUT_MIN < n_dense, "{n_dense} dense");
    assert!(N_LAYOUT_MIN < n_sparse, "{n_sparse} sparse");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_order_of_sources_does_not_matter(
        (fleet, shuffled) in any_fleet().prop_flat_map(|fleet| {
            let jobs = Just(fleet.jobs.clone()).prop_shuffle();
            (Just(fleet), jobs)
        }),
    ) {
        let agenda = build(&fleet.sources(), fleet.window);
        let other = super::fleet::Fleet { jobs: shuffled, window: fleet.window };
        let again = agenda.rebuild(&other.sources(), other.window).unwrap();
        prop_assert!(again.all().iter().eq(agenda.all().iter()));
    }
}
