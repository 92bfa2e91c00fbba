//! Freshness attainment: the share of time in which a job kept its promise (K7).
//!
//! A job is *late* while its condition is `error`: its deadline has passed, or the system has paused or disabled it. What
//! counts is the time since the job was created, without the time in which a person had paused it. Nobody running the
//! scheduler is no excuse: a deadline that passes during an outage has passed.

use crate::time::{Duration, TimeWindow, Timestamp};

/// A stretch of time that may still go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: Timestamp,
    /// None while it goes on.
    pub to: Option<Timestamp>,
}

/// How long one job or several were late, of how long that counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attainment {
    /// Time that counts.
    pub counted: Duration,
    /// The part of it in which a job was late.
    pub late: Duration,
}

impl Attainment {
    /// The attainment of a job in a window. Spans come in any order and may overlap: what is told twice counts once.
    pub fn of(window: TimeWindow, created_at: Timestamp, late: &[Span], paused: &[Span]) -> Attainment {
        let window = TimeWindow::new(window.start().max(created_at), window.end());
        let paused = merged(window, paused);
        let late = merged(window, late);
        let late_and_paused: Vec<Span> =
            late.iter().flat_map(|one| merged(*one, &as_spans(&paused))).map(as_span).collect();
        let late_and_paused = merged(window, &late_and_paused);
        Attainment { counted: window.length() - total(&paused), late: total(&late) - total(&late_and_paused) }
    }

    /// From 0 to 1; none if no time counts.
    #[expect(clippy::cast_precision_loss, reason = "a million jobs for a month are below 2^53 milliseconds")]
    pub fn share(&self) -> Option<f64> {
        let counted = self.counted.as_millis();
        (0 < counted).then(|| 1.0 - self.late.as_millis() as f64 / counted as f64)
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Attainment) -> Attainment {
        Attainment { counted: self.counted + other.counted, late: self.late + other.late }
    }
}

/// The parts of spans that lie in a window, in order, neighbours and overlapping ones joined.
fn merged(window: TimeWindow, spans: &[Span]) -> Vec<TimeWindow> {
    let clip = |span: &Span| {
        let to = span.to.unwrap_or(window.end()).min(window.end());
        TimeWindow::new(span.from.max(window.start()), to)
    };
    let mut clipped: Vec<TimeWindow> = spans.iter().map(clip).filter(|it| !it.is_empty()).collect();
    clipped.sort_unstable_by_key(|it| (it.start(), it.end()));
    let mut joined: Vec<TimeWindow> = Vec::new();
    for it in clipped {
        match joined.last_mut() {
            Some(last) if it.start() <= last.end() => {
                *last = TimeWindow::new(last.start(), last.end().max(it.end()));
            }
            _ => joined.push(it),
        }
    }
    joined
}

fn as_span(window: TimeWindow) -> Span {
    Span { from: window.start(), to: Some(window.end()) }
}

fn as_spans(windows: &[TimeWindow]) -> Vec<Span> {
    windows.iter().copied().map(as_span).collect()
}

fn total(windows: &[TimeWindow]) -> Duration {
    windows.iter().fold(Duration::ZERO, |sum, it| sum + it.length())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hour(hour: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + Duration::from_hours(hour)
    }

    fn span(from: i64, to: i64) -> Span {
        Span { from: hour(from), to: Some(hour(to)) }
    }

    /// The window is a day from hour 100 on. Expects late and counted hours.
    #[track_caller]
    fn check(created: i64, late: &[Span], paused: &[Span], expected: (i64, i64)) {
        let day = TimeWindow::new(hour(100), hour(124));
        let found = Attainment::of(day, hour(created), late, paused);
        assert_eq!(
            (found.late, found.counted),
            (Duration::from_hours(expected.0), Duration::from_hours(expected.1))
        );
    }

    #[test]
    fn late_time_counts_against_the_time_that_the_job_was_there() {
        check(0, &[], &[], (0, 24));
        check(0, &[span(101, 103), span(110, 111)], &[], (3, 24));
        check(112, &[span(113, 115)], &[], (2, 12));
        // What lies before the window or before the job does not count.
        check(112, &[span(90, 115)], &[], (3, 12));
        check(0, &[span(0, 90), span(99, 101), span(123, 200)], &[], (2, 24));
        // It goes on.
        check(0, &[Span { from: hour(120), to: None }], &[], (4, 24));
        check(130, &[], &[], (0, 0));
    }

    #[test]
    fn what_is_told_twice_counts_once() {
        check(0, &[span(101, 104), span(102, 105), span(101, 104)], &[], (4, 24));
    }

    #[test]
    fn time_that_a_person_paused_does_not_count() {
        check(0, &[], &[span(100, 112)], (0, 12));
        check(0, &[span(110, 114)], &[span(100, 112)], (2, 12));
        check(0, &[span(101, 102)], &[Span { from: hour(90), to: None }], (0, 0));
    }

    #[test]
    fn a_share_is_what_was_not_late() {
        let day = TimeWindow::new(hour(0), hour(24));
        assert_eq!(Attainment::of(day, hour(0), &[span(0, 6)], &[]).share(), Some(0.75));
        assert_eq!(Attainment::default().share(), None);
        let two =
            Attainment::of(day, hour(0), &[span(0, 6)], &[]).plus(Attainment::of(day, hour(12), &[], &[]));
        assert_eq!(two.share(), Some(1.0 - 6.0 / 36.0));
    }

    proptest! {
        /// Counted hour by hour, the slow way.
        #[test]
        fn it_is_what_counting_every_hour_gives(
            late in prop::collection::vec((0_i64..60, 0_i64..20), 0..8),
            paused in prop::collection::vec((0_i64..60, 0_i64..20), 0..8),
            created in 0_i64..40,
        ) {
            let spans = |all: &[(i64, i64)]| all.iter().map(|(at, n)| span(*at, at + n)).collect::<Vec<_>>();
            let has = |all: &[(i64, i64)], at: i64| all.iter().any(|(from, n)| (*from..from + n).contains(&at));
            let window = TimeWindow::new(hour(10), hour(50));
            let found = Attainment::of(window, hour(created), &spans(&late), &spans(&paused));
            let counted: Vec<i64> = (10..50).filter(|at| created <= *at && !has(&paused, *at)).collect();
            let n_late = counted.iter().filter(|at| has(&late, **at)).count();
            prop_assert_eq!(found.counted, Duration::from_hours(counted.len() as i64));
            prop_assert_eq!(found.late, Duration::from_hours(n_late as i64));
        }
    }
}
