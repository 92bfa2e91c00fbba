//! What becomes of occurrences that got no run in time (B10).
//!
//! Downtime, overload and back-off leave occurrences behind. Which of them still get a run and
//! which go on record is decided here, by arithmetic: a second-by-second job that was down for
//! thirty years costs no more than one that missed a single beat. The same rules hold at start-up
//! and at run time.

use crate::schedule::Rhythm;
use crate::time::{Duration, TimeWindow, Timestamp};

/// What to do about missed occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MissedPolicy {
    /// How many of them get a run.
    pub runs: MissedRuns,
    /// Occurrences older than this are never made up for.
    pub window: Duration,
    /// Most occurrences that are caught up on.
    pub most: u32,
    /// An occurrence is not missed while it is at most this late.
    pub grace: Duration,
}

/// How many missed occurrences get a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MissedRuns {
    /// One, now, for the latest; the rest go on record.
    #[default]
    Once,
    /// None; all go on record.
    Skip,
    /// All, oldest first, within the window and up to the maximum.
    All,
}

impl Default for MissedPolicy {
    fn default() -> MissedPolicy {
        MissedPolicy {
            runs: MissedRuns::default(),
            window: Duration::from_hours(24),
            most: 10,
            grace: Duration::from_mins(1),
        }
    }
}

/// Neighbouring occurrences that got no run of their own, as one row: a billion cost no more than
/// one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// The first of them.
    pub first: Timestamp,
    /// The last of them.
    pub last: Timestamp,
    /// How many, both included.
    pub count: u64,
}

/// What becomes of everything that is due: each occurrence is in exactly one of the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MissedPlan {
    /// These get a run each, oldest first. The last may be simply due, not missed at all.
    pub run: Vec<Timestamp>,
    /// These go on record. They all lie before the first that runs, or nothing runs.
    pub record: Option<RecordRange>,
    /// The first occurrence that is not due yet.
    pub next: Option<Timestamp>,
}

impl MissedPolicy {
    /// Decides about every occurrence from `pending`, the oldest that is still owed, up to `now`.
    pub fn plan(&self, rhythm: &Rhythm<'_>, pending: Timestamp, now: Timestamp) -> MissedPlan {
        let just_after = |at: Timestamp| at + Duration::from_millis(1);
        let due = TimeWindow::new(pending, just_after(now));
        let n_due = rhythm.count_in(due);
        let next = rhythm.next_after(now.max(pending - Duration::from_millis(1)));
        let n_run = match self.runs {
            MissedRuns::Once => n_due.min(1),
            MissedRuns::Skip => {
                let on_time = TimeWindow::new(pending.max(now - self.grace), just_after(now));
                rhythm.count_in(on_time).min(1)
            }
            MissedRuns::All => {
                let young = TimeWindow::new(pending.max(now - self.window), just_after(now));
                rhythm.count_in(young).min(u64::from(self.most))
            }
        };
        let n_recorded = n_due - n_run;
        let nth = |n| rhythm.nth_in(due, n);
        let record = n_recorded
            .checked_sub(1)
            .and_then(|n_last| Some(RecordRange { first: nth(0)?, last: nth(n_last)?, count: n_recorded }));
        MissedPlan { run: (n_recorded..n_due).filter_map(nth).collect(), record, next }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-02-04T{text}Z").parse().unwrap()
    }

    fn policy(runs: MissedRuns) -> MissedPolicy {
        MissedPolicy { runs, ..MissedPolicy::default() }
    }

    /// An hourly job at :00 whose 10:00 is still owed.
    #[track_caller]
    fn check(policy: &MissedPolicy, now: &str, expected: &str) {
        let rhythm = Rhythm::grid(at("10:00:00"), Duration::from_hours(1));
        let plan = policy.plan(&rhythm, at("10:00:00"), at(now));
        let hour = |it: &Timestamp| it.to_string()[11..16].to_owned();
        let run: Vec<String> = plan.run.iter().map(hour).collect();
        let record = match plan.record {
            Some(range) => format!("{}..{} ({})", hour(&range.first), hour(&range.last), range.count),
            None => "nothing".to_owned(),
        };
        let next = plan.next.as_ref().map(hour).unwrap_or_default();
        assert_eq!(format!("run {}; record {record}; next {next}", run.join(" ")), expected);
    }

    #[test]
    fn once_runs_the_latest_and_records_the_rest() {
        let once = policy(MissedRuns::Once);
        check(&once, "09:59:59", "run ; record nothing; next 10:00");
        check(&once, "10:00:00", "run 10:00; record nothing; next 11:00");
        check(&once, "10:59:59", "run 10:00; record nothing; next 11:00");
        check(&once, "11:00:00", "run 11:00; record 10:00..10:00 (1); next 12:00");
        check(&once, "15:20:00", "run 15:00; record 10:00..14:00 (5); next 16:00");
    }

    #[test]
    fn skip_runs_only_what_is_hardly_late() {
        let skip = policy(MissedRuns::Skip);
        check(&skip, "10:00:59", "run 10:00; record nothing; next 11:00");
        check(&skip, "10:01:01", "run ; record 10:00..10:00 (1); next 11:00");
        check(&skip, "15:20:00", "run ; record 10:00..15:00 (6); next 16:00");
        check(&skip, "16:00:00", "run 16:00; record 10:00..15:00 (6); next 17:00");
    }

    #[test]
    fn all_runs_oldest_first_within_window_and_maximum() {
        let all = policy(MissedRuns::All);
        check(&all, "12:20:00", "run 10:00 11:00 12:00; record nothing; next 13:00");
        check(
            &MissedPolicy { most: 2, ..all },
            "15:20:00",
            "run 14:00 15:00; record 10:00..13:00 (4); next 16:00",
        );
        check(
            &MissedPolicy { window: Duration::from_hours(2), ..all },
            "15:20:00",
            "run 14:00 15:00; record 10:00..13:00 (4); next 16:00",
        );
    }

    #[test]
    fn a_billion_missed_occurrences_are_one_row() {
        let start: Timestamp = "1990-01-01T00:00:00Z".parse().unwrap();
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let rhythm = Rhythm::grid(start, Duration::from_secs(1));
        let plan = policy(MissedRuns::Once).plan(&rhythm, start, now);
        assert_eq!(plan.run, [now]);
        assert_eq!(plan.record.unwrap().count, 1_136_073_600);
    }

    proptest! {
        /// due = runs + recorded, in order, none twice, and nothing that is not due.
        #[test]
        fn every_due_occurrence_has_exactly_one_fate(
            interval in 1_i64..5_000,
            pending_step in 0_i64..50,
            late in -10_000_i64..500_000,
            which in 0..3,
            most in 0_u32..20,
            window in 0_i64..300_000,
            grace in 0_i64..20_000,
        ) {
            let runs = [MissedRuns::Once, MissedRuns::Skip, MissedRuns::All][which as usize];
            let policy = MissedPolicy {
                runs,
                most,
                window: Duration::from_millis(window),
                grace: Duration::from_millis(grace),
            };
            let rhythm = Rhythm::grid(Timestamp::UNIX_EPOCH, Duration::from_millis(interval));
            let pending = Timestamp::from_millis(interval * pending_step);
            let now = pending + Duration::from_millis(late);
            let plan = policy.plan(&rhythm, pending, now);

            let mut due = Vec::new();
            let mut next = pending;
            while next <= now {
                due.push(next);
                next = next + Duration::from_millis(interval);
            }
            let n_recorded = plan.record.map_or(0, |it| it.count) as usize;
            prop_assert_eq!(&due[n_recorded..], &plan.run[..]);
            if let Some(range) = plan.record {
                prop_assert_eq!((range.first, range.last), (due[0], due[n_recorded - 1]));
            }
            prop_assert_eq!(plan.next, Some(next));
            match runs {
                MissedRuns::Once => prop_assert_eq!(plan.run.len(), due.len().min(1)),
                MissedRuns::Skip => prop_assert!(plan.run.iter().all(|at| now - *at <= policy.grace)),
                MissedRuns::All => prop_assert!(plan.run.len() <= most as usize),
            }
        }
    }
}
