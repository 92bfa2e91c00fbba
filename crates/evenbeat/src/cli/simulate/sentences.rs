//! The sentences of a simulation: the headline, the answers, and the notes at the end.

use std::fmt::Write as _;

use evenbeat_core::ids::Pool;
use evenbeat_whatif::{AddedJobs, BreakKind, GroupName, LENGTH, PoolAnswer, Smallest};

use super::figures::{FleetOrigin, GrowthResult, SetupResult, SimulationFigures};
use crate::cli::chart::{counted, thousands, to_u64};
use crate::cli::format::local;
use crate::views::whatif::{ServerFacts, length, percent};

/// `1 node with 40 units`, `3 nodes with 4 units of crawl and 2 of default each`.
pub(super) fn carried_by(lived: &SetupResult) -> String {
    let nodes = counted(to_u64(lived.n_nodes), "node");
    let each = if 1 < lived.n_nodes { " each" } else { "" };
    let mut pools = lived.capacity.iter();
    match (pools.next(), pools.next()) {
        (None, _) => nodes,
        (Some((_, units)), None) => format!("{nodes} with {}{each}", counted((*units).into(), "unit")),
        _ => {
            let all = lived.capacity.iter().enumerate().map(|(idx, (pool, units))| match idx {
                0 => format!("{} of {pool}", counted((*units).into(), "unit")),
                _ => format!("{} of {pool}", thousands((*units).into())),
            });
            format!("{nodes} with {}{each}", listed(&all.collect::<Vec<_>>()))
        }
    }
}

/// The result in one sentence.
pub(super) fn headline(figures: &SimulationFigures, lived: &SetupResult) -> String {
    let all = &lived.report.all;
    let days = counted(u64::try_from(figures.days).unwrap_or(0), "day");
    let jobs = counted(to_u64(all.n_jobs), "job");
    if all.n_jobs == 0 {
        return "No jobs, so nothing to simulate.".to_owned();
    }
    let carried = carried_by(lived);
    if all.n_runs == 0 {
        return format!("{jobs}, {days}, {carried}: nothing ran.");
    }
    let late = match all.n_late {
        0 => format!("none of {} late", counted(all.n_runs, "run")),
        n => format!("{} of {} late", thousands(n), counted(all.n_runs, "run")),
    };
    format!("{jobs}, {days}, {carried}: {} fresh, {late}.", percent(all.freshness))
}

/// How the capacity was chosen if none was given.
pub(super) fn assumed(lived: &SetupResult) -> Option<String> {
    if lived.assumed.is_empty() || lived.smallest.is_some() {
        return None;
    }
    let whose = if lived.assumed.len() == lived.capacity.len() {
        "Capacity".to_owned()
    } else {
        let pools: Vec<String> = lived.assumed.iter().map(ToString::to_string).collect();
        format!("Capacity of {}", listed(&pools))
    };
    Some(format!(
        "{whose} is what the fleet needs on average, rounded up to about 70% use; use --capacity to set it."
    ))
}

/// The result of --target, with one sentence per pool.
pub(super) fn found(smallest: &Smallest, n_nodes: usize) -> Vec<String> {
    let a_node = if 1 < n_nodes { " per node" } else { "" };
    let is_only = smallest.pools.len() == 1;
    let of = |pool: &Pool| if is_only { String::new() } else { format!("{pool}: ") };
    let target = percent(smallest.target);
    let sentence = |(pool, answer): (&Pool, &PoolAnswer)| match answer {
        PoolAnswer::Enough { enough, below } => {
            let units = counted(enough.capacity.into(), "unit");
            let verb = if enough.capacity == 1 { "reaches" } else { "reach" };
            let below = match below {
                Some(below) => format!(
                    "{} {} only {}",
                    thousands(below.capacity.into()),
                    if below.capacity == 1 { "reaches" } else { "reach" },
                    percent(below.freshness)
                ),
                None => "and fewer cannot run its costliest job".to_owned(),
            };
            let below = if enough.capacity == 1 { "which is the minimum".to_owned() } else { below };
            format!("{}{units}{a_node} {verb} {}, {below}.", of(pool), percent(enough.freshness))
        }
        PoolAnswer::OutOfReach(most) => format!(
            "{}no capacity reaches {target}: even with room for every run at once ({}{a_node}) it is {}. Check \
             the worst jobs for site limits, failures and runs that are too long for their deadline.",
            of(pool),
            counted(most.capacity.into(), "unit"),
            percent(most.freshness),
        ),
    };
    smallest.pools.iter().map(sentence).collect()
}

/// The effect of --add: what breaks, and how many jobs could be added.
pub(super) fn added(figures: &SimulationFigures, added: &GrowthResult) -> Vec<String> {
    let kinds: Vec<String> = added.kinds.iter().map(kind).collect();
    let kinds = listed(&kinds);
    let mut said = Vec::new();
    said.push(match &added.first_break {
        None => format!("Adding {kinds} breaks nothing."),
        Some(it) => {
            let (who, breaks) = match &it.group {
                GroupName::Pool(pool) => (format!("pool {pool}"), "breaks"),
                GroupName::Site(site) => (format!("site {site}"), "breaks"),
                GroupName::Schedule(schedule) => (format!("jobs {}", schedule_name(schedule)), "break"),
            };
            let after = length(it.at - figures.window.start());
            let when = match after.as_str() {
                "0s" => "in the first quarter hour".to_owned(),
                after => format!("after {after} ({})", local(&figures.zone, it.at)),
            };
            match it.what {
                BreakKind::Freshness { before, after } => format!(
                    "Adding {kinds}: {who} {breaks} first, {when}: {} fresh → {}.",
                    percent(before),
                    percent(after)
                ),
                BreakKind::Queue { before, after } => format!(
                    "Adding {kinds}: nothing is late, but the queue of {who} grows, {when}: longest {before:.1} → \
                     {after:.1} runs."
                ),
            }
        }
    });
    let least = percent(added.most.least);
    let (holds, breaks) = (added.most.holds, added.most.breaks);
    let asked: u32 = added.kinds.iter().map(|it| it.n).sum();
    let was_below = added.before.all.freshness < added.most.least;
    let mut room = match (holds, breaks) {
        (_, None) => format!("Even {} {} above {least}.", counted(holds.into(), "such job"), stay(holds)),
        (0, Some(_)) => format!("Not even one such job can be added without falling below {least}."),
        (holds, Some(breaks)) => {
            let more = if asked < holds {
                format!(" ({} more than requested)", thousands((holds - asked).into()))
            } else {
                String::new()
            };
            format!(
                "Up to {}{} {} above {least}{more}; {} do not.",
                if 1 < breaks - holds { "about " } else { "" },
                counted(holds.into(), "such job"),
                stay(holds),
                thousands(breaks.into())
            )
        }
    };
    if was_below {
        let _ = write!(
            room,
            " The fleet is already below that ({}) and must not fall further.",
            percent(added.before.all.freshness)
        );
    }
    said.push(room);
    said
}

fn stay(n_jobs: u32) -> &'static str {
    if n_jobs == 1 { "stays" } else { "stay" }
}

fn kind(it: &AddedJobs) -> String {
    let mut said = format!("{} every {} taking {}", counted(it.n.into(), "job"), it.every, it.taking);
    if let Some(within) = it.within {
        let _ = write!(said, " within {within}");
    }
    if it.pool != Pool::default_pool() {
        let _ = write!(said, " in pool {}", it.pool);
    }
    if let Some(site) = &it.site {
        let _ = write!(said, " on site {site}");
    }
    if it.cost != 1 {
        let _ = write!(said, " costing {}", it.cost);
    }
    said
}

fn schedule_name(schedule: &str) -> String {
    match schedule {
        "cron" => "on cron schedules".to_owned(),
        "once" => "that run once".to_owned(),
        other => other.to_owned(),
    }
}

/// The notes below the figures.
pub(super) fn notes(figures: &SimulationFigures) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |n: usize, one: &str, many: &str| {
        if 0 < n {
            notes.push(format!("{} {}", counted(to_u64(n), "job"), if n == 1 { one } else { many }));
        }
    };
    note(
        figures.n_idle,
        "never starts on its own: manual, paused or disabled.",
        "never start on their own: manual, paused or disabled.",
    );
    let usual = length(LENGTH);
    if let FleetOrigin::Server(servers) = figures.origin {
        note(
            servers.n_measured,
            "takes as long as its measured runs.",
            "take as long as their measured runs.",
        );
    }
    note(
        figures.n_unknown_length,
        &format!("does not say how long it takes; {usual} is assumed (set `estimate`)."),
        &format!("do not say how long they take; {usual} is assumed (set `estimate`)."),
    );
    if let FleetOrigin::Server(ServerFacts { are_alike: false, .. }) = figures.origin {
        notes.push("The nodes differ in capacity; each is assumed to have the average.".to_owned());
    }
    if 0 < figures.n_left_out {
        let lines = counted(to_u64(figures.n_left_out), "crontab line");
        notes.push(format!("{lines} skipped: `@reboot`, a date that does not exist, or not understood."));
    }
    if figures.assumes_utc {
        notes.push(
            "Times are assumed to be UTC; to change that, add a line such as `CRON_TZ=Europe/Berlin` at the top.".to_owned(),
        );
    }
    notes
}

/// `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [before @ .., last] => format!("{} and {last}", before.join(", ")),
    }
}
