//! Jobs that are not there yet, as people describe them: `400 every 6h taking 2m`.

use std::fmt;
use std::str::FromStr;

use evenbeat_core::ids::{JobKey, NameError, Pool, Site};
use evenbeat_core::job::{CommandTarget, Job, Target};
use evenbeat_core::schedule::Schedule;
use evenbeat_core::time::{Duration, DurationError};

/// Most jobs that can be made up.
pub const ADDED_MAX: u32 = 100_000;

/// Jobs of one kind that come on top of a fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddedJobs {
    /// How many.
    pub n: u32,
    /// How often each.
    pub every: Duration,
    /// How long each run takes.
    pub taking: Duration,
    /// The capacity they draw on.
    pub pool: Pool,
    /// The site they share, if any.
    pub site: Option<Site>,
    /// Units that each run takes.
    pub cost: u32,
    /// How long after it is due a run must be complete. If none: until the next one is due.
    pub within: Option<Duration>,
}

impl AddedJobs {
    /// `n` such jobs; `idx` tells several kinds apart.
    pub fn jobs(&self, n: u32, idx: usize) -> Vec<Job> {
        (1..=n).filter_map(|number| Some(self.job(added_key(idx, number)?))).collect()
    }

    fn job(&self, key: JobKey) -> Job {
        let target =
            Target::Command(CommandTarget { argv: vec!["true".to_owned()], ..CommandTarget::default() });
        let schedule = Schedule::Every { interval: self.every, finish_within: self.within };
        let mut job = Job::new(key, target, schedule);
        job.estimate = Some(self.taking);
        job.place.pool = self.pool.clone();
        job.place.cost = self.cost;
        job.site.clone_from(&self.site);
        job
    }
}

fn added_key(idx: usize, number: u32) -> Option<JobKey> {
    format!("added-{}-{number:05}@what-if", idx + 1).parse().ok()
}

/// Why a text does not describe jobs to add.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddedError {
    /// Not of this form.
    #[error(
        "{trouble} (write `400 every 6h taking 2m`, and where it matters `within 1h`, `pool crawl`, `site shop.example`, `cost 2`)"
    )]
    Form {
        /// What is missing or unexpected.
        trouble: String,
    },
    /// The number of jobs.
    #[error("`{text}` is not a number of jobs (write `400 every 6h taking 2m`; up to {ADDED_MAX} jobs)")]
    Number {
        /// What was written.
        text: String,
    },
    /// The cost.
    #[error("`{text}` is not a cost (write a whole number of units, 1 or more)")]
    Cost {
        /// What was written.
        text: String,
    },
    /// A length of time.
    #[error("{what}: {source}")]
    Length { what: &'static str, source: DurationError },
    /// A name.
    #[error(transparent)]
    Name(#[from] NameError),
}

impl FromStr for AddedJobs {
    type Err = AddedError;

    fn from_str(text: &str) -> Result<AddedJobs, AddedError> {
        let form = |trouble: String| AddedError::Form { trouble };
        let mut words = text.split_whitespace();
        let number = words.next().ok_or_else(|| form("nothing is added".to_owned()))?;
        let n = whole(number).filter(|n| *n <= ADDED_MAX);
        let n = n.ok_or_else(|| AddedError::Number { text: number.to_owned() })?;
        let (mut every, mut taking, mut within) = (None, None, None);
        let (mut pool, mut site, mut cost) = (None, None, None);
        while let Some(word) = words.next() {
            let value = words.next().ok_or_else(|| form(format!("nothing follows `{word}`")));
            let is_again = match word {
                "every" => every.replace(length("every", value?)?).is_some(),
                "taking" => taking.replace(length("taking", value?)?).is_some(),
                "within" => within.replace(length("within", value?)?).is_some(),
                "pool" => pool.replace(value?.parse::<Pool>()?).is_some(),
                "site" => site.replace(value?.parse::<Site>()?).is_some(),
                "cost" => {
                    let value = value?;
                    let units = whole(value).ok_or_else(|| AddedError::Cost { text: value.to_owned() })?;
                    cost.replace(units).is_some()
                }
                // What people write around the number.
                "job" | "jobs" if every.is_none() && value.as_ref().is_ok_and(|it| *it == "every") => {
                    let value = words.next().ok_or_else(|| form("nothing follows `every`".to_owned()));
                    every.replace(length("every", value?)?).is_some()
                }
                _ => return Err(form(format!("`{word}` is not understood"))),
            };
            if is_again {
                return Err(form(format!("`{word}` is given twice")));
            }
        }
        Ok(AddedJobs {
            n,
            every: every.ok_or_else(|| form("it does not say how often: `every` is missing".to_owned()))?,
            taking: taking.ok_or_else(|| form("it does not say how long: `taking` is missing".to_owned()))?,
            pool: pool.unwrap_or_else(Pool::default_pool),
            site,
            cost: cost.unwrap_or(1),
            within,
        })
    }
}

fn whole(text: &str) -> Option<u32> {
    text.replace([',', '_'], "").parse().ok().filter(|n| 0 < *n)
}

fn length(what: &'static str, text: &str) -> Result<Duration, AddedError> {
    text.parse().map_err(|source| AddedError::Length { what, source })
}

impl fmt::Display for AddedJobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} every {} taking {}", self.n, self.every, self.taking)?;
        if let Some(within) = self.within {
            write!(f, " within {within}")?;
        }
        if self.pool != Pool::default_pool() {
            write!(f, " pool {}", self.pool)?;
        }
        if let Some(site) = &self.site {
            write!(f, " site {site}")?;
        }
        if self.cost != 1 {
            write!(f, " cost {}", self.cost)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match text.parse::<AddedJobs>() {
            Ok(added) => added.to_string(),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown.split(" (write").next(), Some(expected), "{text}");
    }

    #[test]
    fn jobs_are_described_in_words() {
        check("400 every 6h taking 2m", "400 every 6h taking 2m");
        check("1,000 jobs every 1h taking 90s", "1000 every 1h taking 1m30s");
        check(
            "3 taking 5s every 1d cost 2 pool crawl site shop.example within 90m",
            "3 every 1d taking 5s within 1h30m pool crawl site shop.example cost 2",
        );
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        check("", "nothing is added");
        check("many every 6h taking 2m", "`many` is not a number of jobs");
        check("0 every 6h taking 2m", "`0` is not a number of jobs");
        check("100001 every 6h taking 2m", "`100001` is not a number of jobs");
        check("400 every 6h", "it does not say how long: `taking` is missing");
        check("400 taking 6h", "it does not say how often: `every` is missing");
        check("400 each 6h taking 2m", "`each` is not understood");
        check("400 every 6h taking", "nothing follows `taking`");
        check("400 every 6h every 7h taking 2m", "`every` is given twice");
        check("400 every 6 taking 2m", "every: duration `6` has no unit");
        check("400 every 6h taking 2m cost 0", "`0` is not a cost");
    }

    #[test]
    fn each_job_is_one_of_its_kind() {
        let added: AddedJobs = "3 every 6h taking 2m site shop cost 2".parse().unwrap();
        let jobs = added.jobs(2, 0);
        assert_eq!(
            jobs.iter().map(|it| it.key.as_str()).collect::<Vec<_>>(),
            ["added-1-00001@what-if", "added-1-00002@what-if"]
        );
        assert_eq!((jobs[0].place.cost, jobs[0].estimate), (2, Some(Duration::from_mins(2))));
    }
}
