//! One walk, four questions: they must give one answer. And no text may do harm.

use proptest::prelude::*;

use super::super::{CronExpr, CronRule, CronText};
use super::spec::{Dialect, any_spec};
use super::{ODD_ZONES, all_in, plan};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

/// Any millisecond from 1880 to 2300, and often one near a change of Europe's clocks.
fn any_instant() -> impl Strategy<Value = Timestamp> {
    let year_ms = 31_556_952_000_i64;
    prop_oneof![
        2 => (-90 * year_ms..330 * year_ms).prop_map(Timestamp::from_millis),
        1 => (-200_000_000_i64..200_000_000).prop_map(|ms| Timestamp::from_millis(1_774_746_000_000 + ms)),
        1 => (-200_000_000_i64..200_000_000).prop_map(|ms| Timestamp::from_millis(1_792_890_000_000 + ms)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn all_questions_get_one_answer(
        spec in any_spec(Dialect::Ours),
        zone in proptest::sample::select(&ODD_ZONES[..]),
        start in any_instant(),
        length_ms in 0..5_000_000_000_i64,
        cut in 0.0..1.0,
    ) {
        let plan = plan(&spec.to_string());
        let zone = Zone::named(zone).unwrap();
        // Some thousands of occurrences are enough, also of those of every second.
        let length_ms = if plan.n_times() < 100 { length_ms } else { length_ms / 50 };
        let window = TimeWindow::starting_at(start, Duration::from_millis(length_ms));
        let all = all_in(&plan, &zone, window);

        prop_assert!(all.iter().all(|it| window.contains(*it)));
        prop_assert!(all.is_sorted_by(|a, b| a < b), "ascending, none twice");
        prop_assert_eq!(plan.count_in(&zone, window), u64::try_from(all.len()).unwrap());
        for (idx, it) in all.iter().enumerate().step_by(all.len() / 20 + 1) {
            prop_assert_eq!(plan.nth_in(&zone, window, u64::try_from(idx).unwrap()), Some(*it));
        }
        prop_assert_eq!(plan.nth_in(&zone, window, u64::try_from(all.len()).unwrap()), None);

        let just_before = start - Duration::from_millis(1);
        let walked: Vec<Timestamp> =
            std::iter::successors(Some(just_before), |it| plan.next_after(&zone, *it))
                .skip(1)
                .take_while(|it| *it < window.end())
                .take(200)
                .collect();
        prop_assert_eq!(&walked[..], &all[..all.len().min(200)]);
        if let Some(last) = all.last() {
            prop_assert!(plan.next_after(&zone, *last).is_none_or(|it| window.end() <= it));
        }

        #[expect(clippy::cast_possible_truncation, reason = "any cut will do")]
        let middle = start + Duration::from_millis((Duration::from_millis(length_ms).as_millis_f64() * cut) as i64);
        let mut halves = all_in(&plan, &zone, TimeWindow::new(start, middle));
        halves.extend(all_in(&plan, &zone, TimeWindow::new(middle, window.end())));
        prop_assert_eq!(halves, all, "a window is the sum of its parts");
    }

    #[test]
    fn next_is_strictly_later_and_an_occurrence(
        spec in any_spec(Dialect::Ours),
        zone in proptest::sample::select(&ODD_ZONES[..]),
        after in any_instant(),
    ) {
        let plan = plan(&spec.to_string());
        let zone = Zone::named(zone).unwrap();
        if let Some(next) = plan.next_after(&zone, after) {
            prop_assert!(after < next);
            prop_assert_eq!(next.as_millis() % 1000, 0);
            let between = TimeWindow::new(after + Duration::from_millis(1), next + Duration::from_millis(1));
            prop_assert_eq!(plan.count_in(&zone, between), 1);
            prop_assert_eq!(plan.nth_in(&zone, between, 0), Some(next));
        } else {
            let rest = TimeWindow::starting_at(after, Duration::LONGEST);
            prop_assert_eq!(plan.count_in(&zone, rest), 0);
        }
    }

    #[test]
    fn printing_and_parsing_are_inverse(spec in any_spec(Dialect::Ours)) {
        let expr = CronExpr::parse(&spec.to_string()).unwrap();
        prop_assert_eq!(CronExpr::parse(expr.as_str()), Ok(expr));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn any_text_is_answered(
        text in "[0-9*/,LWH#?()@A-Za-zé \t=-]{0,40}|([0-9*HLW?]{1,2}([-/,#(][0-9LWH]{0,2}\\)?){0,2} ){4,6}",
    ) {
        match text.parse::<CronText>() {
            Ok(CronText { rule: CronRule::Cron(expr), .. }) => {
                prop_assert_eq!(CronExpr::parse(expr.as_str()), Ok(expr.clone()));
                let (plan, choices) = expr.provisional(7);
                prop_assert_eq!(choices.len(), expr.hashed_terms().len());
                let resolved = CronExpr::parse(&expr.resolved_text(&choices).unwrap()).unwrap();
                prop_assert_eq!(resolved.plan(), Some(plan));
                let after = Timestamp::UNIX_EPOCH;
                prop_assert!(plan.next_after(&Zone::utc(), after).is_none_or(|it| after < it));
            }
            Ok(CronText { rule: CronRule::Every(length), .. }) => {
                prop_assert!(Duration::from_secs(1) <= length);
            }
            Err(error) => {
                prop_assert!(text.get(error.span()).is_some(), "{:?} is no part of the text", error.span());
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
