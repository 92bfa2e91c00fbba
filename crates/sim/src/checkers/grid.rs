//! The instants that a placed schedule names, found by walking.

use evenbeat_core::job::Job;
use evenbeat_core::schedule::{OnceAt, Placement, Schedule};
use evenbeat_core::time::{Duration, Timestamp};

/// A walk stops after this many instants: no simulated life has that many.
const WALK_MAX: usize = 1_000_000;

/// The occurrences of a job under one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    kind: Kind,
    /// Nothing is due before it.
    from: Timestamp,
    /// Nothing is due at it or later.
    until: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// At `first`, and at a fixed distance from there on.
    Steps { first: Timestamp, step: Duration },
    /// At one instant.
    Single(Timestamp),
    /// One after the other, each made when the one before it is over.
    Minted,
    /// Never.
    Nothing,
    /// This checker cannot read the expression.
    Unreadable(String),
}

impl Grid {
    /// The occurrences of a job that is placed so.
    pub(super) fn of(job: &Job, placement: &Placement) -> Grid {
        let anchor_at = placement.anchor_at;
        let kind = match &job.schedule {
            Schedule::Every { interval, .. } => Kind::Steps { first: anchor_at, step: *interval },
            Schedule::Fresh { .. } => Kind::Minted,
            Schedule::Once { at: OnceAt::Now, .. } => Kind::Single(anchor_at),
            Schedule::Once { at: OnceAt::Instant(at), .. } => Kind::Single(*at),
            Schedule::Manual => Kind::Nothing,
            Schedule::Cron(cron) => match minutes_of(cron.expr().as_str()) {
                Some(n_minutes) if job.zone.name() == "UTC" => {
                    Kind::Steps { first: Timestamp::UNIX_EPOCH, step: Duration::from_mins(n_minutes) }
                }
                _ => Kind::Unreadable(cron.expr().as_str().to_owned()),
            },
        };
        let starts_at = job.bounds.starts_at.unwrap_or(Timestamp::MIN);
        let from = match kind {
            // A `once` job is due at its instant, whenever it was set down.
            Kind::Single(_) => starts_at,
            _ => starts_at.max(anchor_at),
        };
        Grid { kind, from, until: job.bounds.ends_at.unwrap_or(Timestamp::MAX) }
    }

    /// The expression, if this checker cannot read it.
    pub(super) fn unreadable(&self) -> Option<&str> {
        match &self.kind {
            Kind::Unreadable(text) => Some(text),
            _ => None,
        }
    }

    /// Whether each occurrence is made when the one before it is over.
    pub(super) fn is_minted(&self) -> bool {
        self.kind == Kind::Minted
    }

    /// Whether an instant is one of them. What is minted may be due at any time from the first one on.
    pub(super) fn has(&self, at: Timestamp) -> bool {
        let is_inside = self.from <= at && at < self.until;
        is_inside
            && match &self.kind {
                Kind::Steps { first, step } => (at - *first).as_millis() % step.as_millis() == 0,
                Kind::Single(single) => *single == at,
                Kind::Minted | Kind::Unreadable(_) => true,
                Kind::Nothing => false,
            }
    }

    /// Those in `[from, to]`, in order; none of what is minted.
    pub(super) fn walk(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let (from, to) = (from.max(self.from), to.min(self.until - Duration::from_millis(1)));
        match &self.kind {
            Kind::Steps { first, step } => {
                let to_next = (*first - from).as_millis().rem_euclid(step.as_millis());
                let mut at = from + Duration::from_millis(to_next);
                let mut found = Vec::new();
                while at <= to && found.len() < WALK_MAX {
                    found.push(at);
                    at = at + *step;
                }
                found
            }
            Kind::Single(single) if from <= *single && *single <= to => vec![*single],
            _ => Vec::new(),
        }
    }

    /// The first after an instant; none of what is minted.
    pub(super) fn first_after(&self, at: Timestamp) -> Option<Timestamp> {
        let just_after = at + Duration::from_millis(1);
        let far = match &self.kind {
            Kind::Steps { step, .. } => just_after.max(self.from) + *step,
            _ => Timestamp::MAX,
        };
        self.walk(just_after, far).first().copied()
    }

    /// About how far apart two of them are.
    pub(super) fn period(job: &Job) -> Duration {
        match &job.schedule {
            Schedule::Every { interval, .. } => *interval,
            Schedule::Fresh { max_age, .. } => *max_age,
            Schedule::Cron(cron) => Duration::from_mins(minutes_of(cron.expr().as_str()).unwrap_or(60)),
            Schedule::Once { finish_within, .. } => finish_within.unwrap_or(Duration::from_hours(1)),
            Schedule::Manual => Duration::ZERO,
        }
    }
}

/// Every how many minutes a cron expression of a simulated fleet is due: `* * * * *`, `*/5 * * * *`.
fn minutes_of(expression: &str) -> Option<i64> {
    let mut fields = expression.split_whitespace();
    let minute = fields.next()?;
    let rest: Vec<&str> = fields.collect();
    if rest != ["*"; 4] {
        return None;
    }
    let n_minutes: i64 = match minute {
        "*" => 1,
        _ => minute.strip_prefix("*/")?.parse().ok()?,
    };
    // Only then are the minutes of one hour and those of the next equally far apart.
    (0 < n_minutes && 60 % n_minutes == 0).then_some(n_minutes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checkers::fact_builder::{cron, every, fresh, instant};

    #[track_caller]
    fn check(job: &Job, anchor: i64, from: i64, to: i64, expected: &[i64]) {
        let grid = Grid::of(job, &Placement::at(instant(anchor), instant(anchor)));
        let found = grid.walk(instant(from), instant(to));
        let expected: Vec<Timestamp> = expected.iter().map(|at| instant(*at)).collect();
        assert_eq!(found, expected);
        for at in from..=to {
            assert_eq!(grid.has(instant(at)), expected.contains(&instant(at)), "at {at}");
        }
        let first_after = grid.first_after(instant(from - 1)).filter(|at| *at <= instant(to));
        assert_eq!(first_after, expected.first().copied());
    }

    #[test]
    fn an_interval_counts_from_its_anchor_and_nothing_is_due_before() {
        check(&every("a", 1_000), 500, 0, 3_000, &[500, 1_500, 2_500]);
        check(&every("a", 1_000), 500, 1_500, 2_500, &[1_500, 2_500]);
        check(&every("a", 1_000), 500, 1_501, 2_499, &[]);
        let mut job = every("a", 1_000);
        job.bounds.starts_at = Some(instant(1_500));
        job.bounds.ends_at = Some(instant(3_500));
        check(&job, 500, 0, 9_000, &[1_500, 2_500]);
    }

    #[test]
    fn cron_goes_by_whole_minutes_of_the_hour() {
        // The tale begins at 10:00 sharp.
        check(&cron("a", "* * * * *"), 0, 0, 120_000, &[0, 60_000, 120_000]);
        check(&cron("a", "*/5 * * * *"), 1, 0, 300_000, &[300_000]);
        let grid = |text: &str| Grid::of(&cron("a", text), &Placement::at(instant(0), instant(0)));
        assert_eq!(grid("*/7 * * * *").unreadable(), Some("*/7 * * * *"));
        assert_eq!(grid("0 4 * * *").unreadable(), Some("0 4 * * *"));
        assert_eq!(grid("*/2 * * * *").unreadable(), None);
    }

    #[test]
    fn what_is_minted_has_no_instants_of_its_own() {
        let grid = Grid::of(&fresh("a", 60_000, 1_000), &Placement::at(instant(500), instant(0)));
        assert!(grid.is_minted());
        assert!(!grid.has(instant(499)));
        assert!(grid.has(instant(501)));
        assert_eq!(grid.walk(instant(0), instant(9_999)), []);
    }
}
