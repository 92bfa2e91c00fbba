//! Who runs when: the past from recorded runs, the future from planned starts, in the parts of a window.
//!
//! What it costs does not depend on the size of the fleet: runs are read up to a limit, the load ahead is counted for all
//! who ask at most every few seconds, and the jobs of a group are looked at when the group is open.

mod density;
mod groups;
mod rows;

use std::collections::BTreeSet;
use std::sync::Arc;

use evenbeat_core::ids::JobKey;
use evenbeat_core::time::{Duration, TimeWindow, Timestamp};
use evenbeat_core::zone::Zone;

pub(crate) use density::Density;
pub(crate) use rows::{Bar, BarKind, GroupRows, TimelineRow};

use self::density::Past;
use super::{ViewError, sharing};
use crate::app::App;
use crate::fleet::{LoadAhead, PartedWindow};
use crate::store::run_times::{MemberBy, RunOrder};

/// How many ended runs are read for one view.
const HISTORY_MAX: usize = 10_000;
/// How many open runs are read for one view.
const OPEN_MAX: usize = 10_000;
/// How many jobs are put into groups, unless they are grouped by pool.
pub(crate) const MEMBERS_MAX: usize = 20_000;
/// How many groups are shown.
const GROUPS_MAX: usize = 40;
/// How many labels can be chosen.
const LABELS_MAX: usize = 20;
/// A run that ended this long after the window is not looked for.
const REACH: Duration = Duration::from_days(1);
/// More than this share of a unit above the capacity is too much: means over a part are never whole numbers.
const OVER: f64 = 0.25;

/// How much of the time line is in view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Zoom {
    Hour,
    #[default]
    SixHours,
    Day,
    Week,
}

impl Zoom {
    pub(crate) const ALL: [Zoom; 4] = [Zoom::Hour, Zoom::SixHours, Zoom::Day, Zoom::Week];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Zoom::Hour => "1h",
            Zoom::SixHours => "6h",
            Zoom::Day => "24h",
            Zoom::Week => "7d",
        }
    }

    pub(crate) fn named(word: &str) -> Option<Zoom> {
        Zoom::ALL.into_iter().find(|it| it.as_str() == word)
    }

    pub(crate) fn length(self) -> Duration {
        Duration::from_hours(match self {
            Zoom::Hour => 1,
            Zoom::SixHours => 6,
            Zoom::Day => 24,
            Zoom::Week => 168,
        })
    }

    /// The window from an instant on, in parts.
    fn parts(self, start: Timestamp) -> PartedWindow {
        let n_parts: u16 = match self {
            Zoom::Hour => 60,
            Zoom::SixHours => 72,
            Zoom::Day => 96,
            Zoom::Week => 168,
        };
        let part = Duration::from_millis(self.length().as_millis() / i64::from(n_parts));
        PartedWindow { start, part, n_parts: n_parts.into() }
    }

    /// Where a window begins in which now stands at a fifth to a quarter, at a round time.
    fn start(self, now: Timestamp, zone: &Zone) -> Timestamp {
        let (before, step) = match self {
            Zoom::Hour => (Duration::from_mins(11), Duration::from_mins(5)),
            Zoom::SixHours => (Duration::from_mins(66), Duration::from_mins(15)),
            Zoom::Day => (Duration::from_mins(290), Duration::from_hours(1)),
            Zoom::Week => {
                let day = now - Duration::from_hours(24);
                let begun = zone.local(day).second_of_day;
                return day - Duration::from_secs(begun.into()) - below_second(day);
            }
        };
        let at = (now - before).as_millis();
        Timestamp::from_millis(at - at.rem_euclid(step.as_millis()))
    }
}

fn below_second(at: Timestamp) -> Duration {
    Duration::from_millis(at.as_millis().rem_euclid(1_000))
}

/// What rows are grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimelineBy {
    #[default]
    Pool,
    Site,
    Label(String),
}

impl TimelineBy {
    fn members(&self) -> Option<MemberBy> {
        match self {
            TimelineBy::Pool => None,
            TimelineBy::Site => Some(MemberBy::Site),
            TimelineBy::Label(name) => Some(MemberBy::Label(name.clone())),
        }
    }

    /// As it stands in an address: `pool`, `site` or `label:NAME`.
    pub(crate) fn word(&self) -> String {
        match self {
            TimelineBy::Pool => "pool".to_owned(),
            TimelineBy::Site => "site".to_owned(),
            TimelineBy::Label(name) => format!("label:{name}"),
        }
    }

    pub(crate) fn named(word: &str) -> Option<TimelineBy> {
        match word {
            "pool" => Some(TimelineBy::Pool),
            "site" => Some(TimelineBy::Site),
            _ => word
                .strip_prefix("label:")
                .filter(|it| !it.is_empty())
                .map(|it| TimelineBy::Label(it.to_owned())),
        }
    }
}

/// What someone wants to see.
#[derive(Clone, Debug, Default)]
pub(crate) struct TimelineQuestion {
    pub(crate) zoom: Zoom,
    pub(crate) by: TimelineBy,
    /// Where the window begins; none for one around now.
    pub(crate) at: Option<Timestamp>,
    /// The groups whose jobs are shown; none for a choice that suits.
    pub(crate) open: Option<Vec<String>>,
    /// The group of which all jobs are shown.
    pub(crate) all_of: Option<String>,
}

/// A time line.
#[derive(Debug)]
pub(crate) struct TimelineView {
    pub(crate) now: Timestamp,
    pub(crate) parts: PartedWindow,
    /// Units of all pools together.
    pub(crate) capacity: u64,
    pub(crate) all: Density,
    /// The first part of the window, from now on, in which a pool is asked for more than it has.
    pub(crate) overload: Option<Overload>,
    /// A pool that has no free slot while runs wait for one: its name, and how many wait.
    pub(crate) full_now: Option<(String, u64)>,
    pub(crate) n_pools: usize,
    pub(crate) n_running: u64,
    /// Runs that are due and wait for a slot.
    pub(crate) n_waiting: u64,
    pub(crate) groups: Vec<TimelineGroup>,
    /// Groups beyond those that are shown.
    pub(crate) n_more_groups: usize,
    /// Whether there are more jobs than could be put into groups.
    pub(crate) is_grouped_in_part: bool,
    /// Runs that ended before this instant are not shown, because there are too many since.
    pub(crate) history_from: Option<Timestamp>,
    /// Labels that jobs can be grouped by.
    pub(crate) labels: Vec<String>,
}

/// More is wanted of a pool than it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Overload {
    pub(crate) pool: String,
    pub(crate) from: Timestamp,
    /// The most that is wanted before it is over.
    pub(crate) wanted: u64,
    pub(crate) capacity: u64,
}

/// Jobs with something in common.
#[derive(Debug)]
pub(crate) struct TimelineGroup {
    pub(crate) name: String,
    pub(crate) n_jobs: u64,
    pub(crate) n_running: u64,
    pub(crate) n_bad: u64,
    /// Of a pool.
    pub(crate) capacity: Option<u64>,
    pub(crate) density: Density,
    /// Its jobs, if it is open.
    pub(crate) rows: Option<GroupRows>,
}

/// A pool, as far as it concerns a time line.
#[derive(Debug)]
struct PoolState {
    name: Arc<str>,
    /// Units of nodes that take new runs.
    capacity: u64,
    n_running: u64,
    n_waiting: u64,
}

/// Looks at the fleet.
pub(crate) async fn timeline(
    app: &App,
    question: &TimelineQuestion,
    zone: &Zone,
) -> Result<TimelineView, ViewError> {
    let now = app.intake.now();
    let start = question.at.unwrap_or_else(|| question.zoom.start(now, zone));
    let parts = question.zoom.parts(start);
    let (past, history_from) = history(app, parts, now).await?;
    let running: BTreeSet<JobKey> = past.open().map(|it| it.key.clone()).collect();
    let pools = pools(app).await?;
    let ahead = if now < parts.end() {
        app.fleet.load_ahead(parts, None, running.clone(), now).await
    } else {
        Arc::new(LoadAhead::default())
    };
    let jobs = app.fleet.snapshot();
    let cost = |key: &JobKey| jobs.job(key).map_or(1, |it| it.work.cost);
    let by_pool = past.by(parts, now, &ahead.pools, cost, |run| Some(Arc::clone(&run.pool)));
    let mut all = Density::empty(parts.n_parts);
    for it in by_pool.values() {
        all.add(it);
    }
    let overload = overload(parts, now, &pools, |pool| by_pool.get(pool));
    let mut view = TimelineView {
        now,
        parts,
        capacity: pools.iter().map(|it| it.capacity).sum(),
        all,
        overload,
        full_now: full_now(&pools).filter(|_| parts.start <= now && now < parts.end()),
        n_pools: pools.len(),
        n_running: pools.iter().map(|it| it.n_running).sum(),
        n_waiting: pools.iter().map(|it| it.n_waiting).sum(),
        groups: Vec::new(),
        n_more_groups: 0,
        is_grouped_in_part: false,
        history_from,
        labels: app.store.label_names(LABELS_MAX).await?,
    };
    match question.by.members() {
        None => view.groups = groups::of_pools(app, &pools, by_pool).await?,
        Some(by) => {
            let mut members = app.store.members(by, MEMBERS_MAX + 1).await?;
            view.is_grouped_in_part = MEMBERS_MAX < members.len();
            members.truncate(MEMBERS_MAX);
            let counted = groups::counted(&members);
            let of_key: std::collections::BTreeMap<JobKey, Arc<str>> = members.iter().cloned().collect();
            let ahead = if now < parts.end() {
                app.fleet.load_ahead(parts, Some((question.by.word(), members)), running, now).await
            } else {
                Arc::new(LoadAhead::default())
            };
            let densities =
                past.by(parts, now, &ahead.groups, cost, |run| of_key.get(&run.key).map(Arc::clone));
            view.groups = groups::of_members(counted, densities, &past, &of_key);
        }
    }
    view.n_more_groups = view.groups.len().saturating_sub(GROUPS_MAX);
    view.groups.truncate(GROUPS_MAX);
    rows::fill(app, question, &past, parts, now, &mut view.groups).await?;
    Ok(view)
}

/// The runs of a window, and since when they are all there.
async fn history(
    app: &App,
    parts: PartedWindow,
    now: Timestamp,
) -> Result<(Past, Option<Timestamp>), ViewError> {
    let window = parts.window();
    let mut runs = app.store.open_run_times(OPEN_MAX).await?;
    runs.retain(|it| it.started_at < window.end());
    let mut history_from = None;
    if window.start() <= now {
        let mut ended = app.store.ended_run_times(window, RunOrder::LatestEndFirst, HISTORY_MAX + 1).await?;
        if HISTORY_MAX < ended.len() {
            ended.truncate(HISTORY_MAX);
            history_from = ended.last().and_then(|it| it.end).map(|(_, at)| at);
        }
        runs.extend(ended);
    }
    if window.end() < now {
        // Runs that were under way at the end of the window.
        let after = TimeWindow::new(window.end(), window.end() + REACH);
        let ended = app.store.ended_run_times(after, RunOrder::EarliestEndFirst, HISTORY_MAX).await?;
        runs.extend(ended.into_iter().filter(|it| it.started_at < window.end()));
    }
    Ok((Past { runs }, history_from))
}

async fn pools(app: &App) -> Result<Vec<PoolState>, ViewError> {
    let pools = sharing::pools(app).await?;
    let state = |it: super::model::PoolView| PoolState {
        capacity: it.nodes.iter().filter(|it| it.state == "living").map(|it| u64::from(it.capacity)).sum(),
        n_running: it.open_runs,
        n_waiting: it.here.map_or(0, |it| it.ready),
        name: it.pool.into(),
    };
    Ok(pools.items.into_iter().map(state).collect())
}

/// The first time from now on that a pool is asked for too much. Of several at the same time, the one that lacks most.
fn overload<'a>(
    parts: PartedWindow,
    now: Timestamp,
    pools: &[PoolState],
    density: impl Fn(&str) -> Option<&'a Density>,
) -> Option<Overload> {
    let found = pools.iter().filter_map(|pool| {
        let wanted = &density(&pool.name)?.wanted;
        let is_over = |idx: usize| {
            now < parts.at(idx + 1) && wanted.get(idx).is_some_and(|it| units(pool.capacity) + OVER < *it)
        };
        let first = (0..parts.n_parts).find(|idx| is_over(*idx))?;
        let most = (first..parts.n_parts).take_while(|idx| is_over(*idx));
        let most = most.filter_map(|idx| wanted.get(idx)).copied().fold(0.0, f64::max);
        Some((first, most, pool))
    });
    let lack = |most: f64, pool: &PoolState| most / units(pool.capacity.max(1));
    let first = found
        .min_by(|one, other| one.0.cmp(&other.0).then(lack(other.1, other.2).total_cmp(&lack(one.1, one.2))));
    first.map(|(idx, most, pool)| Overload {
        pool: pool.name.to_string(),
        from: parts.at(idx).max(now),
        wanted: whole(most),
        capacity: pool.capacity,
    })
}

/// The pool without a free slot for which the most runs wait.
fn full_now(pools: &[PoolState]) -> Option<(String, u64)> {
    let full = pools.iter().filter(|it| 0 < it.n_waiting && it.capacity <= it.n_running);
    full.max_by_key(|it| it.n_waiting).map(|it| (it.name.to_string(), it.n_waiting))
}

#[expect(clippy::cast_precision_loss, reason = "units of a pool")]
fn units(n: u64) -> f64 {
    n as f64
}

/// The next whole number: half a slot is a slot.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "units of a pool")]
fn whole(wanted: f64) -> u64 {
    wanted.ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn a_window_begins_at_a_round_time_with_now_at_a_fifth_or_so() {
        let now = at("2026-02-04T13:52:08Z");
        let check = |zoom: Zoom, zone: &str, expected: &str| {
            assert_eq!(zoom.start(now, &Zone::named(zone).unwrap()).to_string(), expected);
        };
        check(Zoom::Hour, "UTC", "2026-02-04T13:40:00Z");
        check(Zoom::SixHours, "UTC", "2026-02-04T12:45:00Z");
        check(Zoom::Day, "UTC", "2026-02-04T09:00:00Z");
        check(Zoom::Week, "UTC", "2026-02-03T00:00:00Z");
        check(Zoom::Week, "Europe/Berlin", "2026-02-02T23:00:00Z");
    }

    #[test]
    fn words_of_addresses_are_read_back() {
        for by in [TimelineBy::Pool, TimelineBy::Site, TimelineBy::Label("team".to_owned())] {
            assert_eq!(TimelineBy::named(&by.word()), Some(by));
        }
        assert_eq!((TimelineBy::named("project"), TimelineBy::named("label:")), (None, None));
        assert_eq!((Zoom::named("24h"), Zoom::named("2h")), (Some(Zoom::Day), None));
    }

    #[test]
    fn the_first_overload_is_that_of_the_pool_that_lacks_most() {
        let now = at("2026-02-04T10:05:00Z");
        let parts =
            PartedWindow { start: at("2026-02-04T09:50:00Z"), part: Duration::from_mins(10), n_parts: 5 };
        let pool =
            |name: &str, capacity| PoolState { name: name.into(), capacity, n_running: 0, n_waiting: 0 };
        let density = |wanted: [f64; 5]| Density { wanted: wanted.to_vec(), ..Density::empty(5) };
        let check = |a: [f64; 5], b: [f64; 5], expected: Option<(&str, &str, u64)>| {
            let (a, b) = (density(a), density(b));
            let pools = [pool("a", 2), pool("b", 8)];
            let found = overload(parts, now, &pools, |name| Some(if name == "a" { &a } else { &b }));
            let found = found.map(|it| (it.pool, it.from, it.wanted));
            assert_eq!(found, expected.map(|(pool, from, wanted)| (pool.to_owned(), at(from), wanted)));
        };
        // What was is not what will be, and a little more than there is rounds to what there is.
        check([9.0, 2.2, 2.0, 2.0, 2.0], [8.0; 5], None);
        check([9.0, 3.0, 3.5, 2.0, 9.0], [8.0; 5], Some(("a", "2026-02-04T10:05:00Z", 4)));
        check([0.0, 0.0, 0.0, 0.0, 3.0], [0.0, 0.0, 9.0, 9.0, 9.0], Some(("b", "2026-02-04T10:10:00Z", 9)));
        check([0.0, 0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 9.0, 9.0, 9.0], Some(("a", "2026-02-04T10:10:00Z", 4)));
    }
}
