//! Which jobs a list shows, and in which order: what needs attention, all, running, waiting or paused ones.
//!
//! The node has all jobs in memory and in order, so a list without a filter costs the same with a million jobs as with ten.
//! With a filter, a list is looked through up to a limit, and says so when it got no further. Where something leads to the
//! few jobs that match, such as a part of their keys or a label, those are looked up and then put in order.

use std::collections::BTreeSet;

use evenbeat_core::condition::{Condition, Reason};
use evenbeat_core::engine::Engine;
use evenbeat_core::ids::{JobKey, Pool, Site};
use evenbeat_core::job::Status;
use evenbeat_core::roster::{AttentionCause, Counts, Jobs as _, PoolMark, Roster, RosterLine, Which};
use evenbeat_core::time::Timestamp;

use super::ViewError;
use super::jobs::JobTotal;
use crate::app::App;
use crate::store::query::{JobFilter, PAGE_MAX};

/// Most jobs that one request looks through in memory, and most if each must be looked up.
const SCAN_MAX: usize = 20_000;
const LOOKUP_MAX: usize = 5_000;

/// Keys that the node looks up in one go, between two events.
const PER_QUESTION: usize = 1_000;

/// A list of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum JobTab {
    /// Late or at risk.
    #[default]
    Attention,
    All,
    Running,
    /// They may start, and wait for room, for a limit or for their turn.
    Waiting,
    Paused,
}

impl JobTab {
    pub(crate) const ALL: [JobTab; 5] =
        [JobTab::Attention, JobTab::All, JobTab::Running, JobTab::Waiting, JobTab::Paused];

    /// The word in addresses.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            JobTab::Attention => "attention",
            JobTab::All => "all",
            JobTab::Running => "running",
            JobTab::Waiting => "waiting",
            JobTab::Paused => "paused",
        }
    }
}

/// A condition as lists know it: jobs that have not succeeded yet stand apart from those that are well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedCondition {
    Error,
    Warning,
    Ok,
    New,
}

impl ListedCondition {
    pub(crate) const ALL: [ListedCondition; 4] =
        [ListedCondition::Error, ListedCondition::Warning, ListedCondition::Ok, ListedCondition::New];

    /// The word in addresses.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ListedCondition::Error => "error",
            ListedCondition::Warning => "warning",
            ListedCondition::Ok => "ok",
            ListedCondition::New => "new",
        }
    }

    /// The condition of a reason; none for a job that is not tracked.
    pub(crate) fn of(reason: Option<Reason>) -> Option<ListedCondition> {
        Some(match reason? {
            Reason::NeverSucceeded => ListedCondition::New,
            reason => match reason.condition() {
                Condition::Error => ListedCondition::Error,
                Condition::Warning => ListedCondition::Warning,
                Condition::Ok => ListedCondition::Ok,
            },
        })
    }

    fn urgent(self) -> Option<Condition> {
        match self {
            ListedCondition::Error => Some(Condition::Error),
            ListedCondition::Warning => Some(Condition::Warning),
            ListedCondition::Ok | ListedCondition::New => None,
        }
    }
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ListOrder {
    /// Late ones, then those at risk, by deadline; then the others by name.
    #[default]
    Urgency,
    Name,
}

/// Which jobs to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListQuery {
    pub(crate) tab: JobTab,
    pub(crate) order: ListOrder,
    /// The key contains this, ignoring case.
    pub(crate) text: Option<String>,
    pub(crate) pool: Option<Pool>,
    pub(crate) site: Option<Site>,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) condition: Option<ListedCondition>,
    pub(crate) cause: Option<AttentionCause>,
}

impl ListQuery {
    /// Whether anything but the tab chooses jobs.
    pub(crate) fn is_filtered(&self) -> bool {
        let ListQuery { tab: _, order: _, text, pool, site, labels, condition, cause } = self;
        text.is_some()
            || pool.is_some()
            || site.is_some()
            || !labels.is_empty()
            || condition.is_some()
            || cause.is_some()
    }
}

/// A part of a list.
#[derive(Clone, Debug)]
pub(crate) struct FoundJobs {
    pub(crate) keys: Vec<JobKey>,
    /// How many jobs the list has; at least so many, unless that is exact.
    pub(crate) total: JobTotal,
    /// How many jobs were looked at, if the search ended before the list did.
    pub(crate) searched: Option<usize>,
}

/// The jobs of a list after the first `skip`, at most `most`.
pub(crate) async fn find(
    app: &App,
    query: &ListQuery,
    skip: usize,
    most: usize,
) -> Result<FoundJobs, ViewError> {
    match candidates(app, query).await? {
        Some(candidates) => among(app, query, candidates, skip, most).await,
        None => {
            let query = query.clone();
            let scan = app.node.ask_both(move |engine, roster, _| scan(&query, engine, roster, skip, most));
            scan.await.ok_or(ViewError::NodeGone)
        }
    }
}

/// Jobs that may match.
struct Candidates {
    keys: Vec<JobKey>,
    is_cut: bool,
}

/// The few jobs that may match, where something leads to them; none if the list itself must be looked through.
async fn candidates(app: &App, query: &ListQuery) -> Result<Option<Candidates>, ViewError> {
    let is_long = matches!(query.tab, JobTab::All | JobTab::Paused);
    if query.labels.is_empty() {
        if !is_long {
            return Ok(None);
        }
        if let Some(text) = &query.text {
            let keys = app.fleet.find_keys(text.clone(), None, None, LOOKUP_MAX + 1).await;
            return Ok(keys.map(|mut keys| {
                let is_cut = LOOKUP_MAX < keys.len();
                keys.truncate(LOOKUP_MAX);
                Candidates { keys, is_cut }
            }));
        }
        if query.site.is_none() && !is_small_pool(app, query).await? {
            return Ok(None);
        }
    }
    let filter = JobFilter {
        key_text: query.text.clone(),
        labels: query.labels.clone(),
        pool: query.pool.clone(),
        site: query.site.clone(),
        ..JobFilter::default()
    };
    let page = app.store.list_jobs(filter, None, PAGE_MAX).await?;
    let keys = page.rows.iter().map(|row| row.job.key.clone()).collect();
    Ok(Some(Candidates { keys, is_cut: page.next.is_some() }))
}

/// Whether the pool that is asked for has so few jobs that the store lists them all at once.
async fn is_small_pool(app: &App, query: &ListQuery) -> Result<bool, ViewError> {
    let Some(pool) = query.pool.clone() else { return Ok(false) };
    let n = app.node.ask_roster(move |roster| roster.counts_of(&pool).map_or(0, Counts::n_jobs));
    Ok(n.await.ok_or(ViewError::NodeGone)? as usize <= PAGE_MAX)
}

/// Where a job comes in a list.
type ListRank = (u8, Option<Timestamp>, JobKey);

fn rank(line: &RosterLine<'_>, order: ListOrder) -> ListRank {
    let (class, deadline) = match (order, line.condition) {
        (ListOrder::Name, _) => (0, None),
        (ListOrder::Urgency, Some(Condition::Error)) => (0, line.deadline.or(Some(Timestamp::MAX))),
        (ListOrder::Urgency, Some(Condition::Warning)) => (1, line.deadline.or(Some(Timestamp::MAX))),
        (ListOrder::Urgency, Some(Condition::Ok)) => (2, None),
        (ListOrder::Urgency, None) => (3, None),
    };
    (class, deadline, line.key.clone())
}

/// The jobs of a list among some, put in order.
async fn among(
    app: &App,
    query: &ListQuery,
    candidates: Candidates,
    skip: usize,
    most: usize,
) -> Result<FoundJobs, ViewError> {
    let n_candidates = candidates.keys.len();
    let mut found: Vec<ListRank> = Vec::new();
    for keys in candidates.keys.chunks(PER_QUESTION) {
        let (keys, query) = (keys.to_vec(), query.clone());
        let some = app.node.ask_both(move |engine, roster, _| {
            let test = LineTest::new(&query, engine, roster);
            let lines = keys.iter().filter_map(|key| roster.line(key)).filter(|line| test.has(line));
            lines.map(|line| rank(&line, query.order)).collect::<Vec<_>>()
        });
        found.extend(some.await.ok_or(ViewError::NodeGone)?);
    }
    found.sort_unstable();
    let total = JobTotal { n: found.len() as u64, is_exact: !candidates.is_cut };
    let keys = found.into_iter().skip(skip).take(most).map(|(.., key)| key).collect();
    Ok(FoundJobs { keys, total, searched: candidates.is_cut.then_some(n_candidates) })
}

/// Looks through a list in its order.
fn scan(query: &ListQuery, engine: &Engine, roster: &Roster, skip: usize, most: usize) -> FoundJobs {
    let test = LineTest::new(query, engine, roster);
    let known = known_total(query, engine, roster);
    let scan_max = if query.site.is_some() { LOOKUP_MAX } else { SCAN_MAX };
    let (mut keys, mut n_matching, mut n_looked_at) = (Vec::new(), 0_usize, 0_usize);
    let n_wanted = if known.is_some() { skip + most } else { scan_max };
    let mut lines = lines(query, engine, roster, n_wanted);
    let is_cut = loop {
        if known.is_some() && most <= keys.len() {
            break false;
        }
        let Some(line) = lines.next() else {
            // A queue, and what runs, comes only so far.
            let n_in_list = n_in_tab(query.tab, engine, roster, None).unwrap_or(0);
            break LOOKUP_MAX <= n_looked_at && (n_looked_at as u64) < n_in_list && is_of_engine(query.tab);
        };
        if n_looked_at == scan_max {
            break true;
        }
        n_looked_at += 1;
        if test.has(&line) {
            n_matching += 1;
            if skip < n_matching && keys.len() < most {
                keys.push(line.key.clone());
            }
        }
    };
    let counted = JobTotal { n: n_matching as u64, is_exact: !is_cut };
    let total = known.map_or(counted, |n| JobTotal { n, is_exact: true });
    FoundJobs { keys, total, searched: is_cut.then_some(n_looked_at) }
}

fn is_of_engine(tab: JobTab) -> bool {
    matches!(tab, JobTab::Waiting | JobTab::Running)
}

/// The jobs of a tab in their order, with those left out that are quickly left out: at least the first `n_wanted`.
fn lines<'a>(
    query: &ListQuery,
    engine: &Engine,
    roster: &'a Roster,
    n_wanted: usize,
) -> Box<dyn Iterator<Item = RosterLine<'a>> + 'a> {
    let urgent = query.condition.and_then(ListedCondition::urgent);
    let by_key = |which: Which| Box::new(roster.by_key(which));
    match (query.tab, query.order) {
        (JobTab::Attention, ListOrder::Urgency) => Box::new(roster.most_urgent(query.cause, urgent)),
        (JobTab::Attention, ListOrder::Name) => by_key(Which::Attention),
        (JobTab::All, ListOrder::Urgency) => match query.condition {
            Some(ListedCondition::Error | ListedCondition::Warning) => {
                Box::new(roster.most_urgent(query.cause, urgent))
            }
            _ if query.cause.is_some() => Box::new(roster.most_urgent(query.cause, None)),
            Some(ListedCondition::Ok) => by_key(Which::Condition(Condition::Ok)),
            Some(ListedCondition::New) => by_key(Which::Reason(Reason::NeverSucceeded)),
            None => {
                let well = roster.by_key(Which::Condition(Condition::Ok));
                let rest = well.chain(roster.by_key(Which::Untracked));
                Box::new(roster.most_urgent(None, None).chain(rest))
            }
        },
        (JobTab::All, ListOrder::Name) => by_key(match query.condition {
            Some(ListedCondition::Error) => Which::Condition(Condition::Error),
            Some(ListedCondition::Warning) => Which::Condition(Condition::Warning),
            Some(ListedCondition::Ok) => Which::Condition(Condition::Ok),
            Some(ListedCondition::New) => Which::Reason(Reason::NeverSucceeded),
            None => Which::All,
        }),
        (JobTab::Running, order) => sorted(roster.running().take(SCAN_MAX), order),
        (JobTab::Paused, order) => {
            let by_system = [Reason::PausedFailures, Reason::PausedQuota];
            let by_system =
                by_system.into_iter().flat_map(|it| roster.by_key(Which::Reason(it)).take(SCAN_MAX));
            let by_person = roster.by_key(Which::Untracked).filter(|line| line.status == Status::Paused);
            match order {
                ListOrder::Urgency => Box::new(sorted(by_system, order).chain(by_person)),
                ListOrder::Name => sorted(by_system.chain(by_person.take(n_wanted)), order),
            }
        }
        (JobTab::Waiting, order) => {
            // Each is looked up, and those that are sorted by name are looked up first.
            let n_looked_up = if order == ListOrder::Name { LOOKUP_MAX } else { n_wanted.min(LOOKUP_MAX) };
            let queued = engine.queued_keys(n_looked_up);
            let mut lines: Vec<_> = queued.iter().filter_map(|key| roster.line(key)).collect();
            if order == ListOrder::Name {
                lines.sort_by_key(|line| line.key);
            }
            Box::new(lines.into_iter())
        }
    }
}

fn sorted<'a>(
    lines: impl Iterator<Item = RosterLine<'a>>,
    order: ListOrder,
) -> Box<dyn Iterator<Item = RosterLine<'a>> + 'a> {
    let mut lines: Vec<_> = lines.collect();
    lines.sort_by_cached_key(|line| rank(line, order));
    Box::new(lines.into_iter())
}

/// How many jobs a list has, where the node keeps count.
fn known_total(query: &ListQuery, engine: &Engine, roster: &Roster) -> Option<u64> {
    let ListQuery { tab, order: _, text, pool, site, labels, condition, cause } = query;
    if text.is_some() || site.is_some() || !labels.is_empty() {
        return None;
    }
    let n_in_tab = |tab: JobTab| n_in_tab(tab, engine, roster, pool.as_ref());
    let counts = match pool {
        Some(pool) => roster.counts_of(pool).copied().unwrap_or_default(),
        None => *roster.counts(),
    };
    match (tab, condition.map(ListedCondition::urgent), cause) {
        (tab, None, None) => n_in_tab(*tab),
        (JobTab::Attention | JobTab::All, None, Some(cause)) => {
            Some(u64::from(counts.late(*cause)) + u64::from(counts.at_risk(*cause)))
        }
        (JobTab::Attention | JobTab::All, Some(Some(condition)), None) => {
            Some(counts.in_condition(condition).into())
        }
        (JobTab::Attention | JobTab::All, Some(Some(Condition::Error)), Some(cause)) => {
            Some(counts.late(*cause).into())
        }
        (JobTab::Attention | JobTab::All, Some(Some(Condition::Warning)), Some(cause)) => {
            Some(counts.at_risk(*cause).into())
        }
        _ => None,
    }
}

/// How many jobs a tab has, of one pool or of all. Who waits is not counted by pool.
pub(super) fn n_in_tab(tab: JobTab, engine: &Engine, roster: &Roster, pool: Option<&Pool>) -> Option<u64> {
    let counts = match pool {
        Some(pool) => roster.counts_of(pool).copied().unwrap_or_default(),
        None => *roster.counts(),
    };
    let n = match tab {
        JobTab::Attention => counts.in_condition(Condition::Error) + counts.in_condition(Condition::Warning),
        JobTab::All => counts.n_jobs(),
        JobTab::Running => counts.in_status(Status::Running),
        JobTab::Waiting if pool.is_some() => return None,
        JobTab::Waiting => return Some(engine.n_queued() as u64),
        JobTab::Paused => counts.in_status(Status::Paused),
    };
    Some(n.into())
}

/// Tells whether a job is in a list.
struct LineTest<'a> {
    query: &'a ListQuery,
    engine: &'a Engine,
    pool: Option<PoolMark>,
    text: Option<String>,
    queued: BTreeSet<JobKey>,
}

impl<'a> LineTest<'a> {
    fn new(query: &'a ListQuery, engine: &'a Engine, roster: &Roster) -> LineTest<'a> {
        // Only where jobs do not come from the queue itself.
        let is_looked_up = query.tab == JobTab::Waiting && !query.labels.is_empty();
        let queued = if is_looked_up { engine.queued_keys(SCAN_MAX) } else { Vec::new() };
        LineTest {
            query,
            engine,
            pool: query.pool.as_ref().map(|pool| roster.pool(pool)),
            text: query.text.as_ref().map(|text| text.to_lowercase()),
            queued: queued.into_iter().collect(),
        }
    }

    fn has(&self, line: &RosterLine<'_>) -> bool {
        let query = self.query;
        let is_in_tab = match query.tab {
            JobTab::Attention => line.cause.is_some(),
            JobTab::All => true,
            JobTab::Running => line.status == Status::Running,
            JobTab::Waiting => query.labels.is_empty() || self.queued.contains(line.key),
            JobTab::Paused => line.status == Status::Paused,
        };
        is_in_tab
            && query.condition.is_none_or(|it| ListedCondition::of(line.reason) == Some(it))
            && query.cause.is_none_or(|it| line.cause == Some(it))
            && self.pool.is_none_or(|pool| line.is_in(pool))
            && self.text.as_ref().is_none_or(|text| line.key.as_str().to_lowercase().contains(text.as_str()))
            && query.site.as_ref().is_none_or(|site| self.site_is(line.key, site))
    }

    fn site_is(&self, key: &JobKey, site: &Site) -> bool {
        let known = self.engine.jobs();
        let job = known.as_ref().and_then(|jobs| jobs.job(key));
        job.is_some_and(|job| job.terms.site.as_ref() == Some(site))
    }
}
