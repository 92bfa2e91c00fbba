//! What stands beside the charts of a job: its next runs, its schedule in words, where it runs, who is told, and its
//! definition.

use std::fmt::Write as _;

use evenbeat_core::job::{Job, Overlap};
use evenbeat_core::missed::MissedRuns;
use evenbeat_core::rights::Role;
use evenbeat_core::schedule::{OnceAt, Schedule};
use evenbeat_core::time::Timestamp;
use maud::{Markup, html};

use super::why::coded;
use crate::dashboard::times::{Distance, Times, brief, counted, length_text};
use crate::dashboard::user::PageUser;
use crate::printable;
use crate::views::definition_text;
use crate::views::job_detail::JobDetail;
use crate::views::model::OccurrenceView;

/// Next runs that are listed.
const N_NEXT: usize = 5;

pub(super) fn aside<R>(detail: &JobDetail, user: &PageUser<R>, times: &Times) -> Markup {
    html! {
        aside.col aria-label="Details" {
            section.sec id="next" data-l { (next_runs(detail, times)) }
            section.sec.kvs id="facts" data-l {
                h3 { "Schedule" }
                dl.kv { (schedule(detail, times)) }
                h3 { "Duration" }
                dl.kv { (durations(detail)) }
                h3 { "Where" }
                dl.kv { (place(detail, times)) }
                h3 { "Alerts" }
                dl.kv { (alerts(detail, user, times)) }
            }
            section.sec.kvs { (definition(detail, times)) }
        }
    }
}

fn next_runs(detail: &JobDetail, times: &Times) -> Markup {
    let items: Vec<&OccurrenceView> = detail.upcoming.items.iter().take(N_NEXT).collect();
    let is_guess = items.first().is_some_and(|it| it.estimate);
    html! {
        div.sec-h { h2 { "Next runs" } span.sub { (times.zone_name()) @if is_guess { ", as far as can be foreseen" } } }
        @if items.is_empty() { p.mut { (no_next_run(detail)) } }
        ol.nr {
            @for (no, it) in items.into_iter().enumerate() {
                @let at = if no == 0 { first_start(detail, it.at.0) } else { it.at.0 };
                li {
                    b { (times.moment(at)) }
                    span.t2 { (times.distance(at, Distance::In)) }
                    (how_it_goes(detail, it, at, no == 0))
                }
            }
        }
    }
}

/// The start as `explain` gives it: a queue may hold up what is due.
fn first_start(detail: &JobDetail, at: Timestamp) -> Timestamp {
    let is_running = detail.view.owner_tag.is_some();
    detail.explanation.starts_at.filter(|_| !is_running).map_or(at, |starts_at| starts_at.0.max(at))
}

fn how_it_goes(detail: &JobDetail, it: &OccurrenceView, at: Timestamp, is_first: bool) -> Markup {
    let length = detail.explanation.expected_length.0;
    let deadline = detail.explanation.deadline.filter(|_| is_first && detail.view.owner_tag.is_none());
    let late = deadline
        .map(|deadline| at + length - deadline.0)
        .filter(|late| !late.is_negative() && 0 < late.as_millis());
    html! {
        @if it.held_up_by.as_deref() == Some("no_node") { span.c-err { "no node" } }
        @else if let Some(late) = late { span.c-err { (length_text(late)) " late" } }
        @else if it.held_up_by.as_deref() == Some("backoff") { span.t2 { "retry" } }
        @else if it.held_up_by.as_deref() == Some("blackout") { span.t2 { "after blackout" } }
        @else if deadline.is_some() { span.t2 { "on time" } }
    }
}

fn no_next_run(detail: &JobDetail) -> &'static str {
    match detail.view.status.as_ref() {
        "paused" => "None while it is paused.",
        "disabled" => "None while it is disabled.",
        "done" => "None: nothing of its schedule is left.",
        _ if detail.view.schedule_kind == "manual" => "None: it runs only when someone asks for it.",
        _ if detail.view.paused_by.is_some() => "None while it is paused.",
        _ => "None in sight.",
    }
}

/// A term and what it is.
fn pair(term: &str, value: &Markup) -> Markup {
    html! { dt { (term) } dd { (value) } }
}

fn schedule(detail: &JobDetail, times: &Times) -> Markup {
    let (job, why) = (&*detail.row.job, &detail.explanation);
    let length = why.expected_length.0;
    let less =
        if 0 < length.as_millis() { format!("deadline less {}", length_text(length)) } else { String::new() };
    let instant = |term: &str, at: Option<Timestamp>, note: &str| {
        html! { @if let Some(at) = at { (pair(term, &html! { (times.moment(at)) " " span.mut { (note) } })) } }
    };
    html! {
        @for (term, words) in schedule_words(job) { (pair(term, &coded(&words))) }
        @if detail.view.tracked {
            (instant("Earliest start", why.can_start_by.map(|it| it.0), ""))
            (instant("Latest start", why.should_start_by.map(|it| it.0), &less))
            (instant("Deadline", why.deadline.map(|it| it.0), ""))
        }
        (instant("Starts from", job.bounds.starts_at, ""))
        (instant("Ends", job.bounds.ends_at, ""))
    }
}

/// The schedule and its rules, in words.
pub(super) fn schedule_words(job: &Job) -> Vec<(&'static str, String)> {
    let mut words = vec![("Runs", runs_words(job))];
    words.extend(promise_words(job).map(|it| ("Promise", it)));
    if let Schedule::Fresh { cooldown, .. } = &job.schedule {
        words.push(("Cool-down", format!("{} after a good run", brief(*cooldown))));
    }
    if job.zone.name() != "UTC" || matches!(job.schedule, Schedule::Cron(_)) || !job.blackouts.is_empty() {
        words.push(("Time zone", job.zone.name().to_owned()));
    }
    if !job.blackouts.is_empty() {
        let periods: Vec<String> = job.blackouts.periods().iter().map(ToString::to_string).collect();
        words.push(("Blackouts", periods.join("; ")));
    }
    if let Some(most) = job.bounds.max_runs {
        words.push(("Ends", format!("after {}", counted(most, "run"))));
    }
    words.push(("Overlap", overlap_words(job.overlap)));
    words.push(("After a failure", retry_words(job)));
    words.push(("If missed", missed_words(job)));
    words
}

fn runs_words(job: &Job) -> String {
    match &job.schedule {
        Schedule::Every { interval, .. } => format!("every {interval}"),
        Schedule::Fresh { .. } => "as often as it takes to stay fresh".to_owned(),
        Schedule::Cron(cron) => format!("cron `{}`", cron.expr()),
        Schedule::Once { at: OnceAt::Now, .. } => "once, as soon as it is placed".to_owned(),
        Schedule::Once { at: OnceAt::Instant(at), .. } => format!("once, at {at}"),
        Schedule::Manual => "only when someone asks for it".to_owned(),
    }
}

fn promise_words(job: &Job) -> Option<String> {
    let done_within = |within: &str| Some(format!("done within {within} of each start time"));
    match &job.schedule {
        Schedule::Fresh { max_age, .. } => Some(format!("data is {} old at most", brief(*max_age))),
        Schedule::Every { interval, finish_within } => {
            done_within(&brief(finish_within.unwrap_or(*interval)))
        }
        Schedule::Cron(cron) => match cron.finish_within {
            Some(within) => done_within(&brief(within)),
            None => Some("done before the next start time".to_owned()),
        },
        Schedule::Once { finish_within, .. } => {
            done_within(&brief(finish_within.unwrap_or(evenbeat_core::schedule::ONCE_FINISH_WITHIN)))
        }
        Schedule::Manual => None,
    }
}

fn overlap_words(overlap: Overlap) -> String {
    match overlap {
        Overlap::Skip => "a start during a run is skipped".to_owned(),
        Overlap::Queue => "one start during a run waits for its end".to_owned(),
        Overlap::Allow { max_parallel } => {
            format!("up to {} at once", counted(u64::from(max_parallel), "run"))
        }
    }
}

fn retry_words(job: &Job) -> String {
    let delays: Vec<String> = job.retry.delays.iter().map(|it| brief(*it)).collect();
    let mut words = match delays.as_slice() {
        [] => "no retry".to_owned(),
        [only] => format!("again after {only}, each time"),
        [.., last] => format!("again after {}, then after {last} each time", delays.join(", ")),
    };
    if let Some(most) = job.retry.pause_after_failures {
        let _ = write!(words, "; paused after {}", counted(u64::from(most), "failure"));
    }
    words
}

fn missed_words(job: &Job) -> String {
    let missed = &job.missed;
    match missed.runs {
        MissedRuns::Once => "one run makes up for all".to_owned(),
        MissedRuns::Skip => format!("skipped when {} late", brief(missed.grace)),
        MissedRuns::All => {
            format!("each is made up for, up to {} of the last {}", missed.most, brief(missed.window))
        }
    }
}

fn durations(detail: &JobDetail) -> Markup {
    let (job, view) = (&*detail.row.job, &detail.view);
    html! {
        (pair("Average", &match (job.estimate, &view.estimate) {
            (Some(set), _) => html! { (brief(set)) " " span.mut { "set in the definition" } },
            (None, Some(learned)) => html! { (length_text(learned.mean.0)) " " span.mut { "of " (counted(learned.samples, "good run")) } },
            (None, None) => html! { span.mut { "not known before the first good run" } },
        }))
        (pair("Max expected", &match job.limits.max_expected {
            Some(most) => html! { (brief(most)) " " span.mut { "then warn" } },
            None => html! { span.mut { "no limit" } },
        }))
        (pair("Max allowed", &match job.limits.max_allowed {
            Some(most) => html! { (brief(most)) " " span.mut { "then stop" } },
            None => html! { span.mut { "no limit of its own" } },
        }))
    }
}

fn place(detail: &JobDetail, times: &Times) -> Markup {
    let (job, view) = (&*detail.row.job, &detail.view);
    let names = |nodes: &[evenbeat_core::ids::NodeName]| {
        nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let last = detail.runs.items.first().filter(|_| view.owner_tag.is_none());
    html! {
        @match (&view.owner_node, &view.owner_tag) {
            (Some(node), Some(tag)) => {
                (pair("Owner", &html! {
                    a.link href={ "/nodes#" (node) } { (node) } " "
                    @if let Some(name) = &view.owner_name { span.mut { (printable::line(name)) " " } }
                    a.mono.mut href={ "/runs/" (tag) } { (short_id(tag)) }
                }))
                @if let Some(at) = view.owner_started_at { (pair("Started", &html! { (times.exact(at.0)) })) }
                @if let Some(at) = view.owner_last_ping_at { (pair("Last ping", &times.distance(at.0, Distance::Ago))) }
                @if let Some(at) = view.steal_start_at {
                    (pair("Doubted since", &html! { span.c-err { (times.exact(at.0)) } }))
                }
            }
            _ => (pair("Owner", &html! { span.mut { "none, not running" } })),
        }
        @if let Some((run, node)) = last.and_then(|run| run.node.as_ref().map(|node| (run, node))) {
            (pair("Last owner", &html! {
                a.link href={ "/nodes#" (node) } { (node) } " " a.mono.mut href={ "/runs/" (run.id) } { (short_id(&run.id)) }
            }))
        }
        (pair("Pool", &html! {
            a.link href={ "/?tab=all&pool=" (view.pool) } { (view.pool) } " "
            span.mut { "takes " (counted(u64::from(job.place.cost), "unit")) }
        }))
        @if let Some(site) = &view.site { (pair("Site", &html! { a.link href={ "/sites#" (site) } { (site) } })) }
        @if let Some(tenant) = &view.tenant { (pair("Tenant", &html! { a.link href={ "/sites#" (tenant) } { (tenant) } })) }
        @if !job.place.run_on_nodes.is_empty() { (pair("Only on", &html! { (names(&job.place.run_on_nodes)) })) }
        @if !job.place.dont_run_on_nodes.is_empty() { (pair("Never on", &html! { (names(&job.place.dont_run_on_nodes)) })) }
    }
}

/// The end of an id, which differs between runs of the same day.
fn short_id(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}

fn alerts<R>(detail: &JobDetail, user: &PageUser<R>, times: &Times) -> Markup {
    let (job, key) = (&*detail.row.job, detail.key());
    html! {
        (pair("Contact", &match &job.contact {
            Some(contact) => html! { (printable::line(contact)) },
            None => html! { span.mut { "no contact" } },
        }))
        (pair("Muted", &html! {
            @if detail.mutes.is_empty() { "no" }
            @for mute in detail.mutes.iter().take(3) {
                div { "until " (times.short(mute.ends_at)) " by " (printable::line(&mute.actor)) @if !mute.reason.is_empty() { ": " (printable::line(&mute.reason)) } }
            }
            @if user.may(Role::Operator) && detail.mutes.is_empty() { " " a.link href={ "/alerts?mute=1&job=" (key) } { "Mute" } }
            @if !detail.mutes.is_empty() { a.link href="/alerts" { "All mutes" } }
        }))
    }
}

fn definition(detail: &JobDetail, times: &Times) -> Markup {
    let (view, key) = (&detail.view, detail.key());
    let toml = definition_text::job_file(&view.definition)
        .unwrap_or_else(|error| format!("# cannot be written as TOML: {error}"));
    let json = serde_json::to_string_pretty(&view.definition).unwrap_or_default();
    html! {
        h3 { "Definition" }
        dl.kv {
            (pair("Version", &html! { (view.revision) }))
            (pair("Changed", &html! {
                @match &detail.changed {
                    Some(mark) => { (times.short(mark.at)) " by " (printable::line(&mark.actor)) },
                    None => span.mut { "not among its latest changes" },
                }
            }))
            (pair("Created", &html! { (times.short(view.created_at.0)) }))
            (pair("History", &html! { a.link href={ "/audit?q=" (key) } { "Audit" } }))
        }
        details.def id="def-toml" open { summary { "As TOML" } pre.logx tabindex="0" { (printable::lines(&toml)) } }
        details.def id="def-json" { summary { "As JSON" } pre.logx tabindex="0" { (printable::lines(&json)) } }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::spec::JobSpec;
    use evenbeat_core::zone::Zones;

    use super::*;

    fn words(fields: &str) -> String {
        let json = format!(r#"{{"name":"shop","command":["x"],{fields}}}"#);
        let table = crate::value_json::from_text(&json).unwrap();
        let job = JobSpec::read(&table).restore(&mut Zones::new()).unwrap();
        let words = schedule_words(&job)
            .into_iter()
            .filter(|(term, _)| !["Overlap", "If missed", "After a failure"].contains(term));
        words.map(|(term, words)| format!("{term}: {words}")).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_schedule_is_said_in_words() {
        assert_eq!(words(r#""every":"4h""#), "Runs: every 4h; Promise: done within 4h of each start time");
        assert_eq!(
            words(r#""fresh":"6h","cooldown":"1h""#),
            "Runs: as often as it takes to stay fresh; Promise: data is 6h old at most; Cool-down: 1h after a good run"
        );
        assert_eq!(
            words(r#""cron":"0 3 * * *","tz":"Europe/Berlin""#),
            "Runs: cron `0 3 * * *`; Promise: done before the next start time; Time zone: Europe/Berlin"
        );
        assert_eq!(words(r#""manual":true"#), "Runs: only when someone asks for it");
        assert_eq!(
            words(r#""every":"4h","blackout_periods":[{"start":"22:00","end":"06:00"}]"#),
            "Runs: every 4h; Promise: done within 4h of each start time; Time zone: UTC; Blackouts: 22:00 to 06:00 every day"
        );
    }

    #[test]
    fn rules_are_said_in_words() {
        assert_eq!(overlap_words(Overlap::Allow { max_parallel: 3 }), "up to 3 runs at once");
        let table = crate::value_json::from_text(r#"{"name":"shop","command":["x"],"every":"4h","retry":{"delays":["5m","1h"],"pause_after_failures":4}}"#).unwrap();
        let job = JobSpec::read(&table).restore(&mut Zones::new()).unwrap();
        assert_eq!(retry_words(&job), "again after 5m, 1h, then after 1h each time; paused after 4 failures");
    }
}
