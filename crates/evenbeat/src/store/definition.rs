//! A job's definition as text, and back.
//!
//! The text is the job as one would write it ([`evenbeat_core::spec::written`]), so that whoever looks into the
//! database can read it. The terms are kept once more by themselves: few different ones make up a fleet, and a
//! text that was read before need not be read again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{CommandTarget, Job, JobState, Pause, PausedBy, Target, Terms};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::spec::{JobSpec, written};
use evenbeat_core::time::Duration;
use evenbeat_core::zone::Zones;

use crate::value_json as json;

/// So many different terms are remembered; a fleet with more reads them again.
const TERMS_MAX: usize = 10_000;

/// A definition as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// All of it.
    pub definition: String,
    /// What decisions need.
    pub terms: String,
}

/// A job as text.
pub fn stored(job: &Job) -> Stored {
    Stored {
        definition: json::to_text(&written(job)),
        terms: json::to_text(&written(&bare(job.terms.clone()))),
    }
}

/// What was stored and cannot be read (any more).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// What is wrong with it.
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

/// A zone is a table of all its changes, so each is made once for all jobs.
static ZONES: Mutex<Zones> = Mutex::new(Zones::new());

/// A job whose definition cannot be read: it keeps its key and does nothing until somebody mends it (Q4).
pub fn broken_job(key: &JobKey) -> Job {
    let mut job = bare(broken_terms());
    job.key = key.clone();
    job
}

/// Its memory: paused, and saying why.
pub fn broken_state(state: JobState, Unreadable { why }: Unreadable) -> JobState {
    JobState { pause: Some(Box::new(Pause { by: PausedBy::Invalid, reason: Some(why) })), ..state }
}

fn broken_terms() -> Terms {
    let never = Schedule::Every { interval: Duration::from_hours(24), finish_within: None };
    Terms { enabled: false, ..Terms::new(never) }
}

/// A job that is nothing but its terms.
fn bare(terms: Terms) -> Job {
    let command = CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() };
    let key = "x".parse().unwrap_or_else(|_| unreachable!("a letter is a key"));
    Job { terms, ..Job::new(key, Target::Command(command), broken_terms().schedule) }
}

/// Terms that were read before.
#[derive(Debug, Default)]
pub struct TermsCache {
    known: Mutex<KnownTerms>,
}

type KnownTerms = HashMap<Box<[u8]>, Arc<Terms>, BuildHasherDefault<QuickHasher>>;

/// Looked up a million times at start-up, among a few texts that are long: a quick hash is half of that. Whoever makes
/// texts that collide must be allowed to write jobs, and slows down the reading of at most [`TERMS_MAX`] of them.
#[derive(Debug, Default)]
struct QuickHasher(u64);

impl QuickHasher {
    fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_ne_bytes(*word));
        }
        for byte in rest {
            self.add((*byte).into());
        }
    }

    /// The map looks at the upper bits and the lower ones.
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

impl TermsCache {
    /// The terms that a text says.
    pub fn terms(&self, text: &str) -> Result<Arc<Terms>, Unreadable> {
        if let Some(terms) = self.known(text.as_bytes()) {
            return Ok(terms);
        }
        let terms = Arc::new(job(text)?.terms);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < TERMS_MAX {
            known.insert(text.as_bytes().into(), Arc::clone(&terms));
        }
        Ok(terms)
    }

    /// The terms of a text that was read before, as the database has it.
    pub fn known(&self, text: &[u8]) -> Option<Arc<Terms>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(text).map(Arc::clone)
    }

    /// The same; terms under which nothing ever runs if the text cannot be read, and why.
    pub fn terms_or_none(&self, text: &str) -> (Arc<Terms>, Option<Unreadable>) {
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
        let stored = stored(&sample);
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
        assert_eq!(stored(&one).terms, stored(&other).terms);
        assert_ne!(stored(&one).definition, stored(&other).definition);
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
        assert!(!TermsCache::default().terms_or_none("{").0.enabled);
    }
}
