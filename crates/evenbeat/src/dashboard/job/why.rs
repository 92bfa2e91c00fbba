//! Why a job runs or does not, in two lines: the answer, then what follows from it.

use evenbeat_core::time::{Duration, Timestamp};
use maud::{Markup, html};

use super::freshness::margin;
use crate::dashboard::parts::icon;
use crate::dashboard::times::{Distance, Times, brief, counted, length_text};
use crate::printable;
use crate::views::job_detail::JobDetail;
use crate::views::model::{ExplanationView, JobView};

/// The two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WhyText {
    /// The class of the box: `ok`, `warning`, `error`, `paused`, `run`.
    pub(super) tone: &'static str,
    pub(super) answer: String,
    /// What follows, as sentences.
    pub(super) follows: Vec<String>,
    /// Why its condition is not good. It may end with what a run wrote, so nothing follows it.
    pub(super) because: Option<String>,
}

/// The box.
pub(super) fn why_box(detail: &JobDetail, times: &Times) -> Markup {
    let text = why_text(detail, times);
    let symbol = match text.tone {
        "warning" => "warning",
        "error" => "error",
        "paused" => "paused",
        "run" => "run",
        _ => "ok",
    };
    let run = detail.view.owner_tag.as_deref();
    html! {
        div class={ "why " (text.tone) } role="status" id="why" data-l {
            (icon(symbol))
            div {
                b { (coded(&text.answer)) }
                p {
                    @for sentence in &text.follows { (coded(sentence)) " " }
                    @if let Some(ping) = detail.view.owner_last_ping_at.filter(|_| run.is_some()) {
                        "Last ping " (times.distance(ping.0, Distance::Ago)) ". "
                    }
                    @if let Some(run) = run { a.link href={ "/runs/" (run) } { "Open the run" } }
                }
                @if let Some(sentence) = &text.because { p { (coded(sentence)) } }
            }
        }
    }
}

/// Text in which what stands between backticks is code.
pub(super) fn coded(text: &str) -> Markup {
    let safe = printable::line(text);
    html! {
        @for (no, part) in safe.split('`').enumerate() {
            @if no % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn why_text(detail: &JobDetail, times: &Times) -> WhyText {
    let (view, why) = (&detail.view, &detail.explanation);
    let is_bad = why.condition != "ok";
    let tone = match (why.condition.as_ref(), why.binding.as_ref()) {
        (_, "paused_operator" | "disabled" | "done" | "manual") if !view.tracked => "paused",
        ("error", _) => "error",
        ("warning", _) => "warning",
        (_, "running") => "run",
        _ => "ok",
    };
    let answer = answer(detail, times);
    let mut follows = Vec::new();
    match why.binding.as_ref() {
        "paused_operator" => {
            follows.extend(view.pause_reason.as_ref().map(|reason| format!("“{reason}”")));
            follows.push(match view.pause_until {
                Some(until) => format!("It resumes automatically at {}.", times.moment_text(until.0)),
                None => "Nothing starts until someone resumes it.".to_owned(),
            });
            follows.extend(
                view.last_good_start_at
                    .map(|at| format!("Its data is {} old and gets older.", brief(detail.now - at.0))),
            );
        }
        "disabled" => follows.push("Set `enabled = true` in its definition to let it run.".to_owned()),
        "done" => follows.push("Give it another schedule, or remove it.".to_owned()),
        "manual" | "paused_failures" | "paused_quota" | "disabled_invalid" => {}
        "running" | "owner_lost" => {
            follows.extend(running_arithmetic(why, times));
        }
        _ => {
            follows.extend(in_line(why));
            follows.extend(waiting_arithmetic(why, times));
        }
    }
    follows.extend(requested(view));
    let because = Some(why.sentence.clone()).filter(|_| is_bad && why.binding != "paused_operator");
    WhyText { tone, answer, follows, because }
}

fn answer(detail: &JobDetail, times: &Times) -> String {
    let (view, why) = (&detail.view, &detail.explanation);
    let text = |at: Timestamp| times.moment_text(at);
    let until = why.binding_until.map(|at| text(at.0));
    let late = will_be_late(why);
    let plain = |sentence: &str| sentence.trim_end_matches('.').to_owned();
    match (why.binding.as_ref(), until) {
        ("running", _) => {
            let since = view.owner_started_at.map(|at| format!(" for {}", brief(detail.now - at.0)));
            let node = view.owner_node.as_ref().map(|node| format!(" on `{node}`"));
            let others = match view.open_runs {
                0 | 1 => String::new(),
                n => format!(", {n} runs at once"),
            };
            format!("Running{}{}{others}", node.unwrap_or_default(), since.unwrap_or_default())
        }
        ("paused_operator", _) => match &detail.paused {
            Some(mark) => format!("Paused by {}, {}", mark.actor, text(mark.at)),
            None => "Paused by a person".to_owned(),
        },
        ("paused_failures", _) => {
            format!("Paused by the system after {}", counted(u64::from(view.failure_count), "failure"))
        }
        ("paused_quota", _) => "Paused by the system: a quota is used up".to_owned(),
        ("disabled_invalid", _) => "Disabled: its stored definition cannot be read".to_owned(),
        ("disabled", _) => "Disabled: it is stored and never runs".to_owned(),
        ("done", _) => "Done: nothing of its schedule is left to run".to_owned(),
        ("manual", _) => "Runs only when someone asks for it".to_owned(),
        ("never_run", Some(until)) => format!("New: first run at {until}"),
        ("never_run", None) => "New: it has no place on the time line yet".to_owned(),
        ("not_due", Some(until)) => match why.deadline.filter(|_| why.condition == "ok") {
            Some(deadline) => format!("Not due until {until}, fresh until {}", text(deadline.0)),
            None => format!("Not running: next start at {until}{late}"),
        },
        ("cooldown", Some(until)) => format!("Cooling down until {until}{late}"),
        ("backoff", Some(until)) => {
            let failures = match view.failure_count {
                0 => String::new(),
                n => format!(" after {}", counted(u64::from(n), "failure")),
            };
            format!("Not running: backing off{failures}, retry at {until}{late}")
        }
        ("blackout", Some(until)) => format!("Not running: blackout until {until}{late}"),
        ("blackout_ahead", Some(until)) => format!(
            "Not running: a run would not end before the next blackout, so it starts at {until}{late}"
        ),
        ("ok", _) => {
            plain(&why.binding_sentence).replace("Nothing holds it up", "Starts now: nothing holds it up")
        }
        _ => format!("Not running: {}", lower_first(&plain(&why.binding_sentence))),
    }
}

/// `, which will be 16m late`, if it will.
fn will_be_late(why: &ExplanationView) -> String {
    let Some((end, deadline)) = why.expected_end.zip(why.deadline) else { return String::new() };
    if why.reasons.iter().any(|it| it == "will_miss_waiting") && deadline.0 < end.0 {
        format!(", and the run will be {} late", brief(end.0 - deadline.0))
    } else {
        String::new()
    }
}

/// Names keep their letters; a sentence that goes on does not begin with a capital one.
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn in_line(why: &ExplanationView) -> Option<String> {
    let (first, n) = (why.before_first.first()?, why.before);
    Some(match n {
        1 => format!("`{first}` goes first."),
        2 => format!("`{first}` and one other job go first."),
        n if n < 1_000 => format!("`{first}` and {} other jobs go first.", n - 1),
        _ => format!("`{first}` and about a thousand other jobs go first."),
    })
}

/// Requests that wait beside what the schedule wants.
fn requested(view: &JobView) -> Option<String> {
    match view.waiting_runs {
        0 => None,
        1 => Some("One more run was requested and waits.".to_owned()),
        n => Some(format!("{n} more runs were requested and wait.")),
    }
}

fn running_arithmetic(why: &ExplanationView, times: &Times) -> Option<String> {
    let length = why.expected_length.0;
    if length <= Duration::ZERO {
        return Some("No run has been good yet, so its length is not known.".to_owned());
    }
    let end = why.expected_end?.0;
    let margin = why.deadline.map_or(String::new(), |deadline| format!(", {}", margin(end, deadline.0)));
    Some(if end <= times.now {
        format!("It usually takes {} and is already longer at it{margin}.", length_text(length))
    } else {
        format!(
            "It usually takes {}, so it should end at {}{margin}.",
            length_text(length),
            times.moment_text(end)
        )
    })
}

fn waiting_arithmetic(why: &ExplanationView, times: &Times) -> Vec<String> {
    let text = |at: Timestamp| times.moment_text(at);
    let Some(deadline) = why.deadline.map(|it| it.0) else { return Vec::new() };
    let length = why.expected_length.0;
    let mut said = Vec::new();
    match why.starts_at.map(|it| it.0).filter(|_| Duration::ZERO < length) {
        Some(start) => {
            let end = start + length;
            let how = if deadline < end {
                format!("{} after the deadline at {}", brief(end - deadline), text(deadline))
            } else {
                format!("{} before the deadline at {}", brief(deadline - end), text(deadline))
            };
            said.push(format!(
                "A run takes about {}: a start at {} ends at {}, {how}.",
                length_text(length),
                text(start),
                text(end)
            ));
        }
        None => said.push(format!("The deadline is {}.", text(deadline))),
    }
    let latest = deadline - length;
    let is_late = why.starts_at.is_none_or(|start| latest < start.0);
    if times.now < latest {
        said.push(if is_late && Duration::ZERO < length {
            format!("Run it before {} to stay in time.", text(latest))
        } else {
            format!("Latest start {}.", text(latest))
        });
    }
    said
}
