//! How old the data of a job is on a time line: the last good start, now, the latest start, the deadline, what was tried
//! since, and what comes.

use std::fmt::Write as _;

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use super::axis::ticks;
use super::label_row::{LabelSide, LabelWish, place};
use crate::dashboard::parts::percent;
use crate::dashboard::times::{Times, brief};

/// The shortest time that the chart shows.
const SPAN_MIN: Duration = Duration::from_secs(10);

/// What the chart shows.
#[derive(Clone, Debug)]
pub(super) struct FreshnessFacts {
    /// The start of the last good run, or when the job was placed.
    pub(super) since: Timestamp,
    pub(super) has_good_run: bool,
    pub(super) now: Timestamp,
    /// The latest start that makes the deadline.
    pub(super) latest_start: Timestamp,
    pub(super) deadline: Timestamp,
    /// Runs since the last good start, that one included.
    pub(super) attempts: Vec<Attempt>,
    /// The next start; none while it runs.
    pub(super) planned: Option<Timestamp>,
    /// How long a run takes, if that is known.
    pub(super) length: Option<Duration>,
    /// Whether a run can be asked for.
    pub(super) can_run_now: bool,
}

/// A run on the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) from: Timestamp,
    /// Its end; none while it goes on.
    pub(super) to: Option<Timestamp>,
    pub(super) is_good: bool,
}

/// A stretch of time as percentages.
struct Domain {
    from: Timestamp,
    to: Timestamp,
}

impl Domain {
    /// From a little before the last good start until a little after everything else.
    fn of(facts: &FreshnessFacts) -> Domain {
        let planned_end = facts.planned.map(|at| at + facts.length.unwrap_or(Duration::ZERO));
        let last = [Some(facts.deadline), planned_end, Some(facts.now)].into_iter().flatten().max();
        let last = last.unwrap_or(facts.now);
        let span = (last - facts.since).max(SPAN_MIN);
        let part = |percent: i64| Duration::from_millis(span.as_millis() / 100 * percent);
        Domain { from: facts.since - part(5), to: facts.since + span + part(15) }
    }

    /// An instant as text, with seconds on a chart of minutes.
    fn text(&self, times: &Times, at: Timestamp) -> String {
        let is_short = self.to - self.from < Duration::from_mins(20);
        if is_short { times.moment_text(at) } else { times.short_text(at) }
    }

    fn at(&self, at: Timestamp) -> f64 {
        let share = (at - self.from).as_millis_f64() / (self.to - self.from).as_millis_f64().max(1.0);
        (share * 100.0).clamp(0.0, 100.0)
    }

    /// A block from one instant to another, at least as wide as a hair.
    fn block(
        &self,
        class: &str,
        from: Timestamp,
        to: Timestamp,
        (y, height): (u32, u32),
        about: &str,
    ) -> Markup {
        let (x, width) = (self.at(from), (self.at(to) - self.at(from)).max(0.5));
        html! {
            rect class=(class) x=(percent(x.min(99.5))) width=(percent(width)) y=(y) height=(height) rx="2" {
                @if !about.is_empty() { title { (about) } }
            }
        }
    }
}

/// The chart.
pub(super) fn freshness_chart(facts: &FreshnessFacts, times: &Times) -> Markup {
    let domain = Domain::of(facts);
    let text = |at: Timestamp| domain.text(times, at);
    html! {
        svg.tl role="img" aria-labelledby="tl-t" {
            title id="tl-t" { (sentence(facts, &domain, times)) }
            @for tick in ticks(domain.from, domain.to, times) {
                @let x = percent(domain.at(tick.at));
                line.g x1=(x) x2=(x) y1="42" y2="124" {}
                text class=[tick.is_minor.then_some("hs-x")] x=(x) y="138" text-anchor="middle" { (tick.label) }
            }
            (age_lane(facts, &domain))
            @for attempt in &facts.attempts { (attempt_block(attempt, facts, &domain, times)) }
            (run_now(facts, &domain, times))
            (planned(facts, &domain, times))
            (marks(facts, &domain, &text))
        }
    }
}

/// What the chart says, for those who do not see it.
fn sentence(facts: &FreshnessFacts, domain: &Domain, times: &Times) -> String {
    let text = |at: Timestamp| domain.text(times, at);
    let since = if facts.has_good_run { "Last good start" } else { "No good run yet; placed for" };
    let mut said = format!(
        "{since} {}, now {}, latest start {}, deadline {}",
        text(facts.since),
        text(facts.now),
        text(facts.latest_start),
        text(facts.deadline)
    );
    if let Some(start) = facts.planned {
        let _ = write!(said, ", next start {}", text(start));
        if let Some(length) = facts.length {
            let _ = write!(
                said,
                ", expected end {}: {}",
                text(start + length),
                margin(start + length, facts.deadline)
            );
        }
    }
    said.push('.');
    said
}

/// `16m late`, `25m before the deadline`.
pub(super) fn margin(end: Timestamp, deadline: Timestamp) -> String {
    if deadline < end {
        format!("{} late", brief(end - deadline))
    } else {
        format!("{} before the deadline", brief(deadline - end))
    }
}

fn age_lane(facts: &FreshnessFacts, domain: &Domain) -> Markup {
    let part = |class: &str, from: Timestamp, to: Timestamp| {
        let (x, end) = (domain.at(from), domain.at(to));
        html! { @if x < end { rect class=(class) x=(percent(x)) width=(percent(end - x)) y="42" height="20" {} } }
    };
    let latest = facts.latest_start.max(facts.since).min(facts.deadline);
    html! {
        (part("allow", facts.since, facts.deadline))
        (part("age", facts.since, facts.now))
        // What is behind us is age; what lies ahead says what a start there would mean.
        (part("tight", latest.max(facts.now), facts.deadline))
        (part("late", facts.deadline.max(facts.now), domain.to))
        @if facts.deadline < facts.now { (part("age-late", facts.deadline, facts.now)) }
    }
}

fn attempt_block(attempt: &Attempt, facts: &FreshnessFacts, domain: &Domain, times: &Times) -> Markup {
    let lane = (72, 18);
    let until = attempt.to.unwrap_or(facts.now);
    let about =
        |what: &str| format!("{what} {} to {}", domain.text(times, attempt.from), domain.text(times, until));
    match (attempt.to, attempt.is_good) {
        (None, _) => {
            let expected = facts.length.map(|length| attempt.from + length).filter(|end| facts.now < *end);
            html! {
                @if let Some(end) = expected { (domain.block("run-alt", attempt.from, end, lane, "")) }
                (domain.block("run-open", attempt.from, facts.now, lane, &format!("Running since {}", domain.text(times, attempt.from))))
            }
        }
        (Some(_), true) => domain.block("run-ok", attempt.from, until, lane, &about("Good run")),
        (Some(_), false) => {
            let middle =
                f64::midpoint(domain.at(attempt.from), domain.at(until).max(domain.at(attempt.from) + 0.5));
            html! {
                (domain.block("run-bad", attempt.from, until, lane, &about("Failed run")))
                svg x=(percent(middle)) y="81" { path.xx d="M-3-3l6 6M3-3l-6 6" {} }
            }
        }
    }
}

/// What a run that is asked for now would do.
fn run_now(facts: &FreshnessFacts, domain: &Domain, times: &Times) -> Markup {
    let length = facts.length.filter(|_| facts.can_run_now);
    // A run that starts now anyway needs no asking.
    let is_later = facts.planned.is_none_or(|at| domain.at(facts.now) + 2.0 < domain.at(at));
    let Some(end) = length.filter(|_| is_later).map(|length| facts.now + length) else { return html! {} };
    let width = domain.at(end) - domain.at(facts.now);
    let end_text = domain.text(times, end);
    // The words need a wide block; the time alone fits into half of that.
    let label = if 14.5 < width { format!("run now: {end_text}") } else { end_text };
    html! {
        (domain.block("run-alt", facts.now, end, (72, 18), &format!("A run that starts now would end at {}", domain.text(times, end))))
        @if 7.0 < width {
            text.t-now.hs-x x=(percent(domain.at(facts.now) + width / 2.0)) y="85" text-anchor="middle" { (label) }
        }
    }
}

fn planned(facts: &FreshnessFacts, domain: &Domain, times: &Times) -> Markup {
    let Some(start) = facts.planned else { return html! {} };
    let end = start + facts.length.unwrap_or(Duration::ZERO);
    let (is_late, late) = (facts.deadline < end, margin(end, facts.deadline));
    let from = domain.at(start);
    let to = domain.at(end).max(from + 0.5);
    let clock = domain.text(times, start);
    let done = facts.length.map(|_| format!("done {}", domain.text(times, end)));
    let words = match &done {
        Some(done) if is_late => format!("{done}, {late}"),
        Some(done) => done.clone(),
        None => String::new(),
    };
    let narrow = if is_late { brief(end - facts.deadline).len() + 5 } else { 0 };
    let wishes = [
        LabelWish { at: to, n_letters: [narrow, words.len()], sides: &[LabelSide::Right, LabelSide::Left] },
        LabelWish {
            at: from,
            n_letters: [clock.len(), clock.len() + 11],
            sides: &[LabelSide::Left, LabelSide::Right],
        },
    ];
    let lines = [domain.at(facts.now), domain.at(facts.deadline)];
    let placed = place(&wishes, &lines);
    html! {
        (domain.block("run-plan", start, end, (98, 18), &format!("Planned run, {clock}")))
        @if is_late && start < end { (domain.block("late", start.max(facts.deadline), end, (99, 16), "")) }
        @if let Some(Some(at)) = placed.first() {
            @let (anchor, dx) = at.side.anchor();
            @if !words.is_empty() {
                text class={ (if is_late { "t-err halo " } else { "lbl2 halo " }) (at.class()) } x=(percent(to)) dx=(dx) y="111" text-anchor=(anchor) {
                    @if let Some(done) = &done { tspan.hs-x { (done) @if is_late { ", " } } }
                    @if is_late { (late) }
                }
            }
        }
        @if let Some(Some(at)) = placed.get(1) {
            @let (anchor, dx) = at.side.anchor();
            text class={ "lbl2 halo " (at.class()) } x=(percent(from)) dx=(dx) y="111" text-anchor=(anchor) {
                tspan.hs-x { "next start " } tspan.bb { (clock) }
            }
        }
    }
}

/// Where a mark is, its class, its words on every screen and on wide ones, its instant, and the sides of its label.
type ChartMark<'a> = (f64, &'a str, (&'a str, &'a str), Timestamp, &'static [LabelSide]);

/// The four marks and their labels.
fn marks(facts: &FreshnessFacts, domain: &Domain, text: &dyn Fn(Timestamp) -> String) -> Markup {
    let is_past = facts.deadline < facts.now;
    let (since, now) = (domain.at(facts.since), domain.at(facts.now));
    let (latest, deadline) = (domain.at(facts.latest_start.max(facts.since)), domain.at(facts.deadline));
    let since_words = if facts.has_good_run { ("Last good", " start") } else { ("Placed for", "") };
    let marks: [ChartMark<'_>; 4] = [
        (
            deadline,
            "tick-d",
            ("Deadline", ""),
            facts.deadline,
            if is_past { &[LabelSide::Left, LabelSide::Right] } else { &[LabelSide::Right, LabelSide::Left] },
        ),
        (
            now,
            "now",
            ("Now", ""),
            facts.now,
            if is_past { &[LabelSide::Right, LabelSide::Left] } else { &[LabelSide::Left, LabelSide::Right] },
        ),
        (since, "tick-0", since_words, facts.since, &[LabelSide::Right]),
        (
            latest,
            "tick-w",
            ("Latest", " start"),
            facts.latest_start,
            &[LabelSide::Over, LabelSide::Left, LabelSide::Right],
        ),
    ];
    let mut wishes = marks.map(|(at, _, (short, more), instant, sides)| {
        let time = text(instant).len();
        LabelWish { at, n_letters: [short.len().max(time), (short.len() + more.len()).max(time)], sides }
    });
    let lines = [now, deadline, since];
    let mut placed = place(&wishes, &lines);
    // Without room for its words the latest start keeps its time: its colour and the legend say the rest.
    let is_time_only = matches!(placed.last(), Some(None));
    if let Some(latest) = wishes.last_mut().filter(|_| is_time_only) {
        latest.n_letters = [text(facts.latest_start).len(); 2];
        placed = place(&wishes, &lines);
    }
    html! {
        @for (x, class, _, _, _) in &marks {
            @let x = percent(*x);
            @match *class {
                "tick-w" => line.tick-w x1=(x) x2=(x) y1="36" y2="67" {},
                "tick-0" => line.tick-0 x1=(x) x2=(x) y1="6" y2="62" {},
                class => line class=(class) x1=(x) x2=(x) y1="6" y2="124" {},
            }
        }
        @for ((x, class, (short, more), instant, _), at) in marks.iter().zip(&placed) {
            @if let Some(at) = at {
                @let (anchor, dx) = at.side.anchor();
                @let tone = if *class == "now" { "t-now" } else { "" };
                @if *class != "tick-w" || !is_time_only {
                    text class={ "lbl2 " (tone) " " (at.class()) } x=(percent(*x)) dx=(dx) y="16" text-anchor=(anchor) {
                        (short) @if !more.is_empty() { tspan.hs-x { (more) } }
                    }
                }
                text class={ "lbl " (tone) " " (at.class()) } x=(percent(*x)) dx=(dx) y="32" text-anchor=(anchor) { (text(*instant)) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::zone::Zone;

    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-02-04T{text}:00Z").parse().unwrap()
    }

    fn facts() -> FreshnessFacts {
        FreshnessFacts {
            since: at("09:00"),
            has_good_run: true,
            now: at("13:52"),
            latest_start: at("14:17"),
            deadline: at("15:00"),
            attempts: vec![
                Attempt { from: at("09:00"), to: Some(at("09:43")), is_good: true },
                Attempt { from: at("13:00"), to: Some(at("13:19")), is_good: false },
            ],
            planned: Some(at("14:33")),
            length: Some(Duration::from_mins(43)),
            can_run_now: true,
        }
    }

    fn drawn(facts: &FreshnessFacts) -> String {
        freshness_chart(facts, &Times { zone: Zone::utc(), now: facts.now }).into_string()
    }

    #[test]
    fn the_chart_says_what_it_shows() {
        let drawn = drawn(&facts());
        let said = "Last good start 09:00, now 13:52, latest start 14:17, deadline 15:00, next start 14:33, expected end 15:16: 16m late.";
        assert!(drawn.contains(said), "{drawn}");
        for part in [
            "run-ok",
            "run-bad",
            "run-plan",
            "run-alt",
            "A run that starts now would end at 14:35",
            "16m late",
            "Deadline",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        // Now and the latest start are 25 minutes apart here: there is room for the time alone.
        assert!(drawn.contains(">14:17<") && !drawn.contains("Latest"), "{drawn}");
        let earlier = FreshnessFacts { now: at("12:00"), ..facts() };
        assert!(self::drawn(&earlier).contains("Latest"));
    }

    #[test]
    fn the_domain_begins_before_the_last_good_start_and_ends_after_the_last_mark() {
        let domain = Domain::of(&facts());
        // From 09:00 to 15:16 are 376 minutes: 5 % before, 15 % after.
        assert_eq!(domain.from, at("09:00") - Duration::from_millis(376 * 600 * 5));
        assert_eq!(domain.to, at("15:16") + Duration::from_millis(376 * 600 * 15));
        let short = FreshnessFacts { deadline: at("09:01"), now: at("09:00"), planned: None, ..facts() };
        assert!(SPAN_MIN <= Domain::of(&short).to - Domain::of(&short).from);
    }

    #[test]
    fn everything_stays_on_the_chart_however_late_the_job_is() {
        for now in ["09:00", "14:17", "15:00", "23:59"] {
            let facts = FreshnessFacts { now: at(now), ..facts() };
            let drawn = drawn(&facts);
            for number in drawn.split(" x=\"").skip(1).filter_map(|it| it.split('%').next()) {
                let number: f64 = number.parse().unwrap();
                assert!((0.0..=100.0).contains(&number), "{number}: {drawn}");
            }
        }
    }

    #[test]
    fn a_job_without_an_estimate_makes_no_promise_about_its_end() {
        let drawn = drawn(&FreshnessFacts { length: None, ..facts() });
        assert!(
            !drawn.contains("done ") && !drawn.contains("run now") && !drawn.contains("run-alt"),
            "{drawn}"
        );
    }
}
