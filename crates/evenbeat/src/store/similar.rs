//! Definitions that differ only in the name of the job and the words of its command.
//!
//! Reading a definition takes longer than claiming its job. Most jobs of a fleet are the same except for their key and
//! their command, so what they have in common is read once and the rest is put in. Any other definition is remembered
//! as a whole.

use std::sync::Arc;

use evenbeat_core::ids::JobKey;
use evenbeat_core::job::{CommandTarget, Job, Target};
use serde::de::IgnoredAny;

use super::definition::{self, Unreadable};
use super::generations::Generations;

/// At least this many different definitions are remembered, and at most twice as many. A fleet with more reads them
/// again.
const SIMILAR_SIZE: usize = 10_000;
/// A command with more words is left to the full reader, which knows the limit.
const WORDS_MAX: usize = 64;

/// Reads definitions, and remembers what they have in common.
#[derive(Debug, Default)]
pub struct SimilarJobs {
    read: Generations<Box<str>, Arc<Job>, SIMILAR_SIZE>,
}

impl SimilarJobs {
    /// The job of a definition that is stored under this key, just as [`definition::job`] reads it.
    pub fn job(&self, key: &JobKey, text: &str) -> Result<Arc<Job>, Unreadable> {
        match Parts::of(text).filter(|it| it.is_of(key)) {
            Some(parts) => self.similar(key, text, parts),
            None => self.cached_or_read(text, text),
        }
    }

    fn similar(&self, key: &JobKey, text: &str, parts: Parts<'_>) -> Result<Arc<Job>, Unreadable> {
        let similar = self.cached_or_read(&parts.common, text)?;
        if similar.key == *key && matches!(&similar.target, Target::Command(it) if it.argv == parts.argv) {
            return Ok(similar);
        }
        let target = Target::Command(CommandTarget { argv: parts.argv, ..CommandTarget::default() });
        // Nothing else differs: no field of a stored definition depends on another one.
        let job = Job { key: key.clone(), target, ..(*similar).clone() };
        debug_assert_eq!(Ok(&job), definition::job(text).as_ref(), "similar to `{}`", similar.key);
        Ok(Arc::new(job))
    }

    fn cached_or_read(&self, cache_key: &str, text: &str) -> Result<Arc<Job>, Unreadable> {
        if let Some(job) = self.read.get(cache_key, Arc::clone) {
            return Ok(job);
        }
        let job = Arc::new(definition::job(text)?);
        self.read.put(cache_key.into(), Arc::clone(&job));
        Ok(job)
    }
}

/// A definition, taken apart.
#[derive(Debug, PartialEq, Eq)]
struct Parts<'a> {
    name: &'a str,
    configuration: Option<&'a str>,
    argv: Vec<String>,
    /// All other fields.
    common: String,
}

impl<'a> Parts<'a> {
    /// Returns None if the text is not formatted as we write it, or if its target is not a plain command.
    fn of(text: &'a str) -> Option<Parts<'a>> {
        let (mut name, mut configuration, mut argv) = (None, None, None);
        let mut common = String::with_capacity(text.len());
        let mut rest = text.strip_prefix('{')?;
        loop {
            let (field, value, behind) = member(rest)?;
            let is_new = match field {
                "name" => name.replace(plain(value)?).is_none(),
                "configuration" => configuration.replace(plain(value)?).is_none(),
                "command" => argv.replace(words(value)?).is_none(),
                _ => {
                    common.push_str(field);
                    common.push(':');
                    common.push_str(value);
                    common.push('\n');
                    true
                }
            };
            if !is_new {
                return None;
            }
            rest = match behind.strip_prefix(',') {
                Some(rest) => rest,
                None if behind == "}" => break,
                None => return None,
            };
        }
        Some(Parts { name: name?, configuration, argv: argv?, common })
    }

    fn is_of(&self, key: &JobKey) -> bool {
        key.name() == self.name && key.configuration() == self.configuration
    }
}

/// The name of the first member of an object, its value as text, and the rest of the object.
fn member(text: &str) -> Option<(&str, &str, &str)> {
    let (field, rest) = text.strip_prefix('"')?.split_once('"')?;
    let rest = rest.strip_prefix(':')?;
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let (value, behind) = rest.split_at_checked(values.byte_offset())?;
    (!field.contains('\\')).then_some((field, value, behind))
}

/// The content of a JSON string without escapes.
fn plain(value: &str) -> Option<&str> {
    let text = value.strip_prefix('"')?.strip_suffix('"')?;
    (!text.contains(['"', '\\'])).then_some(text)
}

/// The words of a command that is certainly valid.
fn words(value: &str) -> Option<Vec<String>> {
    let words: Vec<String> = value.starts_with('[').then(|| serde_json::from_str(value).ok())??;
    let is_command = words.first().is_some_and(|program| !program.is_empty())
        && words.len() <= WORDS_MAX
        && words.iter().all(|word| !word.contains('\0'));
    is_command.then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;
    use evenbeat_core::schedule::Schedule;
    use evenbeat_core::time::Duration;

    fn sample(key: &str, argv: &[&str]) -> Job {
        let argv = argv.iter().map(|it| (*it).to_owned()).collect();
        let command = CommandTarget { argv, ..CommandTarget::default() };
        let schedule = Schedule::Every { interval: Duration::from_hours(1), finish_within: None };
        let mut job = Job::new(key.parse().unwrap(), Target::Command(command), schedule);
        job.labels.insert("a \"team\", {".to_owned(), "x\\y]".to_owned());
        job.terms.site = Some("shop".parse().unwrap());
        job
    }

    /// Whether the job was put together from a similar one. It must be what the full reader gives.
    #[track_caller]
    fn check(jobs: &SimilarJobs, key: &str, text: &str, is_known: bool) {
        let key: JobKey = key.parse().unwrap();
        let parts = Parts::of(text).filter(|it| it.is_of(&key));
        let found = parts.is_some_and(|it| jobs.read.get(&*it.common, |_| ()).is_some());
        assert_eq!(found, is_known, "{text}");
        assert_eq!(jobs.job(&key, text).map(|it| (*it).clone()), definition::job(text), "{text}");
    }

    #[test]
    fn a_similar_job_is_put_together() {
        let jobs = SimilarJobs::default();
        let text = |job: &Job| definition::to_text(job).definition;
        check(&jobs, "a", &text(&sample("a", &["crawl", "1"])), false);
        check(&jobs, "b@de", &text(&sample("b@de", &["other \"quoted\"", "", "ü"])), true);
        let mut another = sample("c", &["crawl"]);
        another.labels.insert("team".to_owned(), "prices".to_owned());
        check(&jobs, "c", &text(&another), false);
        check(&jobs, "d", &text(&sample("d", &["crawl"])), true);
    }

    #[test]
    fn what_is_not_as_we_write_it_is_read_the_long_way() {
        let jobs = SimilarJobs::default();
        let plain = definition::to_text(&sample("a", &["crawl"])).definition;
        check(&jobs, "a", &plain, false);
        // Stored under another key than it says.
        check(&jobs, "b", &plain, false);
        for (was, is) in [
            ("[\"crawl\"]", "[\"\"]"),
            ("[\"crawl\"]", "[]"),
            ("[\"crawl\"]", "[1]"),
            ("[\"crawl\"]", "\"crawl\""),
            ("[\"crawl\"]", "[\"a\\u0000b\"]"),
            ("[\"crawl\"]", "{\"argv\":[\"crawl\"],\"cwd\":\"/\"}"),
            ("{\"command\"", "{ \"command\""),
            ("{\"command\"", "{\"name\":\"a\",\"command\""),
            ("\"name\":\"a\"", "\"name\":\"\\u0061\""),
            ("\"name\":\"a\"", "\"name\":7"),
        ] {
            let text = plain.replacen(was, is, 1);
            assert_ne!(text, plain);
            check(&jobs, "a", &text, false);
        }
        check(&jobs, "a", "", false);
        check(&jobs, "a", "{", false);
        check(&jobs, "a", "{}", false);
        check(&jobs, "a", &plain, true);
    }
}
