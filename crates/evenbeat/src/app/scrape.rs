//! What a scraper of metrics reads, put together from memory: no request of it walks the fleet under a lock for long, asks
//! the store, or waits for a node that is stuck.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Length;

use evenbeat_core::engine::JobTimes;
use evenbeat_core::ids::JobKey;
use evenbeat_core::store::StoreDown;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::App;
use crate::config::{MetricsJobs, MetricsSettings};
use crate::node::metrics::LoadSample;
use crate::store::query::JobFilter;

/// How long the distribution of a day is good for.
const DAY_HOLDS_FOR: Length = Length::from_secs(5);

const DAY_HOURS: u32 = 24;

/// How long the node may take to answer. Then its gauges stay as they were, and the time of its last tick says since when.
const ASK_WITHIN: Length = Length::from_secs(3);

/// Jobs that the node is asked for at once; it does nothing else meanwhile.
const ASKED_MAX: usize = 500;

/// How often the jobs that have gauges of their own are looked up: soon after jobs came or went, and now and then for
/// labels that changed.
const SELECT_SOON: Length = Length::from_secs(1);
const SELECT_EVERY: Length = Length::from_secs(15);

/// Jobs that are looked up at once.
const SELECT_PAGE: usize = 1_000;

/// Counting what is left out stops here.
const OMITTED_MAX: usize = 10_000;

/// What is kept between two scrapes. Copies share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Scraper(Arc<Mutex<ScrapeState>>);

#[derive(Debug, Default)]
struct ScrapeState {
    day_read_at: Option<Instant>,
    selected: SelectedJobs,
}

/// The jobs that have gauges of their own.
#[derive(Clone, Debug, Default)]
enum SelectedJobs {
    #[default]
    None,
    /// The first of all jobs.
    First(usize),
    /// These jobs, and how many others match.
    Keys(Arc<[JobKey]>, usize),
}

impl App {
    /// All metrics as they are now, as text.
    pub async fn scrape(&self) -> Result<String, fmt::Error> {
        let metrics = self.telemetry.metrics().clone();
        if self.scraper.is_day_due()
            && let Ok(day) = self.fleet.distribution(self.intake.now(), DAY_HOURS).await
        {
            metrics.spread(&day);
        }
        let sample = self.node.ask_both(|engine, roster, now| LoadSample {
            engine: engine.gauges(),
            counts: *roster.counts(),
            now: engine.time(now),
            boot: now.boot,
        });
        if let Ok(Some(sample)) = timeout(ASK_WITHIN, sample).await {
            metrics.sampled(&sample);
            if let Ok(Some((jobs, n_omitted))) = timeout(ASK_WITHIN, self.selected_jobs()).await {
                metrics.jobs().show(jobs, n_omitted);
            }
        }
        // With thousands of jobs this takes a while.
        let text = tokio::task::spawn_blocking(move || metrics.to_text()).await;
        text.unwrap_or_else(|fault| std::panic::resume_unwind(fault.into_panic()))
    }

    /// The instants of all jobs that have gauges, and how many were left out. None if the node is gone.
    async fn selected_jobs(&self) -> Option<(Vec<(JobKey, JobTimes)>, usize)> {
        let (keys, n_omitted) = match self.scraper.selected() {
            SelectedJobs::None => return Some((Vec::new(), 0)),
            SelectedJobs::First(most) => {
                let asked = self.node.ask(move |engine, _| (engine.first_keys(most), engine.n_jobs()));
                let (keys, n_jobs) = asked.await?;
                let n_omitted = n_jobs - keys.len();
                (keys.into(), n_omitted)
            }
            SelectedJobs::Keys(keys, n_omitted) => (keys, n_omitted),
        };
        let mut jobs = BTreeMap::new();
        for part in keys.chunks(ASKED_MAX) {
            let part: Vec<JobKey> = part.to_vec();
            let asked = self.node.ask(move |engine, now| {
                let times = part.into_iter().map(|key| (engine.job_times(now, &key), key));
                times.filter_map(|(times, key)| Some((key, times?))).collect::<Vec<_>>()
            });
            jobs.extend(asked.await?);
        }
        Some((jobs.into_iter().collect(), n_omitted))
    }
}

impl Scraper {
    pub(super) fn new(settings: &MetricsSettings) -> Scraper {
        let scraper = Scraper::default();
        if settings.jobs == MetricsJobs::All {
            scraper.select(SelectedJobs::First(settings.jobs_max));
        }
        scraper
    }

    /// Whether the distribution must be worked out again; says so once.
    fn is_day_due(&self) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = state.day_read_at.is_none_or(|at| at + DAY_HOLDS_FOR <= now);
        if is_due {
            state.day_read_at = Some(now);
        }
        is_due
    }

    fn selected(&self) -> SelectedJobs {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).selected.clone()
    }

    fn select(&self, selected: SelectedJobs) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).selected = selected;
    }
}

/// Looks up which jobs have gauges of their own, again and again until the process ends: labels are not in memory.
pub(super) async fn select_jobs(app: App, settings: MetricsSettings) {
    let MetricsJobs::Label(name, value) = settings.jobs else { return };
    let filter = JobFilter { labels: vec![(name, value)], ..JobFilter::default() };
    let mut ticks = interval(SELECT_SOON);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut selected: Option<(usize, Instant)> = None;
    loop {
        ticks.tick().await;
        let n_jobs = app.fleet.ledger().n_jobs();
        if selected.is_some_and(|(n, at)| n == n_jobs && Instant::now() < at + SELECT_EVERY) {
            continue;
        }
        match matching(&app, &filter, settings.jobs_max).await {
            Ok((keys, n_omitted)) => {
                app.scraper.select(SelectedJobs::Keys(keys.into(), n_omitted));
                selected = Some((n_jobs, Instant::now()));
            }
            Err(StoreDown(why)) => {
                tracing::debug!(why, "looking up the jobs that have metrics failed, trying again later");
            }
        }
    }
}

/// The first jobs that match, and how many more do.
async fn matching(app: &App, filter: &JobFilter, most: usize) -> Result<(Vec<JobKey>, usize), StoreDown> {
    let (mut keys, mut n_omitted, mut after) = (Vec::new(), 0, None);
    loop {
        let page = app.store.list_jobs(filter.clone(), after.take(), SELECT_PAGE).await?;
        for row in page.rows {
            if keys.len() < most {
                keys.push(row.job.key.clone());
            } else {
                n_omitted += 1;
            }
        }
        match page.next {
            // What is left out is counted so far: enough to say that it is a lot.
            Some(next) if n_omitted < OMITTED_MAX => after = Some(next),
            _ => return Ok((keys, n_omitted)),
        }
    }
}
