//! The equation, over random lives.

use proptest::prelude::*;

use super::JobLife;
use crate::job::sample::{instant, job, length, placed};
use crate::job::{Extra, Job, Overlap};
use crate::missed::MissedRuns;
use crate::occurrence::{Serves, settle};
use crate::run::Outcome;
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::urgency;

prop_compose! {
    fn any_life()(
        schedule in prop::sample::select(vec!["every 1h", "every 7m", "cron 0 * * * *", "cron */20 * * * *"]),
        runs in prop::sample::select(vec![MissedRuns::Once, MissedRuns::Skip, MissedRuns::All]),
        overlap in prop::sample::select(vec![
            Overlap::Skip,
            Overlap::Queue,
            Overlap::Allow { max_parallel: 2 },
            Overlap::Allow { max_parallel: 3 },
        ]),
        most in 1_u32..6,
        pause_after_failures in prop::option::of(2_u32..4),
        holds_schedule in any::<bool>(),
        takes in prop::option::of(1_i64..90),
        steps in prop::collection::vec((0_i64..150, 0..20, 0_usize..3), 1..60),
    ) -> (Job, Vec<(i64, i32, usize)>) {
        let mut job = job(schedule);
        job.missed.runs = runs;
        job.missed.most = most;
        job.overlap = overlap;
        job.retry.delays = vec![length("5m"), length("40m")];
        job.retry.not_on_exit_codes = vec![64];
        job.retry.pause_after_failures = pause_after_failures;
        job.retry.holds_schedule = holds_schedule;
        job.estimate = takes.map(Duration::from_mins);
        (job, steps)
    }
}

impl JobLife {
    /// One thing happens, if it can.
    fn happen(&mut self, what: i32, which: usize, now: Timestamp) {
        let run_idx = which.checked_rem(self.open.len()).unwrap_or(0);
        match (what, self.open.is_empty()) {
            (0..=2, false) => self.finish(run_idx, now, Outcome::Succeeded, Some(0)),
            (3..=5, false) => self.finish(run_idx, now, Outcome::Failed, Some(1)),
            (6, false) => self.finish(run_idx, now, Outcome::Failed, Some(64)),
            (7, false) => self.finish(run_idx, now, Outcome::Lost, None),
            (8, false) => self.finish(run_idx, now, Outcome::Cancelled, None),
            (9, false) => self.unstart(run_idx),
            (13, false) => self.finish(run_idx, now, Outcome::Blackout, None),
            (10, _) => self.ask(|id| Extra::manual(id, now)),
            (11, _) => self.ask(|id| Extra::backfill(id, now - Duration::from_hours(30), now)),
            (12, _) => self.take(settle(&self.job, &self.state, self.n_open(), now)),
            _ => {
                let may = urgency::can_start_by(&self.job.key, &self.job, &self.state, now);
                if may.is_some_and(|at| at <= now) {
                    self.start(now);
                }
            }
        }
    }

    /// How many occurrences are neither over nor on record.
    fn n_unsettled(&self, now: Timestamp) -> u64 {
        let rhythm = urgency::rhythm(&self.job, &self.state).unwrap();
        let pending = self.state.next_run_at.unwrap();
        let unsettled = self.state.settled_until.map_or(pending, |until| until.max(pending)) + length("1ms");
        let n_in_line =
            u64::from(pending <= now) + rhythm.count_in(TimeWindow::new(unsettled, now + length("1ms")));
        let is_elsewhere = |serves, due_at| serves != Serves::Pending || due_at != pending;
        let n_served = self.open.iter().filter(|run| is_elsewhere(run.due.serves, run.due.due_at)).count();
        n_in_line + self.state.extras.len() as u64 + n_served as u64
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    /// due + requested = ended + on record + open, each exactly once, whatever happens.
    #[test]
    fn every_occurrence_ends_exactly_once((job, steps) in any_life()) {
        let state = placed(&job, "10:00");
        let mut life = JobLife::of(job, state);
        let mut now = instant("09:50");
        // What came due under placements that are over.
        let mut n_due_before: u64 = 0;
        for (minutes, what, which) in steps {
            now = now + Duration::from_mins(minutes);
            let until_now = TimeWindow::new(Timestamp::MIN, now + length("1ms"));
            if what == 19 || life.state.pause.is_some() && what % 2 == 0 {
                n_due_before += urgency::rhythm(&life.job, &life.state).unwrap().count_in(until_now);
                life.resume(now, now + length("3m"));
            } else {
                life.happen(what, which, now);
            }
            prop_assert!(life.n_open() <= life.job.max_open());
            let n_due = n_due_before + urgency::rhythm(&life.job, &life.state).unwrap().count_in(until_now);
            let n_recorded: u64 = life.records.iter().map(|it| it.range.count).sum();
            let n_settled = life.ended.len() as u64 + n_recorded;
            let n_unsettled = life.n_unsettled(now);
            prop_assert_eq!(n_due + life.n_asked as u64, n_settled + n_unsettled, "{:#?}", life.told);
        }
        // And none of them twice.
        let own = life.ended.iter().filter(|it| it.asked.is_none());
        let mut seen: Vec<(Timestamp, Timestamp)> = own.map(|it| (it.due_at, it.due_at)).collect();
        seen.extend(life.records.iter().map(|it| (it.range.first, it.range.last)));
        seen.sort();
        for pair in seen.windows(2) {
            // An ended one may lie before a range, never inside it.
            prop_assert!(pair[0].1 < pair[1].0, "{:?} meets {:?}: {:#?}", pair[0], pair[1], life.told);
        }
        let mut asked: Vec<_> = life.ended.iter().filter_map(|it| it.asked).collect();
        asked.sort();
        prop_assert!(asked.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
