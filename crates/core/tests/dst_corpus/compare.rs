//! One case, asked in every way that the plan of an expression can be asked.

use evenbeat_core::schedule::cron::CronPlan;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;

use crate::oracle::Case;

const MILLISECOND: Duration = Duration::from_millis(1);

/// How the plan's answers differ from what is expected, if they do.
pub(crate) fn difference(zone: &Zone, plan: &CronPlan, case: &Case<'_>) -> Option<String> {
    let expected = &case.expected;
    let chained = chain(zone, plan, case);
    if chained != *expected {
        return Some(describe("next_after", expected, &chained));
    }
    // The halves meet at the change: an occurrence at that very instant belongs to the second.
    for (start, end) in [(case.start, case.end), (case.start, case.change), (case.change, case.end)] {
        let window = TimeWindow::new(start, end);
        let inside: Vec<Timestamp> = expected.iter().copied().filter(|at| window.contains(*at)).collect();
        let mut expanded = Vec::new();
        plan.for_each_in(zone, window, |at| expanded.push(at));
        if expanded != inside {
            return Some(describe("for_each_in", &inside, &expanded));
        }
        let count = plan.count_in(zone, window);
        if usize::try_from(count) != Ok(inside.len()) {
            return Some(format!("count_in of {start} to {end}: expected {}, got {count}", inside.len()));
        }
    }
    nth_difference(zone, plan, case).or_else(|| probe_difference(zone, plan, case))
}

/// All occurrences of the window, each asked from the one before.
fn chain(zone: &Zone, plan: &CronPlan, case: &Case<'_>) -> Vec<Timestamp> {
    let mut occurrences = Vec::new();
    let mut after = case.start - MILLISECOND;
    // One more than expected is enough to show a difference, also if time stands still.
    while occurrences.len() <= case.expected.len() {
        match plan.next_after(zone, after) {
            Some(at) if at < case.end => occurrences.push(at),
            _ => break,
        }
        after = occurrences.last().copied().unwrap_or(after);
    }
    occurrences
}

fn nth_difference(zone: &Zone, plan: &CronPlan, case: &Case<'_>) -> Option<String> {
    let window = TimeWindow::new(case.start, case.end);
    let n_expected = case.expected.len();
    [0, n_expected / 2, n_expected.saturating_sub(1), n_expected].into_iter().find_map(|n| {
        let expected = case.expected.get(n).copied();
        let got = plan.nth_in(zone, window, u64::try_from(n).unwrap_or(u64::MAX));
        (got != expected).then(|| format!("nth_in {n}: expected {expected:?}, got {got:?}"))
    })
}

/// From instants that are not occurrences: just before the change, at it, after it, within a minute.
fn probe_difference(zone: &Zone, plan: &CronPlan, case: &Case<'_>) -> Option<String> {
    let probes = [
        case.change - MILLISECOND,
        case.change,
        case.change + MILLISECOND,
        case.change + Duration::from_millis(59_999),
        case.change - Duration::from_millis(1_800_001),
    ];
    probes.into_iter().find_map(|after| {
        let expected = case.expected.iter().copied().find(|at| after < *at);
        let got = plan.next_after(zone, after).filter(|at| *at < case.end);
        (got != expected).then(|| format!("next_after {after}: expected {expected:?}, got {got:?}"))
    })
}

/// The first place where two rows part, with a little of what follows there.
fn describe(what: &str, expected: &[Timestamp], got: &[Timestamp]) -> String {
    const SHOWN_MAX: usize = 4;
    let n_alike = expected.iter().zip(got).take_while(|(one, other)| one == other).count();
    let tail = |row: &[Timestamp]| row.iter().skip(n_alike).take(SHOWN_MAX).copied().collect::<Vec<_>>();
    format!("{what}: after {n_alike} alike, expected {:?}, got {:?}", tail(expected), tail(got))
}
