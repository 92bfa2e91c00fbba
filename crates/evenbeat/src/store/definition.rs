//! A job's definition as text, and back.
//!
//! The text is the job as you would write it ([`evenbeat_core::spec::written`]), so that people who look into the
//! database can read it. The terms are stored separately too: a fleet has few different ones, so each text is parsed
//! once.

use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{CommandTarget, Job, JobState, Pause, PausedBy, Target, Terms};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::spec::{JobSpec, written};
use evenbeat_core::time::Duration;
use evenbeat_core::zone::Zones;

use super::generations::Generations;
use crate::value_json as json;

/// At least this many different terms are remembered, and at most twice as many. A fleet with more reads them again.
const TERMS_SIZE: usize = 10_000;

/// A job as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionText {
    /// The whole job.
    pub definition: String,
    /// The part that decisions need.
    pub terms: String,
}

/// A job as text.
pub fn to_text(job: &Job) -> DefinitionText {
    DefinitionText {
        definition: json::to_text(&written(job)),
        terms: json::to_text(&written(&bare(job.terms.clone()))),
    }
}

/// Why a stored definition cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// All its errors, in one line.
    pub why: String,
}

/// The job of a definition.
pub fn job(definition: &str) -> Result<Job, Unreadable> {
    let Some(table) = json::from_text(definition) else {
        return Err(Unreadable { why: "its stored definition is not a JSON object".to_owned() });
    };
    let mut zones = ZONES.lock().unwrap_or_else(PoisonError::into_inner);
    JobSpec::read_stored(table).restore(&mut zones).map_err(|faults| Unreadable {
        why: faults.iter().map(|fault| fault.error.to_string()).collect::<Vec<_>>().join("; "),
    })
}

/// Each zone is built once for all jobs: it is a table of all its clock changes.
static ZONES: Mutex<Zones> = Mutex::new(Zones::new());

/// A job whose definition cannot be read. It keeps its key and does nothing until it is repaired (Q4).
pub fn broken_job(key: &JobKey) -> Job {
    let mut job = bare(broken_terms());
    job.key = key.clone();
    job
}

/// The state of a job whose definition cannot be read: paused, with the reason.
pub fn broken_state(state: JobState, Unreadable { why }: Unreadable) -> JobState {
    JobState { pause: Some(Box::new(Pause { by: PausedBy::Invalid, reason: Some(why) })), ..state }
}

fn broken_terms() -> Terms {
    let never = Schedule::Every { interval: Duration::from_hours(24), finish_within: None };
    Terms { enabled: false, ..Terms::new(never) }
}

/// A job with these terms and nothing else that matters.
fn bare(terms: Terms) -> Job {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    let key = "x".parse().unwrap_or_else(|_| unreachable!("a letter is a key"));
    Job { terms, ..Job::new(key, Target::Command(command), broken_terms().schedule) }
}

/// Reads terms, and remembers them.
#[derive(Debug, Default)]
pub struct TermsCache {
    /// By text, in bytes: a database need not check the encoding of a text that is known.
    read: Generations<Box<[u8]>, Arc<Terms>, TERMS_SIZE>,
}

impl TermsCache {
    /// The terms of a text.
    pub fn terms(&self, text: &str) -> Result<Arc<Terms>, Unreadable> {
        if let Some(terms) = self.cached(text.as_bytes()) {
            return Ok(terms);
        }
        let terms = Arc::new(job(text)?.terms);
        self.read.put(text.as_bytes().into(), Arc::clone(&terms));
        Ok(terms)
    }

    /// The terms of a text that was read before.
    pub fn cached(&self, text: &[u8]) -> Option<Arc<Terms>> {
        self.read.get(text, Arc::clone)
    }

    /// The terms of a text. If it cannot be read: terms under which nothing ever runs, and the reason.
    pub fn terms_or_broken(&self, text: &str) -> (Arc<Terms>, Option<Unreadable>) {
        match self.terms(text) {
            Ok(terms) => (terms, None),
            Err(unreadable) => (Arc::new(broken_terms()), Some(unreadable)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Job {
        let mut job = bare(broken_terms());
        job.terms.place.cost = 3;
        job.key = "shop@de".parse().unwrap();
        job.labels.insert("team".to_owned(), "prices".to_owned());
        job
    }

    #[test]
    fn a_definition_comes_back() {
        let sample = sample();
        let stored = to_text(&sample);
        assert_eq!(job(&stored.definition).unwrap(), sample);
        let cache = TermsCache::default();
        let terms = cache.terms(&stored.terms).unwrap();
        assert_eq!(*terms, sample.terms);
        assert!(Arc::ptr_eq(&terms, &cache.terms(&stored.terms).unwrap()), "read once");
    }

    #[test]
    fn jobs_that_differ_only_in_what_they_run_share_their_terms() {
        let one = sample();
        let other = Job {
            key: "books@de".parse().unwrap(),
            labels: std::collections::BTreeMap::default(),
            ..one.clone()
        };
        assert_eq!(to_text(&one).terms, to_text(&other).terms);
        assert_ne!(to_text(&one).definition, to_text(&other).definition);
    }

    #[test]
    fn what_cannot_be_read_does_nothing_and_says_why() {
        let unreadable = job(r#"{"name": "shop", "command": ["true"], "cron": "61 * * * *"}"#).unwrap_err();
        assert!(unreadable.why.contains("61"), "{}", unreadable.why);
        let state = broken_state(JobState::new(evenbeat_core::time::Timestamp::UNIX_EPOCH), unreadable);
        assert!(state.pause.is_some_and(|pause| pause.by == PausedBy::Invalid));
        let key: JobKey = "shop".parse().unwrap();
        let broken = broken_job(&key);
        assert_eq!((broken.key.clone(), broken.enabled), (key, false));
        assert!(!TermsCache::default().terms_or_broken("{").0.enabled);
    }
}
