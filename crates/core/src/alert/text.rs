//! The text of an alert: what is wrong, since when, why, what happens next, and whom to contact (K3).
//!
//! The text is plain. Each channel escapes it in its own way (S22); there is no template language.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cause::{AlertEvent, AlertSubject, Cause, SystemPart};
use super::incident::IncidentEnd;
use super::look::{Announced, AnnouncedItem, AnnouncementKind};
use crate::condition::Reason;
use crate::ids::JobKey;
use crate::time::Timestamp;

/// Most jobs that a message lists; of more, only the number is given.
pub const LISTED_MAX: usize = 20;

/// Most jobs that a subject line names.
const NAMED_MAX: usize = 3;

/// Longest piece of text that a job or a run contributes.
const PIECE_CHARS_MAX: usize = 600;

/// A message in plain text. Each channel formats it in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertText {
    /// One line.
    pub subject: String,
    /// The rest, in lines.
    pub body: String,
    /// Link to the page, if `public_url` is set.
    pub link: Option<String>,
}

/// Details about a job. All of them are optional: an alert is sent without them if need be.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobFacts {
    /// Its condition, in a sentence.
    pub sentence: Option<String>,
    /// How its last run ended, in a sentence.
    pub last_run: Option<String>,
    /// Failures in a row.
    pub failure_count: u32,
    /// When the last good run ended.
    pub last_good_at: Option<Timestamp>,
    /// When it must be complete.
    pub deadline: Option<Timestamp>,
    /// When it will start next.
    pub next_start: Option<Timestamp>,
    /// Since when it runs.
    pub running_since: Option<Timestamp>,
    /// The job's contact.
    pub contact: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Occurrences that got no run since the incident began.
    pub n_missed: u64,
}

/// A one-time event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText {
    /// The job, if it is about one.
    pub job: Option<JobKey>,
    /// What happened, in a sentence.
    pub sentence: String,
}

/// Composes the text of an announcement. `note` is added to alerts about the scheduler itself.
pub fn compose(
    announced: &Announced,
    facts: &BTreeMap<JobKey, JobFacts>,
    note: Option<&str>,
    public_url: Option<&str>,
    now: Timestamp,
) -> AlertText {
    let writer = Writer { facts, note, public_url, now, n_held: announced.n_held };
    match announced.items.as_slice() {
        [item] => writer.single(item, &announced.id),
        items => writer.several(items, &announced.id),
    }
}

/// Composes the text for one-time events of the same kind.
pub fn compose_event(
    event: AlertEvent,
    items: &[EventText],
    id: &str,
    public_url: Option<&str>,
) -> AlertText {
    let names: Vec<&str> = items.iter().filter_map(|it| it.job.as_ref()).map(JobKey::as_str).collect();
    let first = items.first().map(|it| piece(&it.sentence)).unwrap_or_default();
    let subject = match (items.len(), names.first()) {
        (1, Some(name)) => format!("[{}] {name}: {first}", event.tag()),
        (1, None) => format!("[{}] {first}", event.tag()),
        (n, Some(_)) => format!("[{}] {n} jobs: {}", event.tag(), named(&names)),
        (n, None) => format!("[{}] {n} times: {first}", event.tag()),
    };
    let mut body = String::new();
    for EventText { job, sentence } in items.iter().take(LISTED_MAX) {
        let about = job.as_ref().map(|it| format!("{it}: ")).unwrap_or_default();
        let _ = writeln!(body, "{about}{}", piece(sentence));
    }
    more(&mut body, items.len());
    let link = match names.as_slice() {
        [name] => public_url.map(|url| job_page(url, name)),
        _ => public_url.map(str::to_owned),
    };
    footer(&mut body, link.as_deref(), id);
    AlertText { subject, body, link }
}

struct Writer<'a> {
    facts: &'a BTreeMap<JobKey, JobFacts>,
    note: Option<&'a str>,
    public_url: Option<&'a str>,
    now: Timestamp,
    n_held: usize,
}

impl Writer<'_> {
    fn facts_of(&self, subject: &AlertSubject) -> Option<&JobFacts> {
        self.facts.get(subject.job()?)
    }

    fn single(&self, item: &AnnouncedItem, id: &str) -> AlertText {
        let subject = format!("[{}] {}", tag(item), self.headline(item));
        let mut body = String::new();
        match &item.incident.subject {
            AlertSubject::Job(key) => self.job_body(&mut body, key, item),
            AlertSubject::System(part) => self.system_body(&mut body, *part, item),
        }
        let link = match &item.incident.subject {
            AlertSubject::Job(key) => self.public_url.map(|url| job_page(url, key.as_str())),
            AlertSubject::System(_) => self.public_url.map(str::to_owned),
        };
        footer(&mut body, link.as_deref(), id);
        AlertText { subject, body, link }
    }

    fn several(&self, items: &[AnnouncedItem], id: &str) -> AlertText {
        let is_alike = items.windows(2).all(|pair| match pair {
            [one, other] => tag(one) == tag(other),
            _ => true,
        });
        let names: Vec<String> = items.iter().map(|it| it.incident.subject.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let subject = match items.first() {
            Some(first) if is_alike => format!("[{}] {} jobs: {}", tag(first), items.len(), named(&names)),
            _ => format!("[SUMMARY] {} alerts: {}", items.len(), counted(items)),
        };
        let mut body = String::new();
        for item in items.iter().take(LISTED_MAX) {
            let _ = writeln!(body, "[{}] {}", tag(item), self.headline(item));
            let why = self.facts_of(&item.incident.subject).and_then(JobFacts::why);
            if let Some(why) = why.filter(|_| item.kind != AnnouncementKind::Over) {
                let _ = writeln!(body, "    {}", piece(&why));
            }
        }
        more(&mut body, items.len());
        let link = self.public_url.map(str::to_owned);
        footer(&mut body, link.as_deref(), id);
        AlertText { subject, body, link }
    }

    /// Which job, and how much of the trouble.
    fn headline(&self, item: &AnnouncedItem) -> String {
        let incident = &item.incident;
        let subject = &incident.subject;
        let lasted = |since: Timestamp| (self.now - since).rounded();
        match (item.kind, subject) {
            (AnnouncementKind::Over, AlertSubject::System(SystemPart::Scheduler)) => {
                "the scheduler has had time to catch up".to_owned()
            }
            (AnnouncementKind::Over, AlertSubject::System(SystemPart::Distribution)) => {
                "starts are spread evenly again".to_owned()
            }
            (AnnouncementKind::Over, AlertSubject::Job(key)) => match incident.closed {
                Some((_, IncidentEnd::Removed)) => format!("{key}, removed"),
                Some((_, IncidentEnd::Untracked)) => format!("{key}, paused, disabled or done"),
                Some((_, IncidentEnd::Recovered)) | None => {
                    let missed = self.facts_of(subject).map_or(0, |it| it.n_missed);
                    let missed = if missed == 0 { String::new() } else { format!(", {missed} missed") };
                    format!("{key}, after {}{missed}", lasted(incident.opened_at))
                }
            },
            (AnnouncementKind::Flapping, _) => {
                format!("{subject}, {} changes in 1h", incident.changes.len())
            }
            (_, AlertSubject::System(SystemPart::Scheduler)) => {
                let away = (incident.opened_at - incident.since).rounded();
                match self.n_held {
                    0 => format!("the scheduler was away for {away}"),
                    1 => format!("the scheduler was away for {away}, 1 job is late"),
                    n => format!("the scheduler was away for {away}, {n} jobs are late"),
                }
            }
            (_, AlertSubject::System(SystemPart::Distribution)) => match self.note {
                Some(note) => format!("starts are spread unevenly: {}", piece(note)),
                None => "starts are spread unevenly".to_owned(),
            },
            (_, AlertSubject::Job(key)) => match incident.cause {
                Cause::Reason(Reason::DeadlinePassed) => format!("{key}, {} over", lasted(incident.since)),
                Cause::Reason(Reason::LastRunFailed) => {
                    match self.facts_of(subject).map_or(0, |it| it.failure_count) {
                        0 | 1 => format!("{key}, the last run failed"),
                        n => format!("{key}, {n} failures in a row"),
                    }
                }
                _ => format!("{key}, for {}", lasted(incident.since)),
            },
        }
    }

    fn job_body(&self, body: &mut String, key: &JobKey, item: &AnnouncedItem) {
        let none = JobFacts::default();
        let facts = self.facts.get(key).unwrap_or(&none);
        let is_over = item.kind == AnnouncementKind::Over;
        if is_over {
            let (opened_at, lasted) = (item.incident.opened_at, self.now - item.incident.opened_at);
            let _ = writeln!(body, "It is over. It began at {opened_at} and lasted {}.", lasted.rounded());
            if 0 < facts.n_missed {
                let _ = writeln!(body, "Missed occurrences meanwhile: {}", facts.n_missed);
            }
        } else {
            let sentence = facts.sentence.clone().unwrap_or_else(|| cause_sentence(item.incident.cause));
            let _ = writeln!(body, "{}", piece(&sentence));
            if let Some(last_run) = &facts.last_run {
                let _ = writeln!(body, "{}", piece(last_run));
            }
        }
        body.push('\n');
        let mut line = |label: &str, value: Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(body, "{:<11}{}", format!("{label}:"), piece(&value));
            }
        };
        let ago = |at: Timestamp| format!("{at} ({} ago)", (self.now - at).rounded());
        line("Job", Some(key.to_string()));
        line("For", facts.description.clone());
        if !is_over {
            line("Reason", Some(item.incident.cause.as_str().to_owned()));
            line("Since", Some(ago(item.incident.since)));
            line("Deadline", facts.deadline.map(|at| at.to_string()));
        }
        line("Last good", facts.last_good_at.map_or(Some("never".to_owned()), |at| Some(ago(at))));
        if !is_over {
            let next = match (facts.running_since, facts.next_start) {
                (Some(at), _) => format!("a run is going on since {at}"),
                (None, Some(at)) => format!("it is tried again at {at}"),
                (None, None) => "nothing happens until a person acts".to_owned(),
            };
            line("Next", Some(next));
        }
        line("Contact", facts.contact.clone());
        if !is_over {
            line("Look", Some(format!("evenbeat explain {key}")));
            line("Mute", Some(format!("evenbeat alert mute --job {key} --for 4h --reason \"…\"")));
        }
    }

    fn system_body(&self, body: &mut String, part: SystemPart, item: &AnnouncedItem) {
        let incident = &item.incident;
        if item.kind == AnnouncementKind::Over {
            let text = match part {
                SystemPart::Scheduler => "Jobs that are still late are announced on their own.",
                SystemPart::Distribution => "The distribution score is above `alerts.score_below` again.",
            };
            let _ = writeln!(body, "{text}");
            return;
        }
        match part {
            SystemPart::Scheduler => {
                let (from, to) = (incident.since, incident.opened_at);
                let _ = writeln!(
                    body,
                    "No node scheduled anything from {from} to {to}. Jobs that are late because of that are not\n\
                     announced while the fleet catches up. Those that stay late will be."
                );
            }
            SystemPart::Distribution => {
                let note = self.note.map(piece).unwrap_or_default();
                let _ = writeln!(
                    body,
                    "The distribution score of the next 24 hours is below `alerts.score_below`.\n{note}\n\
                     See `evenbeat rebalance --preview`."
                );
            }
        }
    }
}

impl JobFacts {
    /// The most telling sentence: how the last run ended, or else the condition.
    fn why(&self) -> Option<String> {
        self.last_run.clone().or_else(|| self.sentence.clone())
    }
}

fn tag(item: &AnnouncedItem) -> String {
    let cause = item.incident.cause.tag();
    match item.kind {
        AnnouncementKind::Opened | AnnouncementKind::Worse => cause.to_owned(),
        AnnouncementKind::Flapping => "FLAPPING".to_owned(),
        AnnouncementKind::Reminder => format!("STILL {cause}"),
        AnnouncementKind::Over => match item.incident.closed {
            Some((_, IncidentEnd::Untracked | IncidentEnd::Removed)) => "CLOSED".to_owned(),
            Some((_, IncidentEnd::Recovered)) | None => "OK".to_owned(),
        },
    }
}

fn cause_sentence(cause: Cause) -> String {
    match cause {
        Cause::Reason(reason) => reason.sentence().to_owned(),
        Cause::ScoreLow => "Starts are spread unevenly.".to_owned(),
        Cause::SchedulerAway => "The scheduler was away.".to_owned(),
    }
}

/// `a, b, c and 9 more`.
fn named(names: &[&str]) -> String {
    let shown: Vec<&str> = names.iter().copied().take(NAMED_MAX).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        n_more => format!("{} and {n_more} more", shown.join(", ")),
    }
}

/// `20 LATE, 6 FAILED, 5 OK`.
fn counted(items: &[AnnouncedItem]) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in items {
        *counts.entry(tag(item)).or_default() += 1;
    }
    counts.iter().map(|(tag, n)| format!("{n} {tag}")).collect::<Vec<_>>().join(", ")
}

fn more(body: &mut String, n_items: usize) {
    if LISTED_MAX < n_items {
        let _ = writeln!(body, "and {} more", n_items - LISTED_MAX);
    }
}

fn footer(body: &mut String, link: Option<&str>, id: &str) {
    if let Some(link) = link {
        let _ = write!(body, "\n{link}\n");
    }
    let _ = write!(body, "\nAlert {id}\n");
}

fn job_page(public_url: &str, key: &str) -> String {
    let key = key.replace('@', "%40").replace(':', "%3A");
    format!("{}/jobs/{key}", public_url.trim_end_matches('/'))
}

/// A piece of foreign text on one line: no control characters, and not too long.
fn piece(text: &str) -> String {
    let plain = |it: char| if it.is_control() || is_invisible(it) { ' ' } else { it };
    let text: String = text.chars().map(plain).collect();
    let text = text.trim();
    if text.chars().count() <= PIECE_CHARS_MAX {
        return text.to_owned();
    }
    let head: String = text.chars().take(PIECE_CHARS_MAX / 2).collect();
    let n_chars = text.chars().count();
    let tail: String = text.chars().skip(n_chars - PIECE_CHARS_MAX / 2).collect();
    format!("{head} … {tail}")
}

/// Characters that change the direction or the look of the text around them.
fn is_invisible(it: char) -> bool {
    matches!(it, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
