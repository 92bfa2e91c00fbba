//! The table of pools.

use maud::{Markup, html};

use crate::dashboard::parts::{CELLS_MAX, ConditionMark, SlotUnits, slot_cells};
use crate::dashboard::times::{Distance, Times, count, counted};
use crate::printable;
use crate::views::capacity::{PoolUsage, PoolWaiting};

pub(super) fn section(pools: &[PoolUsage], times: &Times) -> Markup {
    html! {
        section.sec.gap id="pools" data-l aria-labelledby="p-h" {
            div.sec-h { h2 id="p-h" { "Pools" } span.sub { "a run takes as many slots as its job costs" } }
            @if pools.is_empty() { p.mut { "No job names a pool, and no node carries one." } }
            @else {
                table.tbl.pools {
                    thead { tr {
                        th { "Pool" } th { "Slots" } th.num { "Running" } th.num { "Free" } th.num { "Waiting" }
                        th.num { "Longest wait" } th.p-n { "Note" }
                    } }
                    tbody { @for pool in pools { (row(pool, times)) } }
                }
            }
        }
    }
}

fn row(pool: &PoolUsage, times: &Times) -> Markup {
    let mark = if pool.usable == 0 || pool.is_full() { ConditionMark::Warning } else { ConditionMark::Ok };
    let capacity = pool.usable + pool.closed;
    let name = printable::line(&pool.pool);
    let waiting = pool.waiting.map(|it| it.n_jobs);
    html! {
        tr {
            td { span class={ "st st-" (mark.name()) } { (mark.icon()) span.w { a href={ "/?tab=all&pool=" (pool.pool) } { (name) } } } }
            td.p-c { @if let Some(units) = units(pool) { (slot_cells(units, CELLS_MAX)) } @else { span.mut { (counted(pool.n_runs, "run")) } } }
            td.num { @match pool.in_use {
                Some(in_use) => { b { (count(in_use.all())) } " " span.mut { "of " (count(capacity)) } }
                None => b { (counted(pool.n_runs, "run")) }
            } }
            td.num { @match pool.free() { Some(free) => (count(free)), None => span.mut { "not known" } } }
            td.num { @match waiting { Some(n) => (count(n)), None => span.mut { "not known" } } }
            td.num.t2 { @match pool.waiting { Some(PoolWaiting { since: Some(since), .. }) => (times.distance(since, Distance::Since)), _ => "none" } }
            td.t2.p-n { (note(pool)) }
        }
    }
}

/// The units of a pool. None if they are not known.
fn units(pool: &PoolUsage) -> Option<SlotUnits> {
    let in_use = pool.in_use?;
    let closed = (pool.usable + pool.closed).saturating_sub(in_use.all() + pool.free()?);
    Some(SlotUnits {
        running: in_use.usable + in_use.draining,
        silent: in_use.silent,
        free: pool.free()?,
        closed,
    })
}

/// Why a pool has less room than its slots, in a few words.
fn note(pool: &PoolUsage) -> String {
    let mut notes = Vec::new();
    let named = |nodes: &[String], what: &str| match nodes {
        [] => None,
        [one] => Some(format!("{} {what}", printable::line(one))),
        more => Some(format!("{} nodes {what}", more.len())),
    };
    notes.extend(named(&pool.silent, "silent"));
    notes.extend(named(&pool.draining, "draining"));
    if pool.usable == 0 {
        notes.push("no node takes new runs".to_owned());
    } else if let Some(PoolWaiting { n_jobs, .. }) = pool.waiting.filter(|_| pool.is_full()) {
        let verb = if n_jobs == 1 { "waits" } else { "wait" };
        notes.push(format!("full, {} {verb}", counted(n_jobs, "job")));
    }
    notes.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::capacity::PoolInUse;

    fn pool() -> PoolUsage {
        PoolUsage {
            pool: "bulk".to_owned(),
            usable: 8,
            closed: 8,
            n_runs: 5,
            in_use: Some(PoolInUse { usable: 3, draining: 1, silent: 2 }),
            waiting: Some(PoolWaiting { n_jobs: 0, since: None }),
            silent: Vec::new(),
            draining: vec!["iad-2".to_owned()],
        }
    }

    #[test]
    fn closed_slots_are_those_that_nothing_uses_and_nothing_may_use() {
        let expected = SlotUnits { running: 4, silent: 2, free: 5, closed: 5 };
        assert_eq!(units(&pool()), Some(expected));
    }

    #[test]
    fn the_note_says_why_there_is_less_room() {
        assert_eq!(note(&pool()), "iad-2 draining");
        let silent = vec!["a".to_owned(), "b".to_owned()];
        let none = PoolUsage { usable: 0, silent, draining: Vec::new(), ..pool() };
        assert_eq!(note(&none), "2 nodes silent, no node takes new runs");
        let in_use = Some(PoolInUse { usable: 8, ..PoolInUse::default() });
        let waiting = Some(PoolWaiting { n_jobs: 1, since: None });
        let full = PoolUsage { in_use, waiting, draining: Vec::new(), ..pool() };
        assert_eq!(note(&full), "full, 1 job waits");
    }
}
