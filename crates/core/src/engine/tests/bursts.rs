//! When more comes due at once than the store can take, starts go first.

use std::collections::BTreeMap;

use super::harness::{Harness, named};
use crate::engine::{Event, Settings};
use crate::ids::ExtraId;
use crate::job::sample::instant;
use crate::job::{Extra, HttpTarget, Job, Target};
use crate::lease::Timings;
use crate::run::Outcome;
use crate::store::Version;
use crate::time::Duration;

fn settings(lease: Option<Timings>) -> Settings {
    let mut settings = Settings::new("n1".parse().unwrap(), lease, 100);
    settings.dispatch.batch = 2;
    settings.dispatch.ends_wait = Duration::from_secs(5);
    settings
}

/// Seven jobs that are due at once: two run, two batches of two are claimed (one batch where others share the store), and the
/// rest waits.
struct Burst {
    harness: Harness,
    running: [String; 2],
}

impl Burst {
    fn new(settings: Settings, change: impl Fn(&mut Job)) -> Burst {
        let mut jobs = ["a", "b", "c", "d", "e", "f", "g"].map(|key| named(key, "every 1h", "1s"));
        jobs.iter_mut().for_each(change);
        let mut harness = Harness::with(settings, &jobs, "10:00");
        let running = harness.grant_once();
        let starts: Vec<&str> = running.split("; ").filter_map(|it| it.strip_prefix("start ")).collect();
        let [first, second] = starts[..] else { panic!("{running}") };
        let n_asked =
            running.split("; ").find_map(|it| it.strip_prefix("claim ")).unwrap().split(' ').count();
        assert_eq!(n_asked, 2, "{running}");
        Burst { running: [first, second].map(str::to_owned), harness }
    }

    /// One of the two is over; what the engine does then, with numbers for their names.
    fn ends(&mut self, no: usize, outcome: Outcome) -> String {
        let (run, over) = (self.harness.run_of(&self.running[no]), self.harness.over(outcome));
        let said = self.harness.tell(Event::Ended { run, over });
        self.numbered(&said)
    }

    fn numbered(&self, said: &str) -> String {
        let number = |word: &str| {
            let no = self.running.iter().position(|it| it == word);
            no.map_or_else(|| word.to_owned(), |no| no.to_string())
        };
        said.split(' ').map(number).collect::<Vec<_>>().join(" ")
    }
}

#[test]
fn good_ends_wait_until_no_more_start_than_go_into_one_batch() {
    let mut burst = Burst::new(settings(None), |_| {});
    assert_eq!(burst.ends(1, Outcome::Succeeded), "");
    let said = burst.harness.grant_once();
    assert!(said.contains("claim") && burst.numbered(&said).ends_with("; end 1 succeeded"), "{said}");
}

#[test]
fn they_wait_while_batches_are_full() {
    let mut settings = settings(None);
    settings.dispatch.batch = 1;
    let jobs = ["a", "b", "c", "d", "e"].map(|key| named(key, "every 1h", "1s"));
    let mut harness = Harness::with(settings, &jobs, "10:00");
    let mut said = harness.grant_once();
    for _ in 0..2 {
        let started = said.split("; ").find_map(|it| it.strip_prefix("start ")).unwrap();
        let (run, over) = (harness.run_of(started), harness.over(Outcome::Succeeded));
        assert_eq!(harness.tell(Event::Ended { run, over }), "");
        said = harness.grant_once();
        assert!(said.contains("claim") && !said.contains("end"), "{said}");
    }
    said = harness.grant_once();
    assert_eq!(said.matches("succeeded").count(), 2, "nothing more starts: {said}");
}

#[test]
fn they_wait_no_longer_than_a_few_seconds() {
    let mut burst = Burst::new(settings(None), |_| {});
    assert_eq!(burst.ends(0, Outcome::Succeeded), "");
    let said = burst.harness.at("10:00:04");
    assert!(!said.contains("end"), "{said}");
    let said = burst.harness.at("10:00:05");
    assert!(burst.numbered(&said).starts_with("end 0 succeeded"), "{said}");
}

#[test]
fn what_somebody_waits_for_goes_at_once_and_takes_the_others_along() {
    let mut burst = Burst::new(settings(None), |_| {});
    assert_eq!(burst.ends(0, Outcome::Succeeded), "");
    let said = burst.ends(1, Outcome::Failed);
    assert_eq!(said, "end 0 succeeded 1 failed", "it may be tried again");

    // As the harness reports it.
    let mut burst = Burst::new(settings(None), |job| job.retry.not_on_exit_codes = vec![0]);
    assert_eq!(
        burst.ends(0, Outcome::Failed),
        "end 0 failed",
        "people want to know, though nothing waits for it"
    );

    let mut burst = Burst::new(settings(None), |job| job.max_parallel_of_name = Some(1));
    assert_eq!(burst.ends(0, Outcome::Succeeded), "end 0 succeeded", "its place is free");

    let http = HttpTarget {
        url: "http://localhost/".to_owned(),
        headers: BTreeMap::new(),
        timeout: None,
        idempotent: false,
    };
    let mut burst = Burst::new(settings(None), |job| job.target = Target::Http(http.clone()));
    assert_eq!(burst.ends(0, Outcome::Succeeded), "end 0 succeeded", "nobody else knows how it ended");

    let every = |period: &str| {
        let schedule = named("a", period, "1s").schedule.clone();
        Burst::new(settings(None), move |job| job.schedule = schedule.clone())
    };
    assert_eq!(every("every 5s").ends(0, Outcome::Succeeded), "end 0 succeeded", "it is due again soon");
    assert_eq!(every("every 6s").ends(0, Outcome::Succeeded), "");

    let mut burst = Burst::new(settings(None), |_| {});
    let row = burst.harness.rows.get_mut(burst.running[0].as_str()).unwrap();
    row.state.extras.push(Extra::manual(ExtraId(1), instant("10:00")));
    row.version = Version(row.version.0 + 1);
    burst.harness.load();
    assert_eq!(burst.ends(0, Outcome::Succeeded), "end 0 succeeded", "somebody asked for a run");
}

#[test]
fn the_next_batch_is_asked_for_while_the_store_is_at_the_one_before() {
    let asked = |lease: Option<Timings>, n_jobs: usize| {
        let keys = ["a", "b", "c", "d", "e", "f", "g"];
        let jobs: Vec<Job> = keys[..n_jobs].iter().map(|key| named(key, "every 1h", "1s")).collect();
        let mut harness = Harness::with(settings(lease), &jobs, "10:00");
        let mut seen = vec![harness.n_bids()];
        for _ in 0..2 {
            harness.grant_once();
            seen.push(harness.n_bids());
        }
        seen
    };
    assert_eq!(asked(None, 7), [vec![2, 2], vec![2, 2], vec![2, 1]]);
    assert_eq!(asked(None, 3), [vec![2, 1], vec![1], vec![]]);
    assert_eq!(asked(None, 1), [vec![1], vec![], vec![]]);
    assert_eq!(asked(Some(Timings::default()), 7), [[2], [2], [2]], "others share the store");
}

#[test]
fn where_others_share_the_store_nothing_waits() {
    let mut burst = Burst::new(settings(Some(Timings::default())), |_| {});
    assert_eq!(burst.ends(0, Outcome::Succeeded), "end 0 succeeded");
}

#[test]
fn an_end_waits_only_while_something_starts() {
    let mut burst = Burst::new(settings(None), |_| {});
    assert_eq!(burst.ends(0, Outcome::Succeeded), "");
    // The next jobs do not start: this node is to end.
    assert_eq!(burst.harness.tell(Event::Drain(true)), "", "the answer is on its way");
    let said = burst.harness.grant_once();
    assert!(burst.numbered(&said).ends_with("; end 0 succeeded"), "{said}");
}
