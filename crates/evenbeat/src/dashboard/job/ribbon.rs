//! The day of a job in its own zone: blackouts, runs that were, runs that are planned.

use std::fmt::Write as _;

use evenbeat_core::blackout::Blackouts;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;
use maud::{Markup, html};

use super::freshness::Attempt;
use super::label_row::{LabelSide, LabelWish, place};
use crate::dashboard::parts::percent;
use crate::dashboard::times::Times;
use crate::views::local_time::{day_around, instant_of};

/// Narrower blocks could not be seen, in percent.
const WIDTH_MIN: f64 = 0.3;

/// What the ribbon shows.
#[derive(Clone, Debug)]
pub(super) struct DayFacts<'a> {
    pub(super) zone: &'a Zone,
    pub(super) blackouts: &'a Blackouts,
    pub(super) now: Timestamp,
    pub(super) runs: Vec<Attempt>,
    pub(super) planned: Vec<Timestamp>,
    /// How long a run takes, as far as anyone knows.
    pub(super) length: Duration,
    /// The runs before this instant are not among `runs`; none if all of the day are.
    pub(super) runs_since: Option<Timestamp>,
    /// The starts after this instant are not among `planned`; none if all of the day are.
    pub(super) planned_until: Option<Timestamp>,
}

impl DayFacts<'_> {
    fn day(&self) -> TimeWindow {
        day_around(self.zone, self.now)
    }

    /// What stands beside the heading.
    pub(super) fn about(&self) -> String {
        let day = self.day();
        let mut parts = vec![self.zone.name().to_owned()];
        match day.length().as_millis() / 3_600_000 {
            24 => {}
            hours => parts.push(format!("{hours} hours today, because the clocks change")),
        }
        if !self.blackouts.windows_in(self.zone, day).is_empty() {
            parts.push("hatched hours are blackouts".to_owned());
        }
        let clock = |at: Timestamp| Times { zone: self.zone.clone(), now: self.now }.clock(at);
        if let Some(since) = self.runs_since.filter(|at| day.contains(*at)) {
            parts.push(format!("runs since {}", clock(since)));
        }
        if let Some(until) = self.planned_until.filter(|at| day.contains(*at)) {
            parts.push(format!("starts until {}", clock(until)));
        }
        parts.join(", ")
    }
}

/// The ribbon.
pub(super) fn day_ribbon(facts: &DayFacts<'_>) -> Markup {
    let day = facts.day();
    let clocks = Times { zone: facts.zone.clone(), now: facts.now };
    let utc = Times { zone: Zone::utc(), now: facts.now };
    let x = |at: Timestamp| {
        let share = (at - day.start()).as_millis_f64() / day.length().as_millis_f64().max(1.0);
        (share * 100.0).clamp(0.0, 100.0)
    };
    let block = |class: &str, from: Timestamp, to: Timestamp, about: String| {
        let (start, end) = (x(from).min(100.0 - WIDTH_MIN), x(to));
        html! {
            rect class=(class) x=(percent(start)) width=(percent((end - start).max(WIDTH_MIN))) y="20" height="16" rx="2" { title { (about) } }
        }
    };
    let is_of_day = |from: Timestamp, to: Timestamp| {
        from < day.end() && day.start() < to.max(from + Duration::from_millis(1))
    };
    let closed = facts.blackouts.windows_in(facts.zone, day);
    let is_utc = facts.zone.name() == "UTC";
    let now_label = format!("Now {}", clocks.clock(facts.now));
    let mut wishes = vec![LabelWish {
        at: x(facts.now),
        n_letters: [now_label.len(); 2],
        sides: &[LabelSide::Over, LabelSide::Right, LabelSide::Left],
    }];
    wishes.extend(closed.iter().map(|it| LabelWish {
        at: x(it.start()),
        n_letters: [8; 2],
        sides: &[LabelSide::Right],
    }));
    let placed = place(&wishes, &[]);
    let now_side = placed.first().copied().flatten().map_or(LabelSide::Over, |it| it.side);
    html! {
        svg.rib role="img" aria-label=(sentence(facts, &closed, &clocks)) {
            rect.day y="14" width="100%" height="28" rx="3" {}
            @for window in &closed {
                rect.blk x=(percent(x(window.start()))) width=(percent(x(window.end()) - x(window.start()))) y="14" height="28" {
                    title { "Blackout " (clocks.clock(window.start())) " to " (clocks.clock(window.end())) }
                }
            }
            @for (window, at) in closed.iter().zip(placed.iter().skip(1)) {
                @if let Some(at) = at { text class=(at.class()) x=(percent(x(window.start()))) y="9" { "blackout" } }
            }
            @for run in facts.runs.iter().filter(|run| is_of_day(run.from, run.to.unwrap_or(facts.now))) {
                @let to = run.to.unwrap_or(facts.now);
                @let span = format!("{} to {}", clocks.clock(run.from), clocks.clock(to));
                @match (run.to, run.is_good) {
                    (None, _) => (block("open", run.from, to, format!("Running since {}", clocks.clock(run.from)))),
                    (_, true) => (block("done", run.from, to, format!("Good run {span}"))),
                    (_, false) => (block("fail", run.from, to, format!("Failed run {span}"))),
                }
            }
            @for at in facts.planned.iter().filter(|at| day.contains(**at)) {
                (block("plan", *at, *at + facts.length, format!("Planned {}", clocks.clock(*at))))
            }
            line.now x1=(percent(x(facts.now))) x2=(percent(x(facts.now))) y1="10" y2="46" {}
            @let (anchor, dx) = now_side.anchor();
            text.t-now x=(percent(x(facts.now))) dx=(dx) y="9" text-anchor=(anchor) { (now_label) }
            @for hour in (0..=24_u32).step_by(3) {
                @let at = if hour == 24 { day.end() } else { instant_of(facts.zone, facts.zone.local(day.start()).date, hour * 3_600) };
                @let (at_x, anchor) = (percent(x(at)), match hour { 0 => "start", 24 => "end", _ => "middle" });
                @let minor = if hour % 6 == 0 { "" } else { "hs-x" };
                line.g0 x1=(at_x) x2=(at_x) y1="42" y2="46" {}
                text class=(minor) x=(at_x) y="58" text-anchor=(anchor) { (format!("{hour:02}:00")) }
                @if !is_utc { text.hs-x.dim x=(at_x) y="72" text-anchor=(anchor) { (utc.clock(at)) " UTC" } }
            }
        }
    }
}

fn sentence(facts: &DayFacts<'_>, closed: &[TimeWindow], clocks: &Times) -> String {
    let clock = |at: Timestamp| clocks.clock(at);
    let mut said = format!("The day in {}", facts.zone.name());
    if !closed.is_empty() {
        let windows: Vec<String> =
            closed.iter().take(5).map(|it| format!("{} to {}", clock(it.start()), clock(it.end()))).collect();
        let _ = write!(said, ": blackouts {}", windows.join(", "));
    }
    let day = facts.day();
    let n_runs = facts.runs.iter().filter(|run| day.contains(run.from)).count();
    let n_planned = facts.planned.iter().filter(|at| day.contains(**at)).count();
    let _ = write!(said, "; {n_runs} runs so far, {n_planned} planned.");
    said
}

#[cfg(test)]
mod tests {
    use evenbeat_core::blackout::{BlackoutPeriod, Weekdays};

    use super::*;

    fn facts<'a>(zone: &'a Zone, blackouts: &'a Blackouts, now: &str) -> DayFacts<'a> {
        let now: Timestamp = now.parse().unwrap();
        let run = Attempt {
            from: now - Duration::from_hours(3),
            to: Some(now - Duration::from_hours(2)),
            is_good: true,
        };
        DayFacts {
            zone,
            blackouts,
            now,
            runs: vec![
                run,
                Attempt { is_good: false, ..run },
                Attempt {
                    from: now - Duration::from_days(9),
                    to: Some(now - Duration::from_days(8)),
                    is_good: true,
                },
            ],
            planned: vec![now + Duration::from_hours(1), now + Duration::from_days(2)],
            length: Duration::from_mins(40),
            runs_since: None,
            planned_until: None,
        }
    }

    fn night() -> Blackouts {
        let period =
            BlackoutPeriod::new("00:00".parse().unwrap(), "06:00".parse().unwrap(), Weekdays::ALL).unwrap();
        Blackouts::new(vec![period]).unwrap()
    }

    #[test]
    fn the_ribbon_shows_one_day_of_the_jobs_own_zone() {
        let (zone, blackouts) = (Zone::named("America/Chicago").unwrap(), night());
        let facts = facts(&zone, &blackouts, "2026-02-04T18:00:00Z");
        let drawn = day_ribbon(&facts).into_string();
        assert!(drawn.contains("Now 12:00") && drawn.contains("06:00 UTC"), "{drawn}");
        assert!(drawn.contains("class=\"blk\" x=\"0%\" width=\"25%\""), "{drawn}");
        assert_eq!(
            (
                drawn.matches("class=\"done\"").count(),
                drawn.matches("class=\"fail\"").count(),
                drawn.matches("class=\"plan\"").count()
            ),
            (1, 1, 1)
        );
        assert_eq!(facts.about(), "America/Chicago, hatched hours are blackouts");
    }

    #[test]
    fn a_day_with_a_clock_change_has_its_own_length() {
        let (zone, blackouts) = (Zone::named("Europe/Berlin").unwrap(), Blackouts::default());
        let longer = facts(&zone, &blackouts, "2026-10-25T12:00:00Z");
        assert_eq!(longer.about(), "Europe/Berlin, 25 hours today, because the clocks change");
        // Six in the morning comes after seven of 25 hours.
        assert!(
            day_ribbon(&longer).into_string().contains("x=\"28%\" y=\"58\" text-anchor=\"middle\">06:00")
        );
        let shorter = facts(&zone, &blackouts, "2026-03-29T12:00:00Z");
        assert_eq!(shorter.about(), "Europe/Berlin, 23 hours today, because the clocks change");
    }

    #[test]
    fn what_is_left_out_is_said() {
        let (zone, blackouts) = (Zone::utc(), Blackouts::default());
        let all = facts(&zone, &blackouts, "2026-02-04T18:00:00Z");
        let at = |text: &str| Some(format!("2026-02-04T{text}:00Z").parse().unwrap());
        let some = DayFacts { runs_since: at("17:00"), planned_until: at("20:30"), ..all };
        assert_eq!(some.about(), "UTC, runs since 17:00, starts until 20:30");
    }
}
