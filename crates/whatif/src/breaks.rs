//! "Add 400 jobs every 6 h: what breaks first?", and how many could be added before that.

use std::collections::BTreeMap;

use evenbeat_core::ids::{Pool, Site};
use evenbeat_core::job::Job;
use evenbeat_core::time::{TimeWindow, Timestamp};

use super::added::{ADDED_MAX, AddedJobs};
use super::search::{FRESHNESS_TOLERANCE, Simulate};
use super::setup::{CannotCarry, Fleet, Setup};
use super::{Group, Report, Scenario};

/// A smaller loss of freshness is ignored: a hundredth of a percent.
const FRESHNESS_LOSS_MIN: f64 = 0.000_1;

/// A queue grows if its length rises by this factor, and by this many runs.
const QUEUE_GROWTH: (f64, f64) = (2.0, 3.0);

/// Some of the jobs, by what they share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupName {
    /// The capacity they draw on.
    Pool(Pool),
    /// The limit they share.
    Site(Site),
    /// How they recur.
    Schedule(String),
}

/// What gives way.
#[derive(Clone, Debug, PartialEq)]
pub struct Break {
    /// Who suffers.
    pub group: GroupName,
    /// In the quarter of an hour from here on.
    pub at: Timestamp,
    /// From what.
    pub what: BreakKind,
}

/// How it shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BreakKind {
    /// Jobs are late that were not.
    Freshness {
        /// The share of time without the added jobs.
        before: f64,
        /// And with them.
        after: f64,
    },
    /// Nothing is late, but more runs wait.
    Queue {
        /// The longest queue without the added jobs.
        before: f64,
        /// And with them.
        after: f64,
    },
}

/// When, how, and how hard.
type Found = (Timestamp, BreakKind, f64);

/// What breaks first: the earliest group that loses freshness; if none does, the earliest whose queue grows.
pub fn first_break(before: &Report, after: &Report) -> Option<Break> {
    all_breaks(before, after).into_iter().next()
}

/// Everything that breaks: groups that lose freshness in the order of time, then those where only the queue grows.
pub fn all_breaks(before: &Report, after: &Report) -> Vec<Break> {
    let pairs = pairs(before, after);
    let in_order = |find: fn(&Group, &Group) -> Option<Found>| {
        let found = pairs.iter().filter_map(|(name, before, after)| Some((name, find(before, after)?)));
        let mut found: Vec<(&GroupName, Found)> = found.collect();
        // Of several at the same moment, first the one that is hit hardest.
        found.sort_by(|(_, one), (_, other)| one.0.cmp(&other.0).then(other.2.total_cmp(&one.2)));
        found.into_iter().map(|(name, (at, what, _))| Break { group: name.clone(), at, what })
    };
    let mut breaks: Vec<Break> = in_order(freshness_break).collect();
    for queue in in_order(queue_break) {
        if breaks.iter().all(|it| it.group != queue.group) {
            breaks.push(queue);
        }
    }
    breaks
}

fn pairs<'a>(before: &'a Report, after: &'a Report) -> Vec<(GroupName, &'a Group, &'a Group)> {
    fn of<'a, K: Ord + Clone>(
        before: &'a BTreeMap<K, Group>,
        after: &'a BTreeMap<K, Group>,
        name: fn(K) -> GroupName,
    ) -> impl Iterator<Item = (GroupName, &'a Group, &'a Group)> {
        static CALM: std::sync::LazyLock<Group> =
            std::sync::LazyLock::new(|| Group { freshness: 1.0, ..Group::default() });
        after.iter().map(move |(key, group)| (name(key.clone()), before.get(key).unwrap_or(&CALM), group))
    }
    of(&before.pools, &after.pools, GroupName::Pool)
        .chain(of(&before.sites, &after.sites, GroupName::Site))
        .chain(of(&before.schedules, &after.schedules, GroupName::Schedule))
        .collect()
}

fn freshness_break(before: &Group, after: &Group) -> Option<Found> {
    let loss = before.freshness - after.freshness;
    if loss < FRESHNESS_LOSS_MIN {
        return None;
    }
    let n_before: BTreeMap<Timestamp, u32> = before.troubles.iter().map(|it| (it.at, it.n_late)).collect();
    let worse = after.troubles.iter().find(|it| n_before.get(&it.at).copied().unwrap_or(0) < it.n_late)?;
    let what = BreakKind::Freshness { before: before.freshness, after: after.freshness };
    Some((worse.at, what, loss))
}

fn queue_break(before: &Group, after: &Group) -> Option<Found> {
    let longest = before.queue_max();
    let (times, more) = QUEUE_GROWTH;
    let limit = (longest * times).max(longest + more);
    let longer = after.troubles.iter().find(|it| limit < it.queue)?;
    let what = BreakKind::Queue { before: longest, after: after.queue_max() };
    Some((longer.at, what, after.queue_max() - longest))
}

/// How many jobs can be added.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MostAdded {
    /// The freshness that must hold, from 0 to 1: of the fleet, and of each pool and site.
    pub least: f64,
    /// The largest number of added jobs that holds the target.
    pub holds: u32,
    /// The smallest number that does not. None if even the largest that is tried holds it.
    pub breaks: Option<u32>,
    /// How many simulations it took.
    pub n_simulations: usize,
}

/// A fleet that may grow.
#[derive(Clone, Copy, Debug)]
pub struct Growth<'a> {
    /// What carries it; its capacity stays as it is.
    pub setup: &'a Setup,
    /// The jobs that are there.
    pub jobs: &'a [Job],
    /// What is to be added, in this proportion.
    pub kinds: &'a [AddedJobs],
    /// How long to look.
    pub window: TimeWindow,
    /// What the fleet comes to without them.
    pub before: &'a Report,
    /// With all requested jobs.
    pub after: &'a Report,
}

/// Finds how many jobs can be added before freshness falls below `least`, to about one in a hundred, trying so
/// many numbers at once.
pub fn most_added(
    growth: &Growth<'_>,
    least: f64,
    n_at_once: u32,
    simulate: Simulate<'_>,
) -> Result<MostAdded, CannotCarry> {
    let Growth { setup, jobs, kinds, window, before, after } = *growth;
    let asked = kinds.iter().map(|it| it.n).sum::<u32>().max(1);
    let (mut holds, mut breaks, mut n_simulations) = (0, None, 0);
    if stays_above(before, after, least) {
        holds = asked;
    } else {
        breaks = Some(asked);
    }
    loop {
        let mut tries: Vec<u32> = match breaks {
            Some(breaks) if breaks - holds <= (holds / 100).max(1) => break,
            Some(breaks) => {
                let part = |nth: u32| u64::from(breaks - holds) * u64::from(nth) / u64::from(n_at_once + 1);
                (1..=n_at_once).map(|nth| holds + u32::try_from(part(nth)).unwrap_or(0)).collect()
            }
            None if ADDED_MAX <= holds => break,
            None => (1..=n_at_once).map(|nth| holds.saturating_mul(1 << nth.min(8)).min(ADDED_MAX)).collect(),
        };
        for n in &mut tries {
            *n = (*n).max(holds + 1);
        }
        tries.dedup();
        let scenarios = tries
            .iter()
            .map(|n| {
                setup.scenario(&Fleet { jobs: jobs.to_vec(), added: share_out(kinds, *n, asked) }, window)
            })
            .collect::<Result<Vec<Scenario>, _>>()?;
        n_simulations += scenarios.len();
        for (n, after) in tries.into_iter().zip(simulate(&scenarios)) {
            if stays_above(before, &after, least) {
                holds = if breaks.is_none_or(|breaks| n < breaks) { holds.max(n) } else { holds };
            } else {
                breaks = Some(breaks.map_or(n, |breaks| breaks.min(n)));
            }
        }
    }
    Ok(MostAdded { least, holds, breaks, n_simulations })
}

/// Whether the fleet and every pool and site still have this freshness; what was below it already must not fall
/// further.
fn stays_above(before: &Report, after: &Report, least: f64) -> bool {
    let keeps = |before: &Group, after: &Group| {
        let wanted = least.min(before.freshness - FRESHNESS_LOSS_MIN);
        wanted <= after.freshness + FRESHNESS_TOLERANCE
    };
    keeps(&before.all, &after.all)
        && pairs(before, after)
            .iter()
            .filter(|(name, ..)| !matches!(name, GroupName::Schedule(_)))
            .all(|(_, before, after)| keeps(before, after))
}

/// `n` jobs in all, each kind with its share.
pub fn share_out(kinds: &[AddedJobs], n: u32, asked: u32) -> Vec<Job> {
    let share = |it: &AddedJobs| u64::from(it.n) * u64::from(n) / u64::from(asked.max(1));
    let counts: Vec<u32> = kinds.iter().map(|it| u32::try_from(share(it)).unwrap_or(0)).collect();
    // What rounding left over goes to the first.
    let rest = n.saturating_sub(counts.iter().sum());
    let of_kind = |(idx, (kind, count)): (usize, (&AddedJobs, u32))| {
        kind.jobs(count + if idx == 0 { rest } else { 0 }, idx)
    };
    kinds.iter().zip(counts).enumerate().flat_map(of_kind).collect()
}

#[cfg(test)]
mod tests {
    use evenbeat_core::time::Duration;

    use super::super::sample::{job, one_at_once, start};
    use super::super::simulate_all;
    use super::*;

    fn window() -> TimeWindow {
        TimeWindow::starting_at(start(), Duration::from_hours(24))
    }

    fn jobs(n: usize) -> Vec<Job> {
        (0..n).map(|n| job(&format!("job{n:03}"), "every 1h", 300)).collect()
    }

    fn setup(capacity: u32) -> Setup {
        let mut setup = Setup::new();
        setup.runs.spread = 0.0;
        setup.capacity = BTreeMap::from([(Pool::default_pool(), capacity)]);
        setup
    }

    fn all_of(scenarios: &[Scenario]) -> Vec<Report> {
        simulate_all(scenarios, 2, &|_, _| {})
    }

    fn both(setup: &Setup, n_jobs: usize, added: &str) -> [Report; 2] {
        let kind: AddedJobs = added.parse().unwrap();
        let scenario = |added| setup.scenario(&Fleet { jobs: jobs(n_jobs), added }, window()).unwrap();
        let both = [scenario(Vec::new()), scenario(kind.jobs(kind.n, 0))];
        all_of(&both).try_into().unwrap()
    }

    #[track_caller]
    fn check_most(capacity: u32, n_jobs: usize, added: &str, holds: u32, breaks: Option<u32>) {
        let setup = setup(capacity);
        let [before, after] = both(&setup, n_jobs, added);
        for n_at_once in [1, 2, 3] {
            let (jobs, kinds) = (jobs(n_jobs), [added.parse().unwrap()]);
            let growth = Growth {
                setup: &setup,
                jobs: &jobs,
                kinds: &kinds,
                window: window(),
                before: &before,
                after: &after,
            };
            let most = most_added(&growth, 0.99, n_at_once, &mut all_of).unwrap();
            assert_eq!((most.holds, most.breaks), (holds, breaks), "{n_at_once} at once: {most:?}");
        }
    }

    #[test]
    fn what_fits_breaks_nothing() {
        let [before, after] = both(&setup(2), 12, "10 every 1h taking 5m");
        assert_eq!(first_break(&before, &after), None);
        assert!(stays_above(&before, &after, 0.99));
    }

    #[test]
    fn a_full_pool_breaks_with_its_moment_and_its_loss() {
        let [before, after] = both(&setup(1), 12, "6 every 1h taking 5m");
        let broken = first_break(&before, &after).unwrap();
        let BreakKind::Freshness { before: was, after: is } = broken.what else { panic!("{broken:?}") };
        assert!(0.999 < was && is < 0.9, "{broken:?}");
        // An hour after what was due first and found nothing free.
        assert!(start() + Duration::from_hours(1) <= broken.at, "{broken:?}");
        assert!(broken.at < start() + Duration::from_hours(4), "{broken:?}");
        assert!(!stays_above(&before, &after, 0.99));
    }

    #[test]
    fn a_full_site_breaks_before_its_pool() {
        let setup = Setup { sites: BTreeMap::from([("shop".parse().unwrap(), one_at_once())]), ..setup(20) };
        let [before, after] = both(&setup, 12, "24 every 1h taking 5m site shop");
        let broken = first_break(&before, &after).unwrap();
        assert_eq!(broken.group, GroupName::Site("shop".parse().unwrap()), "{broken:?}");
    }

    #[test]
    fn all_that_breaks_is_told_once_and_in_order() {
        let [before, after] = both(&setup(1), 12, "6 every 1h taking 5m");
        let breaks = all_breaks(&before, &after);
        assert_eq!(breaks.first(), first_break(&before, &after).as_ref());
        let names: std::collections::BTreeSet<_> = breaks.iter().map(|it| &it.group).collect();
        assert_eq!(names.len(), breaks.len(), "{breaks:?}");
        assert!(names.contains(&GroupName::Pool(Pool::default_pool())), "{breaks:?}");
        let late = breaks.iter().filter(|it| matches!(it.what, BreakKind::Freshness { .. }));
        assert!(late.map(|it| it.at).is_sorted(), "{breaks:?}");
    }

    #[test]
    fn a_queue_that_grows_is_told_where_nothing_is_late() {
        let mut setup = setup(2);
        setup.strategy = evenbeat_core::placement::Strategy::None;
        let [before, after] = both(&setup, 2, "10 every 4h taking 10m");
        let broken = first_break(&before, &after).unwrap();
        assert!(
            matches!(broken.what, BreakKind::Queue { before, after } if before < 0.1 && 3.0 < after),
            "{broken:?}"
        );
    }

    #[test]
    fn the_largest_number_that_fits_is_found() {
        // Two units carry 24; two more are late for less than one hour in a hundred of the day.
        check_most(2, 12, "6 every 1h taking 5m", 14, Some(15));
        check_most(2, 12, "60 every 1h taking 5m", 14, Some(15));
        check_most(1, 14, "5 every 1h taking 5m", 0, Some(1));
    }

    #[test]
    fn what_was_below_already_must_not_fall_further() {
        let report = |all: f64, pool: f64| {
            let group = |freshness| Group { freshness, ..Group::default() };
            let pools = BTreeMap::from([(Pool::default_pool(), group(pool))]);
            let (sites, schedules) = (BTreeMap::new(), BTreeMap::from([("cron".to_owned(), group(0.1))]));
            let (worst, points) = (Vec::new(), Vec::new());
            Report { all: group(all), pools, sites, schedules, worst, n_late_jobs: 0, points }
        };
        let check = |before: (f64, f64), after: (f64, f64), expected| {
            let (before, after) = (report(before.0, before.1), report(after.0, after.1));
            assert_eq!(stays_above(&before, &after, 0.99), expected, "{:?}", after.all);
        };
        check((1.0, 1.0), (0.995, 0.99), true);
        check((1.0, 1.0), (0.995, 0.989), false);
        check((1.0, 1.0), (0.989, 0.995), false);
        check((0.95, 1.0), (0.95, 1.0), true);
        check((0.95, 1.0), (0.94, 1.0), false);
        check((1.0, 0.95), (1.0, 0.94), false);
    }

    #[test]
    fn several_kinds_are_added_in_proportion() {
        let kinds: [AddedJobs; 2] =
            ["30 every 1h taking 5m".parse().unwrap(), "10 every 2h taking 5m".parse().unwrap()];
        let n_of = |n| {
            let jobs = share_out(&kinds, n, 40);
            let n_first = jobs.iter().filter(|it| it.key.as_str().starts_with("added-1-")).count();
            (n_first, jobs.len() - n_first)
        };
        assert_eq!((n_of(40), n_of(20), n_of(1), n_of(81)), ((30, 10), (15, 5), (1, 0), (61, 20)));
    }
}
