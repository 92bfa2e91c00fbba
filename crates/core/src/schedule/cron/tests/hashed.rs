//! `H`: what may be chosen, and what a choice means.

use proptest::prelude::*;

use super::super::{CronExpr, CronField};
use super::plan;

/// The terms as `field first-last/step choices`.
#[track_caller]
fn check_terms(text: &str, expected: &[&str]) {
    let expr = CronExpr::parse(text).unwrap();
    let terms: Vec<String> = expr
        .hashed_terms()
        .iter()
        .map(|it| {
            let step = it.step.map(|step| format!("/{step}")).unwrap_or_default();
            format!("{} {}-{}{step} {}", it.field, it.first, it.last, it.n_choices())
        })
        .collect();
    assert_eq!(terms, expected, "for {text}");
}

#[test]
fn each_form_in_each_field() {
    check_terms("0 0 * * *", &[]);
    check_terms("H H * * *", &["minute 0-59 60", "hour 0-23 24"]);
    check_terms(
        "H 0 0 H H H",
        &["second 0-59 60", "day-of-month 1-28 28", "month 1-12 12", "day-of-week 0-6 7"],
    );
    check_terms("H/15 * * * *", &["minute 0-59/15 15"]);
    check_terms("h(0-29) * * * *", &["minute 0-29 30"]);
    check_terms("H(0-29)/10 * * * *", &["minute 0-29/10 10"]);
    check_terms("H(0-4)/10 * * * *", &["minute 0-4/10 5"]);
    check_terms("0 0 * * H(MON-FRI)", &["day-of-week 1-5 5"]);
    check_terms("0 0 * * H(1-7)", &["day-of-week 1-7 7"]);
    check_terms("0 0 * * H(0-7)", &["day-of-week 0-6 7"]);
    check_terms("0 0 H(1-31) * *", &["day-of-month 1-31 31"]);
    check_terms("5,H(10-19),H(30-39) * * * *", &["minute 10-19 10", "minute 30-39 10"]);
}

#[track_caller]
fn check_resolved(text: &str, choices: &[u8], expected: &str) {
    let expr = CronExpr::parse(text).unwrap();
    assert_eq!(expr.plan(), None);
    assert_eq!(expr.resolved_text(choices).as_deref(), Some(expected));
    assert_eq!(expr.resolve(choices), Some(plan(expected)));
}

#[test]
fn a_choice_is_plain_cron() {
    check_resolved("H H * * *", &[17, 3], "17 3 * * *");
    check_resolved("  H   H/6  * * *", &[0, 5], "0 5-23/6 * * *");
    check_resolved("H/15 * * * *", &[7], "7-59/15 * * * *");
    check_resolved("H(0-29)/10 * * * *", &[9], "9-29/10 * * * *");
    check_resolved("H(30-40) * * * *", &[10], "40 * * * *");
    check_resolved("0 0 H * *", &[27], "0 0 28 * *");
    check_resolved("0 0 * H/3 *", &[2], "0 0 * 3-12/3 *");
    check_resolved("0 0 * * H(1-7)", &[6], "0 0 * * 7");
    check_resolved("5,H(10-19),50 H * * MON,H", &[4, 2, 6], "5,14,50 2 * * MON,6");
}

#[test]
fn choices_that_do_not_fit_are_refused() {
    let expr = CronExpr::parse("H H/6 * * *").unwrap();
    for choices in [&[][..], &[1], &[1, 2, 3], &[60, 0], &[0, 6]] {
        assert_eq!(expr.resolve(choices), None, "{choices:?}");
        assert_eq!(expr.resolved_text(choices), None, "{choices:?}");
    }
    let fixed = CronExpr::parse("0 6 * * *").unwrap();
    assert_eq!(fixed.resolve(&[]), fixed.plan());
    assert_eq!(fixed.resolve(&[0]), None);
    assert_eq!(fixed.resolved_text(&[]).as_deref(), Some("0 6 * * *"));
}

#[test]
fn a_seed_spreads_a_fleet_over_the_hour() {
    let expr = CronExpr::parse("H * * * *").unwrap();
    let mut n_at_minute = [0_u32; 60];
    for seed in 0..6_000 {
        let (_, choices) = expr.provisional(seed);
        n_at_minute[usize::from(choices[0])] += 1;
    }
    // A hundred each on average; a fair hash stays well inside of half and double.
    assert!(n_at_minute.iter().all(|n| (50..200).contains(n)), "{n_at_minute:?}");
}

proptest! {
    #[test]
    fn a_seed_always_gives_the_same_fitting_choices(
        seed: u64,
        minute in "H(/[1-9])?|H\\((1-9|20-20|0-59)\\)(/([1-9]|[1-5][0-9]))?|5,H",
        hour in "H(/[1-9])?|3",
    ) {
        let expr = CronExpr::parse(&format!("{minute} {hour} H * H")).unwrap();
        let (plan_chosen, choices) = expr.provisional(seed);
        prop_assert_eq!(expr.provisional(seed), (plan_chosen, choices.clone()));
        prop_assert_eq!(expr.resolve(&choices), Some(plan_chosen));
        let text = expr.resolved_text(&choices).unwrap();
        prop_assert!(!text.contains('H'));
        prop_assert_eq!(plan(&text), plan_chosen);
        prop_assert!(expr.hashed_terms().iter().all(|it| it.field != CronField::Second));
    }
}
