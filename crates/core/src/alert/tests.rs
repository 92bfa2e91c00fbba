use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::condition::Reason;
use crate::ids::Channel;
use crate::job::sample::{self, instant, length};
use crate::job::{Job, JobAlerts};
use crate::time::{Duration, Timestamp};

fn channel(name: &str) -> Channel {
    name.parse().unwrap()
}

fn rules() -> AlertRules {
    AlertRules {
        default: vec![channel("ops")],
        channels: [(channel("ops"), 60), (channel("shop"), 60)].into(),
        ..AlertRules::default()
    }
}

fn job(name: &str) -> Job {
    Job { key: name.parse().unwrap(), ..sample::job("every 1h") }
}

/// A fleet that is looked at, by the clock.
struct Watch {
    rules: AlertRules,
    mutes: Vec<Mute>,
    state: AlertState,
    jobs: Vec<JobHealth>,
    score: Option<(f64, f64)>,
    now: Timestamp,
}

impl Watch {
    fn new(rules: AlertRules) -> Watch {
        let state = AlertState::default();
        Watch { rules, mutes: Vec::new(), state, jobs: Vec::new(), score: None, now: instant("10:00") }
    }

    fn with(mut self, job: Job) -> Watch {
        self.jobs.push(JobHealth {
            job: Arc::new(job),
            reason: Some(Reason::Ok),
            since: self.now,
            failure_count: 0,
            is_retried: false,
            last_good_at: Some(self.now),
        });
        self
    }

    fn of(name: &str) -> Watch {
        Watch::new(rules()).with(job(name))
    }

    fn health(&mut self, name: &str) -> &mut JobHealth {
        self.jobs.iter_mut().find(|it| it.job.key.as_str() == name).unwrap()
    }

    fn turn(&mut self, name: &str, reason: Reason) {
        let now = self.now;
        let health = self.health(name);
        (health.reason, health.since) = (Some(reason), now);
        match reason {
            Reason::Ok => (health.failure_count, health.last_good_at) = (0, Some(now)),
            Reason::LastRunFailed => health.failure_count += 1,
            _ => {}
        }
    }

    /// Lets time pass, with a look each second, and shows what was told: channel, and the subject of the message.
    fn after(&mut self, text: &str) -> Vec<String> {
        self.passes(text, Duration::from_secs(1))
    }

    fn passes(&mut self, text: &str, every: Duration) -> Vec<String> {
        let end = self.now + length(text);
        let mut told = Vec::new();
        while self.now < end {
            self.now = (self.now + every).min(end);
            told.extend(self.look());
        }
        told
    }

    fn look(&mut self) -> Vec<String> {
        let looked = self.state.look(self.now, &self.rules, &self.mutes, &self.jobs, self.score);
        let show = |it: &Announced| {
            let text = compose(it, &[].into(), None, None, self.now);
            format!("{}: {}", it.channel, text.subject)
        };
        looked.announced.iter().map(show).collect()
    }
}

fn silence() -> Vec<String> {
    Vec::new()
}

#[test]
fn a_late_job_is_told_once_and_so_is_its_recovery() {
    let mut watch = Watch::of("shop");
    assert_eq!(watch.after("1m"), silence());
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("10m"), ["ops: [LATE] shop, 11s over"]);
    watch.turn("shop", Reason::Ok);
    assert_eq!(watch.after("10m"), ["ops: [OK] shop, after 10m 10s"]);
}

#[test]
fn one_incident_tells_of_a_failure_and_of_the_deadline_after_it() {
    let mut watch = Watch::of("shop");
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m"), ["ops: [FAILED] shop, the last run failed"]);
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("1m"), ["ops: [LATE] shop, 11s over"]);
    // A lighter cause of the same trouble is no news.
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m"), silence());
    assert_eq!(watch.state.incidents().count(), 1);
}

#[test]
fn failures_count_only_once_retries_are_exhausted_or_too_many_failed() {
    let mut watch = Watch::of("shop");
    watch.health("shop").is_retried = true;
    for _ in 0..2 {
        watch.turn("shop", Reason::LastRunFailed);
        assert_eq!(watch.after("1m"), silence());
    }
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m"), ["ops: [FAILED] shop, the last run failed"]);

    let mut watch = Watch::of("shop");
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m").len(), 1, "nothing is tried again");

    // A deadline never waits.
    let mut watch = Watch::of("shop");
    watch.health("shop").is_retried = true;
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("1m").len(), 1);

    let own = JobAlerts { after_failures: Some(1), ..JobAlerts::default() };
    let mut watch = Watch::new(rules()).with(Job { alerts: own, ..job("shop") });
    watch.health("shop").is_retried = true;
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m").len(), 1);
}

#[test]
fn trouble_that_passes_before_anyone_is_told_is_not_told() {
    let mut watch = Watch::of("shop");
    watch.turn("shop", Reason::WillMissWaiting);
    assert_eq!(watch.after("5s"), silence());
    watch.turn("shop", Reason::Ok);
    assert_eq!(watch.after("1h"), silence());
}

#[test]
fn an_incident_ends_after_enough_good_runs() {
    let own = JobAlerts { recover_after: Some(3), ..JobAlerts::default() };
    let mut watch = Watch::new(rules()).with(Job { alerts: own, ..job("shop") });
    watch.turn("shop", Reason::LastRunFailed);
    assert_eq!(watch.after("1m").len(), 1);
    for _ in 0..2 {
        watch.turn("shop", Reason::Ok);
        assert_eq!(watch.after("1m"), silence());
    }
    watch.turn("shop", Reason::Ok);
    assert_eq!(watch.after("1m"), ["ops: [OK] shop, after 3m 10s"]);
}

#[test]
fn several_jobs_with_one_cause_are_one_message() {
    let mut watch = Watch::new(rules());
    for name in ["a", "b", "c", "d", "e"] {
        watch = watch.with(job(name));
    }
    for name in ["a", "b", "c", "d"] {
        watch.turn(name, Reason::DeadlinePassed);
        assert_eq!(watch.after("2s"), silence());
    }
    watch.turn("e", Reason::LastRunFailed);
    assert_eq!(
        watch.after("1m"),
        ["ops: [LATE] 4 jobs: a, b, c and 1 more", "ops: [FAILED] e, the last run failed"]
    );
    for name in ["a", "b", "c", "d", "e"] {
        watch.turn(name, Reason::Ok);
    }
    assert_eq!(watch.after("1m").len(), 2, "recoveries are grouped too");
}

#[test]
fn an_open_incident_is_told_again_once_a_day() {
    let mut watch = Watch::of("shop");
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("1m").len(), 1);
    let told = watch.passes("49h", Duration::from_mins(1));
    assert_eq!(told, ["ops: [STILL LATE] shop, 1d over", "ops: [STILL LATE] shop, 2d over"]);
}

#[test]
fn a_job_that_turns_to_and_fro_is_told_once() {
    let mut watch = Watch::of("shop");
    let mut told = Vec::new();
    for _ in 0..10 {
        watch.turn("shop", Reason::LastRunFailed);
        told.extend(watch.after("2m"));
        watch.turn("shop", Reason::Ok);
        told.extend(watch.after("2m"));
    }
    let flapping: Vec<&String> = told.iter().filter(|it| it.contains("FLAPPING")).collect();
    assert_eq!(flapping, ["ops: [FLAPPING] shop, 6 changes in 1h"], "{told:?}");
    assert_eq!(told.len(), 6, "{told:?}");
    // Calm again, and well.
    let told = watch.after("1h");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("ops: [OK] shop"), "{told:?}");
}

fn mute(scope: MuteScope, from: &str, to: &str) -> Mute {
    let (reason, actor) = ("maintenance".to_owned(), "ann".to_owned());
    Mute { id: 1, scope, starts_at: instant(from), ends_at: instant(to), reason, actor }
}

#[test]
fn after_a_mute_only_differences_are_told() {
    let mut watch = Watch::of("before").with(job("during")).with(job("both")).with(job("healed"));
    for name in ["before", "healed"] {
        watch.turn(name, Reason::DeadlinePassed);
    }
    assert_eq!(watch.after("1m").len(), 1);
    watch.mutes = vec![mute(MuteScope::Fleet, "10:01", "11:00")];
    watch.turn("during", Reason::DeadlinePassed);
    watch.turn("both", Reason::DeadlinePassed);
    watch.turn("healed", Reason::Ok);
    assert_eq!(watch.after("10m"), silence());
    watch.turn("both", Reason::Ok);
    assert_eq!(watch.after("10m"), silence());
    let told = watch.after("1h");
    assert_eq!(told, ["ops: [LATE] during, 59m over", "ops: [OK] healed, after 59m 59s"]);
}

#[test]
fn what_recovered_and_broke_again_during_a_mute_is_no_difference() {
    let mut watch = Watch::of("shop");
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("1m").len(), 1);
    watch.mutes = vec![mute(MuteScope::Jobs(KeyPattern::parse("sh*").unwrap()), "10:01", "10:30")];
    watch.turn("shop", Reason::Ok);
    assert_eq!(watch.after("5m"), silence());
    watch.turn("shop", Reason::DeadlinePassed);
    assert_eq!(watch.after("1h"), silence());
}

#[test]
fn a_mute_covers_what_it_names() {
    let mut shop = job("shop@test");
    shop.labels.insert("team".to_owned(), "web".to_owned());
    shop.site = Some("shop.example".parse().unwrap());
    let subject = AlertSubject::Job(shop.key.clone());
    let check = |kind: &str, value: &str, expected: Result<bool, &str>| {
        let covers = MuteScope::of_parts(kind, value).map(|scope| {
            assert_eq!(scope.parts(), (scope.parts().0, value.to_owned()));
            mute(scope, "10:00", "11:00").covers(&subject, Some(&shop))
        });
        assert_eq!(covers, expected.map_err(str::to_owned), "{kind} {value}");
    };
    check("fleet", "", Ok(true));
    check("jobs", "shop@test", Ok(true));
    check("jobs", "shop*", Ok(true));
    check("jobs", "*@test", Ok(true));
    check("jobs", "s*p@t*t", Ok(true));
    check("jobs", "shop", Ok(false));
    check("label", "team=web", Ok(true));
    check("label", "team=db", Ok(false));
    check("site", "shop.example", Ok(true));
    check("tenant", "acme", Ok(false));
    check("label", "team", Err("`team` is not a label; write `name=value`"));
    check("jobs", "a b", Err("no job key matches `a b`; write a key, or part of one with `*`"));
    check("pool", "x", Err("`pool` cannot be muted; use `fleet`, `jobs`, `label`, `site` or `tenant`"));
    let system = AlertSubject::System(SystemPart::Scheduler);
    assert!(mute(MuteScope::Fleet, "10:00", "11:00").covers(&system, None));
    assert!(!mute(MuteScope::Site("x".parse().unwrap()), "10:00", "11:00").covers(&system, None));
}

#[test]
fn our_own_outage_is_one_alert() {
    let mut watch = Watch::new(rules());
    let names: Vec<String> = (0..1_000).map(|no| format!("job-{no}")).collect();
    for name in &names {
        watch = watch.with(job(name));
    }
    assert_eq!(watch.look(), silence());
    // Two hours without a look; then everything is late.
    watch.now = watch.now + length("2h");
    for name in &names {
        watch.turn(name, Reason::DeadlinePassed);
    }
    assert_eq!(watch.after("1m"), ["ops: [AWAY] the scheduler was away for 2h, 1000 jobs are late"]);
    // A restart in between changes nothing.
    let incidents: Vec<Incident> = watch.state.incidents().cloned().collect();
    watch.state = AlertState::restored(incidents, Some(watch.now), []);
    for name in names.iter().skip(2) {
        watch.turn(name, Reason::Ok);
    }
    let told = watch.passes("30m", length("10s"));
    assert_eq!(
        told,
        ["ops: [LATE] 2 jobs: job-0, job-1", "ops: [OK] the scheduler has had time to catch up",]
    );
}

#[test]
fn a_low_score_is_told_until_it_is_high_again() {
    let mut watch = Watch::of("shop");
    watch.score = Some((0.41, 0.6));
    assert_eq!(watch.after("1m"), ["ops: [UNEVEN] starts are spread unevenly"]);
    watch.score = Some((0.97, 0.6));
    assert_eq!(watch.after("1m"), ["ops: [OK] starts are spread evenly again"]);
}

#[test]
fn a_channel_that_is_full_gets_a_summary_later() {
    let mut rules = rules();
    rules.channels.insert(channel("ops"), 2);
    let mut watch = Watch::new(rules).with(job("a")).with(job("b")).with(job("c")).with(job("d"));
    let mut told = Vec::new();
    for (name, reason) in [("a", Reason::DeadlinePassed), ("b", Reason::LastRunFailed)] {
        watch.turn(name, reason);
        told.extend(watch.after("1m"));
    }
    assert_eq!(told.len(), 2);
    watch.turn("c", Reason::Overrunning);
    watch.turn("d", Reason::PausedFailures);
    watch.turn("a", Reason::Ok);
    assert_eq!(watch.after("50m"), silence());
    let told = watch.after("1h");
    assert_eq!(told.first().map(String::as_str), Some("ops: [SUMMARY] 3 alerts: 1 OK, 1 PAUSED, 1 SLOW"));
}

#[test]
fn routes_are_joined_and_the_default_takes_the_rest() {
    let mut rules = rules();
    rules.routes = vec![
        AlertRoute {
            labels: vec![("team".to_owned(), "shop".to_owned())],
            conditions: vec![Severity::Error],
            channels: vec![channel("shop")],
            ..AlertRoute::default()
        },
        AlertRoute {
            jobs: vec![KeyPattern::parse("shop*").unwrap()],
            reasons: vec!["deadline_passed".to_owned()],
            channels: vec![channel("ops")],
            ..AlertRoute::default()
        },
    ];
    let mut shop = job("shop");
    shop.labels.insert("team".to_owned(), "shop".to_owned());
    let check = |job: &Job, severity, code: &str, expected: &[&str]| {
        let channels: Vec<String> =
            rules.channels_for(job, severity, code).iter().map(ToString::to_string).collect();
        assert_eq!(channels, expected, "{code}");
    };
    check(&shop, Severity::Error, "deadline_passed", &["ops", "shop"]);
    check(&shop, Severity::Error, "paused_failures", &["shop"]);
    check(&shop, Severity::Warning, "last_run_failed", &["ops"]);
    check(&job("other"), Severity::Error, "deadline_passed", &["ops"]);
    let with = |channels: &[&str]| {
        let channels = Some(channels.iter().map(|it| channel(it)).collect());
        Job { alerts: JobAlerts { channels, ..JobAlerts::default() }, ..shop.clone() }
    };
    check(&with(&["shop"]), Severity::Warning, "last_run_failed", &["shop"]);
    check(&with(&[]), Severity::Error, "deadline_passed", &[]);
    // A channel that is no longer set up must not silence the job.
    check(&with(&["gone"]), Severity::Error, "deadline_passed", &["ops"]);
}

#[test]
fn the_end_of_a_job_is_the_end_of_its_incident() {
    let mut watch = Watch::of("gone").with(job("paused"));
    for name in ["gone", "paused"] {
        watch.turn(name, Reason::DeadlinePassed);
    }
    assert_eq!(watch.after("1m").len(), 1);
    watch.health("paused").reason = None;
    watch.jobs.retain(|it| it.job.key.as_str() != "gone");
    assert_eq!(watch.after("1m"), ["ops: [CLOSED] 2 jobs: gone, paused"]);
    assert_eq!(watch.after("2h"), silence());
    assert_eq!(watch.state.incidents().count(), 0);
}

#[test]
fn a_message_argues_its_case() {
    let mut watch = Watch::of("shop@test");
    watch.turn("shop@test", Reason::DeadlinePassed);
    let mut told = Vec::new();
    for _ in 0..1_500 {
        watch.now = watch.now + Duration::from_secs(1);
        told.extend(watch.state.look(watch.now, &watch.rules, &[], &watch.jobs, None).announced);
    }
    let facts = JobFacts {
        sentence: Some("The deadline passed 25m ago.".to_owned()),
        last_run: Some(
            "The last run failed with exit code 3. Last line of stderr: boom\r\nBcc: x".to_owned(),
        ),
        failure_count: 2,
        last_good_at: Some(instant("04:00")),
        deadline: Some(instant("10:00")),
        next_start: Some(instant("10:30")),
        contact: Some("team shop".to_owned()),
        description: Some("prices\u{202e}of today".to_owned()),
        ..JobFacts::default()
    };
    let facts = [("shop@test".parse().unwrap(), facts)].into();
    let text = compose(&told[0], &facts, None, Some("https://beat.example/"), instant("10:25"));
    insta::assert_snapshot!(format!("{}\n\n{}", text.subject, text.body));
}

proptest! {
    /// Whatever jobs do: a channel hears of an incident first that it opened, never twice the same in a row, and of its
    /// end only if it heard of its beginning.
    #[test]
    fn what_a_channel_hears_makes_sense(
        steps in proptest::collection::vec((0_usize..3, 0_usize..6, 1_i64..900), 1..60),
        muted in proptest::option::of((0_i64..20, 1_i64..60)),
    ) {
        let names = ["a", "b", "c"];
        let reasons = [
            Some(Reason::Ok),
            Some(Reason::Ok),
            Some(Reason::LastRunFailed),
            Some(Reason::DeadlinePassed),
            Some(Reason::WillMissWaiting),
            None,
        ];
        let mut watch = Watch::of("a").with(job("b")).with(job("c"));
        if let Some((from, minutes)) = muted {
            let starts_at = watch.now + Duration::from_mins(from);
            let ends_at = starts_at + Duration::from_mins(minutes);
            watch.mutes = vec![Mute { starts_at, ends_at, ..mute(MuteScope::Fleet, "10:00", "11:00") }];
        }
        let mut open: std::collections::BTreeMap<String, AnnouncementKind> = [].into();
        let mut ids = std::collections::BTreeSet::new();
        for (who, reason, seconds) in steps {
            let now = watch.now;
            let health = watch.health(names[who]);
            health.reason = reasons[reason];
            if reason == 0 {
                health.last_good_at = Some(now);
            }
            for _ in 0..=seconds / 30 {
                watch.now = watch.now + Duration::from_secs(30);
                let looked = watch.state.look(watch.now, &watch.rules, &watch.mutes, &watch.jobs, None);
                for told in looked.announced {
                    prop_assert!(ids.insert(told.id.clone()), "{} twice", told.id);
                    prop_assert!(!watch.mutes.iter().any(|it| it.is_active(watch.now)));
                    for item in told.items {
                        let subject = item.incident.subject.to_string();
                        match (open.get(&subject), item.kind) {
                            (None, AnnouncementKind::Opened | AnnouncementKind::Flapping)
                            | (Some(AnnouncementKind::Flapping), AnnouncementKind::Opened)
                            | (
                                Some(_),
                                AnnouncementKind::Worse | AnnouncementKind::Reminder | AnnouncementKind::Over,
                            ) => {}
                            (Some(last), AnnouncementKind::Flapping) if *last != AnnouncementKind::Flapping => {}
                            (last, kind) => prop_assert!(false, "{subject}: {kind:?} after {last:?}"),
                        }
                        if item.kind == AnnouncementKind::Over {
                            open.remove(&subject);
                        } else {
                            open.insert(subject, item.kind);
                        }
                    }
                }
            }
        }
    }

    /// A restart between any two looks changes nothing but the count of messages.
    #[test]
    fn a_restart_changes_nothing(steps in proptest::collection::vec((0_usize..2, 0_usize..4), 1..40)) {
        let reasons = [Reason::Ok, Reason::LastRunFailed, Reason::DeadlinePassed, Reason::Overrunning];
        let (mut one, mut other) = (Watch::of("a").with(job("b")), Watch::of("a").with(job("b")));
        let mut stored: std::collections::BTreeMap<AlertSubject, Incident> = [].into();
        for (who, reason) in steps {
            for watch in [&mut one, &mut other] {
                watch.turn(["a", "b"][who], reasons[reason]);
                watch.now = watch.now + Duration::from_secs(45);
            }
            let told = one.state.look(one.now, &one.rules, &[], &one.jobs, None).announced;
            let kept = stored.values().cloned();
            other.state = AlertState::restored(kept, other.now.into(), []);
            let looked = other.state.look(other.now, &other.rules, &[], &other.jobs, None);
            for incident in looked.changed {
                stored.insert(incident.subject.clone(), incident);
            }
            for subject in looked.settled {
                stored.remove(&subject);
            }
            prop_assert_eq!(looked.announced, told);
        }
    }
}
