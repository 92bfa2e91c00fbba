//! What one job puts on the time line.

use std::sync::Arc;

use crate::schedule::cron::CronPlan;
use crate::schedule::{Bounds, Placement, Rhythm, Schedule};
use crate::time::{Duration, TimeWindow, Timestamp};
use crate::zone::Zone;

/// What is levelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BalanceBy {
    /// The number of starts.
    #[default]
    Runs,
    /// Starts times expected length times cost, in every slot that a run covers.
    Work,
}

/// What one run takes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunWork {
    /// How long it is expected to take.
    pub length: Duration,
    /// How many units of capacity it takes meanwhile.
    pub cost: u32,
}

impl Default for RunWork {
    fn default() -> RunWork {
        RunWork { length: Duration::ZERO, cost: 1 }
    }
}

/// A job's occurrences and what each takes up, owned, so that what was added can be removed exactly.
#[derive(Clone, Debug, PartialEq)]
pub struct JobLoad {
    pattern: LoadPattern,
    within: TimeWindow,
    /// What one run takes up.
    pub work: RunWork,
}

#[derive(Clone, Debug, PartialEq)]
enum LoadPattern {
    Single(Timestamp),
    Grid {
        anchor_at: Timestamp,
        interval: Duration,
    },
    /// Apart: few jobs have one, and all jobs have room for the largest of these. Shared by copies of a ledger.
    Cron(Arc<(CronPlan, Zone)>),
}

impl JobLoad {
    /// One occurrence.
    pub fn single(at: Timestamp, work: RunWork) -> JobLoad {
        JobLoad {
            pattern: LoadPattern::Single(at),
            within: TimeWindow::new(Timestamp::MIN, Timestamp::MAX),
            work,
        }
    }

    /// An interval that counts from its next occurrence.
    pub fn every(next: Timestamp, interval: Duration, work: RunWork) -> JobLoad {
        assert!(Duration::ZERO < interval, "an interval of {interval} has no instants");
        let within = TimeWindow::new(next, Timestamp::MAX);
        JobLoad { pattern: LoadPattern::Grid { anchor_at: next, interval }, within, work }
    }

    /// The occurrences of a cron plan from an instant on.
    pub fn cron(plan: CronPlan, zone: Zone, from: Timestamp, work: RunWork) -> JobLoad {
        let pattern = LoadPattern::Cron(Arc::new((plan, zone)));
        JobLoad { pattern, within: TimeWindow::new(from, Timestamp::MAX), work }
    }

    /// What a placed job puts on the time line from its pending occurrence on; nothing if it has none.
    ///
    /// A `fresh` job weighs like an interval of its cooldown and its length, which is how often it
    /// starts if all goes well.
    pub fn of(
        schedule: &Schedule,
        placement: &Placement,
        next_run_at: Timestamp,
        bounds: Bounds,
        zone: &Zone,
        work: RunWork,
    ) -> Option<JobLoad> {
        let load = match schedule {
            Schedule::Every { interval, .. } => JobLoad::every(next_run_at, *interval, work),
            Schedule::Fresh { cooldown, .. } => JobLoad::every(next_run_at, *cooldown + work.length, work),
            Schedule::Cron(cron) => {
                JobLoad::cron(cron.plan(&placement.choices)?, zone.clone(), next_run_at, work)
            }
            Schedule::Once { .. } => JobLoad::single(next_run_at, work),
            Schedule::Manual => return None,
        };
        Some(load.ending_at(bounds.ends_at))
    }

    /// The same without what lies at `end` or later.
    #[must_use]
    pub fn ending_at(mut self, end: Option<Timestamp>) -> JobLoad {
        if let Some(end) = end {
            self.within = TimeWindow::new(self.within.start(), self.within.end().min(end));
        }
        self
    }

    /// The distance of its occurrences, where it is fixed and nothing ends it.
    pub(super) fn grid(&self) -> Option<Duration> {
        match self.pattern {
            LoadPattern::Grid { interval, .. } if self.within.end() == Timestamp::MAX => Some(interval),
            _ => None,
        }
    }

    /// The same without what lies before `start`.
    #[must_use]
    pub(crate) fn starting_at(mut self, start: Timestamp) -> JobLoad {
        self.within = TimeWindow::new(self.within.start().max(start), self.within.end());
        self
    }

    /// Whether the other has the same occurrences from where both have begun, and the same end.
    pub(crate) fn keeps_time_with(&self, other: &JobLoad) -> bool {
        let is_same_beat = match (&self.pattern, &other.pattern) {
            (
                LoadPattern::Grid { anchor_at, interval },
                LoadPattern::Grid { anchor_at: other_anchor_at, interval: other_interval },
            ) => {
                let apart = (*anchor_at - *other_anchor_at).as_millis();
                interval == other_interval && apart % interval.as_millis() == 0
            }
            (one, other) => one == other,
        };
        is_same_beat && self.within.end() == other.within.end()
    }

    /// Its occurrences.
    pub fn rhythm(&self) -> Rhythm<'_> {
        let rhythm = match &self.pattern {
            LoadPattern::Single(at) => Rhythm::single(*at),
            LoadPattern::Grid { anchor_at, interval } => Rhythm::grid(*anchor_at, *interval),
            LoadPattern::Cron(cron) => Rhythm::cron(cron.0, &cron.1),
        };
        rhythm.starting_at(self.within.start()).ending_at(Some(self.within.end()))
    }
}
