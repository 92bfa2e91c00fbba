//! Why a job runs or does not (B15), from the very code that decides.
//!
//! What keeps a job waiting by itself (its schedule, a floor, a blackout, a pause) is asked of
//! [`condition::waits`]. What keeps it waiting among others is read off the plan that the next dispatch
//! would carry out: `Engine::plan` changes nothing, so asking costs nothing but the time to think.

use std::fmt;

use crate::condition::{self, Assessment, Wait};
use crate::engine::plan::{Passed, Plan, Stop};
use crate::engine::view::{Entry, JobIdx, Spot};
use crate::engine::{Engine, Now};
use crate::ids::{JobKey, NodeName, Pool};
use crate::repair;
use crate::store::CounterKey;
use crate::time::Timestamp;
use crate::urgency::Outlook;

/// So many jobs that go before are named.
const NAMED_MAX: usize = 5;

/// So many jobs that go before are counted.
const COUNTED_MAX: usize = 1_000;

/// Why a job runs or does not.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Which job.
    pub key: JobKey,
    /// As of when.
    pub at: Timestamp,
    /// How it stands: condition, reasons, instants.
    pub assessment: Assessment,
    /// What decides.
    pub binding: Binding,
    /// Who goes before it, if it stands in line.
    pub before: Before,
    /// When it will start, as far as can be foreseen.
    pub starts_at: Option<Timestamp>,
}

/// Who goes before a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// How many, counted up to a thousand.
    pub n: usize,
    /// The first of them.
    pub first: Vec<JobKey>,
}

/// The one thing that decides.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// It starts now.
    StartsNow,
    /// The store has been asked for it, and has not answered yet.
    Asked,
    /// So many of its runs are open as may be.
    Running,
    /// Something of its own: schedule, floor, blackout, pause.
    Own(Wait),
    /// What is stored as its next run is none of its schedule's: nothing runs for it, and it is placed afresh.
    Misplaced,
    /// Nothing is due: it runs when triggered, or never again.
    NothingDue,
    /// This node may not take it, or could not carry it.
    NotOnThisNode,
    /// It is left to another node for a moment.
    LeftTo {
        /// Which; none if it has just gone.
        node: Option<NodeName>,
        /// Until when.
        until: Timestamp,
    },
    /// A limit that spans nodes has no room.
    Limited {
        /// Which.
        by: CounterKey,
        /// When it is asked again, if that is known.
        until: Option<Timestamp>,
    },
    /// Its pool has no room for it.
    NoRoom {
        /// Which pool.
        pool: Pool,
        /// What is free there.
        free: u32,
        /// What it needs.
        needed: u32,
    },
    /// It is late already, and gives way to what can still be saved.
    GivesWay,
    /// It fits, and leaves the room to one that is more urgent and larger.
    LeavesRoomTo(JobKey),
    /// It fits and is long, and another will soon need the room more.
    LooksAheadTo(JobKey),
    /// Runs start no faster.
    StartRate,
    /// Others go first.
    InLine,
    /// The node itself takes nothing now.
    NodeRests(NodeRest),
}

/// Why a node takes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRest {
    /// It has no session yet, or reads the fleet.
    Starting,
    /// It finishes what runs and takes nothing new.
    Draining,
    /// It cannot confirm its lease.
    NotTrusted,
    /// It waits for the answer to what it asked last.
    Asking,
}

impl Engine {
    /// Why a job runs or does not, now. None if it is not known here.
    pub fn explain(&self, now: Now, key: &JobKey) -> Option<Explanation> {
        let idx = self.view.idx_of(key)?;
        let entry = self.view.get(idx)?;
        let time = self.time(now);
        let plan = self.plan(now, self.settings.dispatch.batch);
        let binding = self.binding(now, time, idx, entry, &plan);
        let before = self.before(idx, entry);
        let starts_at = self.starts_at(&binding, entry, time);
        let outlook = self.outlook_for(&binding, entry, starts_at);
        let assessment = condition::assess(key, &entry.terms, &entry.state, time, &outlook);
        Some(Explanation { key: key.clone(), at: time, assessment, binding, before, starts_at })
    }

    /// Why a job would run or not at a later instant, if nothing else changes until then.
    pub fn explain_at(&self, key: &JobKey, at: Timestamp) -> Option<Explanation> {
        let entry = self.view.find(key)?;
        let Entry { terms, state, .. } = entry;
        let binding = match condition::waits(key, terms, state, at).first() {
            Some(wait) => Binding::Own(*wait),
            None if !self.may_take(terms) => Binding::NotOnThisNode,
            None => Binding::InLine,
        };
        let assessment = condition::assess(key, terms, state, at, &self.outlook(terms));
        let starts_at = assessment.planned_start;
        Some(Explanation { key: key.clone(), at, assessment, binding, before: Before::default(), starts_at })
    }

    fn binding(&self, now: Now, time: Timestamp, idx: JobIdx, entry: &Entry, plan: &Plan) -> Binding {
        let Entry { key, terms, state, n_open, .. } = entry;
        if self.asked.contains_key(key) {
            return Binding::Asked;
        }
        if terms.max_open() <= *n_open {
            return Binding::Running;
        }
        if self.starts_from(entry, time).is_none_or(|at| time < at) {
            let own = condition::waits(key, terms, state, time);
            return own.first().map_or(Binding::NothingDue, |wait| Binding::Own(*wait));
        }
        if !self.may_take(terms) {
            return Binding::NotOnThisNode;
        }
        if repair::is_off_rhythm(terms, state) {
            return Binding::Misplaced;
        }
        if let Some(rest) = self.rests(now) {
            return Binding::NodeRests(rest);
        }
        match entry.spot {
            Spot::Waiting { at, is_left: true } if time < at => {
                let node = self.preferred_node(key, terms);
                return Binding::LeftTo { node, until: at };
            }
            Spot::Parked => {
                if let Some(by) = self.queued.get(&idx).and_then(|it| it.parked_at.clone()) {
                    let until = self.counters.refused_until(&by);
                    return Binding::Limited { by, until };
                }
            }
            _ => {}
        }
        self.in_line(idx, entry, plan)
    }

    /// What the plan says about a job that stands in line.
    fn in_line(&self, idx: JobIdx, entry: &Entry, plan: &Plan) -> Binding {
        if plan.picks.iter().any(|pick| pick.idx == idx) {
            return Binding::StartsNow;
        }
        let name_of = |idx: JobIdx| self.view.get(idx).map_or_else(|| entry.key.clone(), |it| it.key.clone());
        match plan.passed.iter().find(|(of, _)| *of == idx).map(|(_, why)| why) {
            Some(Passed::Counter(by)) => {
                return Binding::Limited { by: by.clone(), until: self.counters.refused_until(by) };
            }
            Some(Passed::LeavesRoomTo(other)) => return Binding::LeavesRoomTo(name_of(*other)),
            Some(Passed::LooksAheadTo(other)) => return Binding::LooksAheadTo(name_of(*other)),
            Some(Passed::Later(_)) | None => {}
        }
        if plan.gives_way.contains(&idx) {
            return Binding::GivesWay;
        }
        let pool = &entry.terms.place.pool;
        match plan.stops.get(pool) {
            Some(Stop::StartRate) => Binding::StartRate,
            Some(Stop::Full) => Binding::NoRoom {
                pool: pool.clone(),
                free: self.pools.get(pool).map_or(0, crate::engine::PoolLine::free),
                needed: entry.terms.place.cost,
            },
            Some(Stop::Nobody | Stop::Batch) | None => Binding::InLine,
        }
    }

    /// Why the node takes nothing at all, if so.
    fn rests(&self, now: Now) -> Option<NodeRest> {
        if self.session.is_none() || !self.is_loaded {
            return Some(NodeRest::Starting);
        }
        if self.is_draining || self.is_drained {
            return Some(NodeRest::Draining);
        }
        if !self.may_dispatch(now) {
            return Some(NodeRest::NotTrusted);
        }
        (!self.may_ask()).then_some(NodeRest::Asking)
    }

    /// Who goes before a job that stands in line.
    fn before(&self, idx: JobIdx, entry: &Entry) -> Before {
        let (Some(queued), Some(line)) = (self.queued.get(&idx), self.pools.get(&entry.terms.place.pool))
        else {
            return Before::default();
        };
        let mut earlier: Vec<_> = line
            .ready
            .values()
            .flat_map(|lane| lane.range(..(queued.rank, idx)).take(COUNTED_MAX))
            .copied()
            .collect();
        earlier.sort();
        let named = earlier.iter().take(NAMED_MAX).filter_map(|(_, idx)| self.view.get(*idx));
        Before { n: earlier.len().min(COUNTED_MAX), first: named.map(|it| it.key.clone()).collect() }
    }

    /// When it will start, as far as can be foreseen.
    fn starts_at(&self, binding: &Binding, entry: &Entry, time: Timestamp) -> Option<Timestamp> {
        match binding {
            Binding::StartsNow | Binding::Asked => Some(time),
            Binding::LeftTo { until, .. } => Some(*until),
            Binding::Limited { until, .. } => *until,
            Binding::Own(_) => self.starts_from(entry, time),
            Binding::NoRoom { pool, free, needed } => {
                Some(self.pools.get(pool)?.room_at(*needed, *free, time)?.0)
            }
            Binding::LeavesRoomTo(_)
            | Binding::LooksAheadTo(_)
            | Binding::GivesWay
            | Binding::StartRate
            | Binding::InLine
            | Binding::NodeRests(_)
            | Binding::Running
            | Binding::Misplaced
            | Binding::NothingDue
            | Binding::NotOnThisNode => None,
        }
    }

    fn outlook_for(&self, binding: &Binding, entry: &Entry, starts_at: Option<Timestamp>) -> Outlook {
        let is_queue = matches!(binding, Binding::NoRoom { .. } | Binding::Limited { .. });
        Outlook {
            room_at: starts_at.filter(|_| is_queue),
            no_node: !self.peers.is_empty() && self.n_able(&entry.terms) == 0,
            ..self.outlook(&entry.terms)
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Binding::StartsNow => f.write_str("it starts now"),
            Binding::Asked => f.write_str("the store is being asked for it"),
            Binding::Running => f.write_str("it is running"),
            Binding::Own(wait) => {
                f.write_str(wait.reason.sentence())?;
                wait.until.map_or(Ok(()), |until| write!(f, " Until {until}."))
            }
            Binding::Misplaced => {
                f.write_str("its stored next run is none of its schedule's; it waits to be placed afresh")
            }
            Binding::NothingDue => f.write_str("nothing of it is due"),
            Binding::NotOnThisNode => f.write_str("this node may not take it"),
            Binding::LeftTo { node: Some(node), until } => {
                write!(f, "it is left to node `{node}` until {until}")
            }
            Binding::LeftTo { node: None, until } => write!(f, "it is left to another node until {until}"),
            Binding::Limited { by, until: Some(until) } => write!(f, "{by} has no room before {until}"),
            Binding::Limited { by, until: None } => write!(f, "{by} has no room"),
            Binding::NoRoom { pool, free, needed } => {
                write!(f, "pool `{pool}` has {free} units free, and it needs {needed}")
            }
            Binding::GivesWay => f.write_str("it is late, and gives way to what can still be in time"),
            Binding::LeavesRoomTo(key) => write!(f, "it leaves the room to `{key}`, which is more urgent"),
            Binding::LooksAheadTo(key) => write!(f, "`{key}` will soon need the room more"),
            Binding::StartRate => f.write_str("runs start no faster on this node"),
            Binding::InLine => f.write_str("others go first"),
            Binding::NodeRests(rest) => f.write_str(match rest {
                NodeRest::Starting => "the node is starting",
                NodeRest::Draining => "the node is drained and takes nothing new",
                NodeRest::NotTrusted => "the node cannot confirm its lease",
                NodeRest::Asking => "the node waits for the store's answer",
            }),
        }
    }
}
