//! The results of an analysis as one value. Does not deal with text, the clock or files.

use evenbeat_core::distribution::{Distribution, SCORE_ACCEPTABLE, WindowHoursError, evenness};
use evenbeat_core::ids::JobKey;
use evenbeat_core::schedule::Schedule;
use evenbeat_core::slot::{Slot, SlotWidth};
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;

use super::input::{FleetFile, FleetFileKind};
use super::placement::{PlacedJob, as_it_is, proposed};
use super::settle::settled;

const MINUTE: Duration = Duration::from_mins(1);

/// Lowest score that counts as fair.
const SCORE_FAIR: f64 = 0.6;

/// Number of worst minutes to report.
const N_COLLISIONS: usize = 5;

/// Scores that differ by less than this count as equal.
pub(crate) const SCORE_TOLERANCE: f64 = 1e-9;

/// A schedule as it is, and as Evenbeat would place it.
#[derive(Debug)]
pub(crate) struct AnalysisFigures {
    /// Whole hours, starting with the requested one.
    pub(crate) window: TimeWindow,
    pub(crate) hours: u32,
    /// The zone that all jobs share, or UTC.
    pub(crate) zone: Zone,
    pub(crate) n_jobs: usize,
    /// Jobs that never start on their own: manual, paused, disabled or ended.
    pub(crate) n_idle: usize,
    pub(crate) as_is: Side,
    pub(crate) proposed: Side,
    /// Jobs that would get another time, in file order.
    pub(crate) changes: Vec<ScheduleChange>,
    /// What changing the job file could gain beyond that.
    pub(crate) with_h: Option<Potential>,
}

/// What a job file would gain if habitual `cron` minutes were written as `H`.
#[derive(Debug)]
pub(crate) struct Potential {
    pub(crate) n_jobs: usize,
    /// One example, as written and as it could be.
    pub(crate) example: (String, String),
    pub(crate) side: Side,
}

impl Potential {
    /// Returns `None` if it would not improve on the proposal.
    fn of(
        placed: &[PlacedJob],
        proposed: &Side,
        window: TimeWindow,
    ) -> Result<Option<Potential>, WindowHoursError> {
        let mut habits = placed.iter().filter_map(PlacedJob::opened_habit).peekable();
        let Some(example) = habits.peek().cloned() else { return Ok(None) };
        let hours = u32::try_from(proposed.distribution.hours.len()).unwrap_or(u32::MAX);
        let side = Side::of(window.start(), hours, &super::placement::proposed(placed, |_| true, window))?;
        let is_better = proposed.is_worse_than(&side) && !side.is_worse_than(proposed);
        Ok(is_better.then(|| Potential { n_jobs: habits.count(), example, side }))
    }
}

/// The figures of one of the two schedules.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) distribution: Distribution,
    pub(crate) score: f64,
    pub(crate) peak_minute: Peak,
    pub(crate) peak_slot: Peak,
    pub(crate) peak_hour: Peak,
    /// Starts in each minute of the hour, over all hours.
    pub(crate) by_minute: Vec<u32>,
    /// The minutes with the most starts, worst first, then earliest first. Empty if no minute has more than one start.
    pub(crate) collisions: Vec<Collision>,
}

/// The time with the most starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Peak {
    pub(crate) at: Timestamp,
    pub(crate) n_starts: u32,
}

/// A minute with several starts.
#[derive(Debug)]
pub(crate) struct Collision {
    pub(crate) at: Timestamp,
    pub(crate) n_starts: u32,
    /// The jobs that start in it, rarest first: those are what sets this minute apart.
    pub(crate) jobs: Vec<JobKey>,
}

/// A job that would get another time.
#[derive(Debug)]
pub(crate) struct ScheduleChange {
    pub(crate) job: JobKey,
    pub(crate) line: usize,
    pub(crate) what: ChangeKind,
}

/// What would change.
#[derive(Debug)]
pub(crate) enum ChangeKind {
    /// A cron expression without `H`.
    Expression { old: String, new: String },
    /// The phase of an interval.
    Phase { interval: Duration, old: Timestamp, new: Timestamp },
}

impl AnalysisFigures {
    pub(crate) fn of(
        input: &FleetFile,
        at: Timestamp,
        hours: u32,
    ) -> Result<AnalysisFigures, WindowHoursError> {
        let zone = input.zone();
        let start = hour_start(&zone, at);
        let window = TimeWindow::starting_at(start, Duration::from_hours(hours.into()));
        let placed: Vec<PlacedJob> = input.jobs.iter().map(|it| as_it_is(&it.job, window)).collect();
        let as_is = Side::of(start, hours, &placed)?;
        let may_open = |idx: usize| {
            input.kind != FleetFileKind::Jobs && input.jobs.get(idx).is_some_and(|it| !it.is_pinned)
        };
        let after = settled(&placed, proposed(&placed, may_open, window), input.kind, &as_is)?;
        let proposed = Side::of(start, hours, &after)?;
        let with_h = match input.kind {
            FleetFileKind::Jobs => Potential::of(&placed, &proposed, window)?,
            FleetFileKind::Crontab | FleetFileKind::SystemCrontab => None,
        };
        let changes = input.jobs.iter().zip(placed.iter().zip(&after)).filter_map(|(it, (old, new))| {
            Some(ScheduleChange { job: it.job.key.clone(), line: it.line, what: changed(old, new)? })
        });
        Ok(AnalysisFigures {
            window,
            hours,
            n_jobs: placed.len(),
            n_idle: placed.iter().filter(|it| it.first().is_none()).count(),
            changes: changes.collect(),
            zone,
            as_is,
            proposed,
            with_h,
        })
    }

    /// Whether the proposal keeps the number of starts in every hour.
    pub(crate) fn keeps_hours(&self) -> bool {
        self.as_is.distribution.hours == self.proposed.distribution.hours
    }
}

impl Side {
    pub(super) fn of(start: Timestamp, hours: u32, placed: &[PlacedJob]) -> Result<Side, WindowHoursError> {
        let loads = placed.iter().filter_map(|it| it.load.as_ref());
        let distribution = Distribution::of(start, hours, SlotWidth::DEFAULT, loads)?;
        let peak = |(idx, n_starts): (usize, u32), cell: Duration| Peak {
            at: start + cell * i64::try_from(idx).unwrap_or(0),
            n_starts,
        };
        let mut by_minute = vec![0; 60];
        for hour in distribution.minutes.chunks(60) {
            by_minute.iter_mut().zip(hour).for_each(|(sum, n)| *sum += n);
        }
        let worst = worst_minutes(&distribution.minutes);
        let collisions = worst.into_iter().map(|(idx, n_starts)| {
            let Peak { at, .. } = peak((idx, n_starts), MINUTE);
            let minute = TimeWindow::starting_at(at, MINUTE);
            let mut meeting: Vec<&PlacedJob> = placed.iter().filter(|it| 0 < it.n_starts(minute)).collect();
            meeting.sort_by_key(|it| it.n_starts(distribution.window));
            Collision { at, n_starts, jobs: meeting.iter().map(|it| it.job.key.clone()).collect() }
        });
        let collisions: Vec<Collision> = collisions.collect();
        let busiest_minute = earliest_max(&distribution.minutes);
        Ok(Side {
            score: distribution.score(),
            peak_minute: peak(busiest_minute, MINUTE),
            peak_slot: peak(distribution.peak_slot(), SlotWidth::DEFAULT.length()),
            peak_hour: peak(distribution.peak_hour(), Duration::from_hours(1)),
            by_minute,
            collisions,
            distribution,
        })
    }

    pub(crate) fn is_worse_than(&self, other: &Side) -> bool {
        self.score + SCORE_TOLERANCE < other.score || other.peak_minute.n_starts < self.peak_minute.n_starts
    }

    /// Evenness by minute, which is finer than the score by quarter hour.
    pub(crate) fn minute_evenness(&self) -> f64 {
        evenness(&self.distribution.minutes)
    }

    /// Whether it is uneven because some hours have more starts than others.
    pub(crate) fn is_held_back_by_hours(&self) -> bool {
        self.score < SCORE_ACCEPTABLE && evenness(&self.distribution.hours) <= self.score + SCORE_TOLERANCE
    }

    pub(crate) fn word(&self) -> ScoreWord {
        ScoreWord::of(self.score)
    }

    /// The score with two digits, rounded down, so that a score shown as 0.80 is good.
    pub(crate) fn shown_score(&self) -> String {
        shown_score(self.score)
    }
}

/// A score as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScoreWord {
    Good,
    Fair,
    Poor,
}

impl ScoreWord {
    pub(crate) fn of(score: f64) -> ScoreWord {
        match score + SCORE_TOLERANCE {
            score if SCORE_ACCEPTABLE <= score => ScoreWord::Good,
            score if SCORE_FAIR <= score => ScoreWord::Fair,
            _ => ScoreWord::Poor,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ScoreWord::Good => "good",
            ScoreWord::Fair => "fair",
            ScoreWord::Poor => "poor",
        }
    }
}

/// A score with two digits, rounded down, so that a score shown as 0.80 is good.
pub(crate) fn shown_score(score: f64) -> String {
    format!("{:.2}", ((score + SCORE_TOLERANCE) * 100.0).floor() / 100.0)
}

/// The start of the current hour in local time, so that hours match the clock.
fn hour_start(zone: &Zone, at: Timestamp) -> Timestamp {
    let into_hour = i64::from(zone.local(at).second_of_day % 3_600);
    let start = Timestamp::from_second(at.as_second()) - Duration::from_secs(into_hour);
    // Historic offsets can be odd numbers of minutes, but slots cannot.
    Slot::of(start, SlotWidth::DEFAULT).start(SlotWidth::DEFAULT)
}

pub(super) fn changed(old: &PlacedJob, new: &PlacedJob) -> Option<ChangeKind> {
    if let Schedule::Every { interval, .. } = &new.job.schedule {
        let (old, new) = (old.first()?, new.first()?);
        return (old != new).then_some(ChangeKind::Phase { interval: *interval, old, new });
    }
    let (old, new) = (old.expression()?, new.expression()?);
    (old != new).then_some(ChangeKind::Expression { old, new })
}

fn earliest_max(counts: &[u32]) -> (usize, u32) {
    let most = counts.iter().copied().max().unwrap_or(0);
    (counts.iter().position(|n| *n == most).unwrap_or(0), most)
}

fn worst_minutes(counts: &[u32]) -> Vec<(usize, u32)> {
    let mut minutes: Vec<(usize, u32)> = counts.iter().copied().enumerate().filter(|(_, n)| 1 < *n).collect();
    minutes.sort_by_key(|(idx, n)| (std::cmp::Reverse(*n), *idx));
    minutes.truncate(N_COLLISIONS);
    minutes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_is_a_word_and_is_never_shown_better_than_it_is() {
        let words: Vec<&str> =
            [1.0, 0.8, 0.7999, 0.6, 0.5999, 0.0].map(|score| ScoreWord::of(score).as_str()).into();
        assert_eq!(words, ["good", "good", "fair", "fair", "poor", "poor"]);
        assert_eq!([1.0, 0.8, 0.7999, 0.0].map(shown_score), ["1.00", "0.80", "0.79", "0.00"]);
    }

    #[test]
    fn hours_begin_where_the_clocks_of_the_zone_say() {
        let check = |zone: &str, at: &str, expected: &str| {
            let start = hour_start(&Zone::named(zone).unwrap(), at.parse().unwrap());
            assert_eq!(start.to_string(), expected, "{zone}");
        };
        check("UTC", "2026-02-04T10:59:59.999Z", "2026-02-04T10:00:00Z");
        check("Asia/Kolkata", "2026-02-04T10:15:00Z", "2026-02-04T09:30:00Z");
        check("UTC", "1969-12-31T23:59:59.5Z", "1969-12-31T23:00:00Z");
    }
}
