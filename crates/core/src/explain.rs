//! Why a job runs or does not (B15), from the very code that decides.
//!
//! What keeps a job itself waiting (its schedule, a floor, a blackout, a pause) comes from
//! [`condition::waits`]. What keeps it waiting among others is read off the plan that the next dispatch
//! would carry out: `Engine::plan` changes nothing, so asking costs nothing but the time to think.

use std::fmt;

use crate::condition::{self, Assessment, Reason, Wait};
use crate::engine::plan::{PassReason, Plan, Stop};
use crate::engine::view::{Entry, JobIdx, Stage};
use crate::engine::{Engine, Now};
use crate::ids::{JobKey, NodeName, Pool};
use crate::job::{JobState, Terms};
use crate::repair;
use crate::store::{CounterKey, SessionRow};
use crate::time::Timestamp;
use crate::unsatisfiable::{Unsatisfiable, units};
use crate::urgency::Outlook;

/// How many of the jobs that go before are named.
const NAMED_MAX: usize = 5;

/// How many of the jobs that go before are counted.
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
    /// It has been claimed, and the store has not answered yet.
    Asked,
    /// As many of its runs are open as may be.
    Running,
    /// The same, and the node that runs it has fallen silent.
    OwnerLost {
        /// That node.
        node: NodeName,
    },
    /// Something of its own: schedule, retry delay, blackout, pause.
    Own(Wait),
    /// Its stored next run is not one of its schedule's: nothing runs for it until it is placed again.
    Misplaced,
    /// No node can take it; why, if that is not just for the moment.
    NoNode(Option<Unsatisfiable>),
    /// Every node that could take it is draining.
    Draining { nodes: Vec<NodeName> },
    /// Only other nodes may take it.
    Elsewhere { nodes: Vec<NodeName> },
    /// Another node may take it first, for a moment.
    LeftTo {
        /// Which; none if it has just gone.
        node: Option<NodeName>,
        /// Until when.
        until: Timestamp,
    },
    /// A limit that spans nodes has no room.
    Limited {
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
    /// Its pool has room for it, but keeps it for manual and short runs.
    Reserved {
        /// Which pool.
        pool: Pool,
        /// What is free there and not reserved.
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
    /// The store does not answer, or the lease cannot be confirmed.
    NotTrusted,
    /// It waits for the answer to what it asked last.
    Asking,
}

impl Binding {
    /// Its code.
    pub fn reason(&self) -> Reason {
        match self {
            Binding::StartsNow | Binding::Asked | Binding::LeftTo { .. } => Reason::Ok,
            Binding::Running => Reason::Running,
            Binding::OwnerLost { .. } => Reason::OwnerLost,
            Binding::Own(wait) => wait.reason,
            Binding::Misplaced => Reason::NotDue,
            Binding::NoNode(_) | Binding::NodeRests(NodeRest::Starting | NodeRest::NotTrusted) => {
                Reason::NoNode
            }
            Binding::Draining { .. } => Reason::Draining,
            Binding::Limited { by, .. } => match by {
                CounterKey::Site(_) => Reason::Site,
                CounterKey::Tenant(_) => Reason::QuotaConcurrency,
                CounterKey::Name(_) if *by == CounterKey::all_runs() => Reason::QuotaConcurrency,
                CounterKey::Name(_) => Reason::ParallelOfName,
            },
            Binding::Reserved { .. } => Reason::Reserved,
            Binding::GivesWay => Reason::LateShare,
            Binding::LeavesRoomTo(_) | Binding::LooksAheadTo(_) => Reason::Lookahead,
            Binding::NoRoom { .. }
            | Binding::Elsewhere { .. }
            | Binding::StartRate
            | Binding::InLine
            | Binding::NodeRests(NodeRest::Asking) => Reason::NoSlot,
        }
    }

    /// Until when it decides, where that is a matter of time.
    pub fn until(&self) -> Option<Timestamp> {
        match self {
            Binding::Own(wait) => wait.until,
            Binding::LeftTo { until, .. } => Some(*until),
            Binding::Limited { until, .. } => *until,
            _ => None,
        }
    }
}

impl Engine {
    /// Why a job runs or does not, now. None if it is not known here.
    pub fn explain(&self, now: Now, key: &JobKey) -> Option<Explanation> {
        self.explain_by(now, key, &self.plan(now, self.settings.dispatch.batch))
    }

    /// The same for several jobs, with one look at what the next dispatch would do. Those that are not known are left out.
    pub fn explain_all(&self, now: Now, keys: &[JobKey]) -> Vec<Explanation> {
        let plan = self.plan(now, self.settings.dispatch.batch);
        keys.iter().filter_map(|key| self.explain_by(now, key, &plan)).collect()
    }

    fn explain_by(&self, now: Now, key: &JobKey, plan: &Plan) -> Option<Explanation> {
        let idx = self.view.idx_of(key)?;
        let entry = self.view.get(idx)?;
        let time = self.time(now);
        let binding = self.binding(now, time, idx, entry, plan);
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
        let outlook = Outlook { fit: self.nodes.settled_fit(terms), ..self.outlook(terms) };
        let binding = match condition::waits(key, terms, state, at, &outlook).first() {
            Some(wait) => Binding::Own(*wait),
            None => self.not_here(terms).unwrap_or(Binding::StartsNow),
        };
        let assessment = condition::assess(key, terms, state, at, &outlook);
        let starts_at = assessment.planned_start.filter(|_| !self.is_out_of_reach(terms));
        Some(Explanation { key: key.clone(), at, assessment, binding, before: Before::default(), starts_at })
    }

    fn binding(&self, now: Now, time: Timestamp, idx: JobIdx, entry: &Entry, plan: &Plan) -> Binding {
        let Entry { key, terms, state, n_open, .. } = entry;
        if self.asked.contains_key(key) {
            return Binding::Asked;
        }
        if terms.max_open() <= *n_open {
            let lost = self.lost_owner(now, state);
            return lost.map_or(Binding::Running, |node| Binding::OwnerLost { node });
        }
        let from = self.starts_from(entry, time);
        if from.is_none_or(|at| time < at) {
            let own = condition::waits(key, terms, state, time, &self.outlook(terms)).into_iter().next();
            return Binding::Own(own.unwrap_or(Wait { reason: Reason::NotDue, until: from }));
        }
        if let Some(binding) = self.not_here(terms) {
            return binding;
        }
        if repair::is_off_rhythm(terms, state) {
            return Binding::Misplaced;
        }
        if let Some(rest) = self.rests(now) {
            return Binding::NodeRests(rest);
        }
        match entry.stage {
            Stage::Waiting { at, is_left: true } if time < at => {
                let node = self.preferred_node(key, terms);
                return Binding::LeftTo { node, until: at };
            }
            Stage::Parked => {
                if let Some(by) = self.queued.get(&idx).and_then(|it| it.parked_at.clone()) {
                    let until = self.counters.refused_until(&by);
                    return Binding::Limited { by, until };
                }
            }
            _ => {}
        }
        self.in_line(idx, entry, plan)
    }

    /// The silent node whose run of this job has not been released yet.
    fn lost_owner(&self, now: Now, state: &JobState) -> Option<NodeName> {
        let (session, owner) = (self.life.session()?, state.owner.as_ref()?);
        // A session that has joined since we last looked is not known yet.
        let was_seen = self.watched_at.is_some_and(|at| owner.started_at < at);
        if session.lease.is_none() || !was_seen || self.held.by_id.contains_key(&owner.tag) {
            return None;
        }
        let is_its = |peer: &&SessionRow| peer.spec.node == owner.node && peer.spec.name == owner.name;
        let is_lost = match self.peers.iter().find(is_its) {
            Some(peer) => session.is_in_doubt(now.boot, peer.spec.id),
            None => true,
        };
        is_lost.then(|| owner.node.clone())
    }

    /// Why this node does not take such a job at all, if so: because others do, or because none does.
    fn not_here(&self, terms: &Terms) -> Option<Binding> {
        let is_draining = self.is_draining || self.is_drained;
        if self.may_take(terms) && !is_draining {
            return None;
        }
        let nodes = self.others_able(terms);
        if !nodes.is_empty() {
            return Some(Binding::Elsewhere { nodes });
        }
        let nodes = self.draining_nodes(terms);
        if !nodes.is_empty() {
            return Some(Binding::Draining { nodes });
        }
        let excludes_all = terms.place.excludes_all().then_some(Unsatisfiable::NoNode);
        Some(Binding::NoNode(excludes_all.or_else(|| self.nodes.fit(terms).unsatisfiable(terms))))
    }

    /// Whether neither this node nor another can take such a job.
    pub(crate) fn is_taken_by_no_node(&self, terms: &Terms) -> bool {
        matches!(self.not_here(terms), Some(Binding::NoNode(_)))
    }

    /// Whether no living node can take such a job, now or later. Then no start can be foreseen, whatever the schedule says.
    fn is_out_of_reach(&self, terms: &Terms) -> bool {
        matches!(self.not_here(terms), Some(Binding::NoNode(Some(_))))
    }

    /// What the plan says about a job that stands in line.
    fn in_line(&self, idx: JobIdx, entry: &Entry, plan: &Plan) -> Binding {
        if plan.picks.iter().any(|pick| pick.idx == idx) {
            return Binding::StartsNow;
        }
        let name_of = |idx: JobIdx| self.view.get(idx).map_or_else(|| entry.key.clone(), |it| it.key.clone());
        match plan.passed.iter().find(|(of, _)| *of == idx).map(|(_, why)| why) {
            Some(PassReason::Counter(by)) => {
                return Binding::Limited { by: by.clone(), until: self.counters.refused_until(by) };
            }
            Some(PassReason::LeavesRoomTo(other)) => return Binding::LeavesRoomTo(name_of(*other)),
            Some(PassReason::LooksAheadTo(other)) => return Binding::LooksAheadTo(name_of(*other)),
            Some(PassReason::GivesWay) => return Binding::GivesWay,
            Some(PassReason::Later(_)) | None => {}
        }
        if plan.gives_way.contains(&idx) {
            return Binding::GivesWay;
        }
        let pool = &entry.terms.place.pool;
        match plan.stops.get(pool) {
            Some(Stop::StartRate) => Binding::StartRate,
            Some(Stop::Full) => self.without_room(idx, entry, plan),
            Some(Stop::Nobody | Stop::Batch) | None => Binding::InLine,
        }
    }

    /// Why a job of a pool that takes no more of those in line finds no room in it.
    fn without_room(&self, idx: JobIdx, entry: &Entry, plan: &Plan) -> Binding {
        let (pool, needed) = (&entry.terms.place.pool, entry.terms.place.cost);
        let Some(line) = self.pools.get(pool) else { return Binding::InLine };
        // What starts now takes its units first.
        let starting = plan.picks.iter().filter_map(|pick| self.view.get(pick.idx));
        let starting = starting.filter(|it| it.terms.place.pool == *pool).map(|it| it.terms.place.cost).sum();
        let free = line.free().saturating_sub(starting);
        let unreserved = free.saturating_sub(line.settings.reserved);
        let is_small = self.queued.get(&idx).is_some_and(|it| it.lane.is_small);
        if free < needed {
            Binding::NoRoom { pool: pool.clone(), free, needed }
        } else if unreserved < needed && !is_small {
            Binding::Reserved { pool: pool.clone(), free: unreserved, needed }
        } else {
            Binding::InLine
        }
    }

    /// Why the node takes nothing at all, if so.
    fn rests(&self, now: Now) -> Option<NodeRest> {
        if self.life.session().is_none() || !self.feed.is_loaded {
            return Some(NodeRest::Starting);
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
            Binding::Own(_) => self.starts_from(entry, time).filter(|_| !self.is_out_of_reach(&entry.terms)),
            Binding::NoRoom { pool, free, needed } | Binding::Reserved { pool, free, needed } => {
                Some(self.pools.get(pool)?.room_at(*needed, *free, time)?.0)
            }
            Binding::LeavesRoomTo(_)
            | Binding::LooksAheadTo(_)
            | Binding::GivesWay
            | Binding::StartRate
            | Binding::InLine
            | Binding::NodeRests(_)
            | Binding::Running
            | Binding::OwnerLost { .. }
            | Binding::Misplaced
            | Binding::NoNode(_)
            | Binding::Draining { .. }
            | Binding::Elsewhere { .. } => None,
        }
    }

    fn outlook_for(&self, binding: &Binding, entry: &Entry, starts_at: Option<Timestamp>) -> Outlook {
        let is_queue =
            matches!(binding, Binding::NoRoom { .. } | Binding::Reserved { .. } | Binding::Limited { .. });
        Outlook {
            room_at: starts_at.filter(|_| is_queue),
            fit: self.nodes.settled_fit(&entry.terms),
            ..self.outlook(&entry.terms)
        }
    }
}

/// The sentence for people. It has no instants: they are shown separately, in the reader's own zone.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Binding::StartsNow => f.write_str("Nothing holds it up."),
            Binding::Asked => f.write_str("It is being claimed, and starts in a moment."),
            Binding::Running | Binding::GivesWay => f.write_str(self.reason().sentence()),
            Binding::OwnerLost { node } => write!(
                f,
                "Node `{node}`, which runs it, has stopped responding; the run is released when that node is fenced."
            ),
            Binding::Own(wait) => f.write_str(wait.reason.sentence()),
            Binding::Misplaced => f.write_str(
                "Its stored next run does not match its schedule; it is about to be placed again.",
            ),
            Binding::NoNode(Some(why)) => write!(f, "No node can take it: {why}."),
            Binding::NoNode(None) => f.write_str("No node that may take it is available at the moment."),
            Binding::Draining { nodes } => match nodes.as_slice() {
                [node] => write!(f, "Node `{node}` is draining and takes no new runs."),
                nodes => write!(f, "Nodes {} are draining and take no new runs.", names(nodes)),
            },
            Binding::Elsewhere { nodes } => match nodes.as_slice() {
                [node] => write!(f, "It is waiting for node `{node}`; this node does not take it."),
                nodes => {
                    write!(
                        f,
                        "It is waiting for one of the nodes {}; this node does not take it.",
                        names(nodes)
                    )
                }
            },
            Binding::LeftTo { node: Some(node), .. } => {
                write!(f, "Node `{node}` goes first; this node takes it if `{node}` does not.")
            }
            Binding::LeftTo { node: None, .. } => {
                f.write_str("Another node may take it first, for a moment.")
            }
            Binding::Limited { by, .. } => match by {
                CounterKey::Site(site) => write!(f, "Site `{site}` is at its limit."),
                CounterKey::Tenant(tenant) => {
                    write!(f, "Tenant `{tenant}` has used up its quota of concurrent jobs.")
                }
                CounterKey::Name(_) if *by == CounterKey::all_runs() => {
                    f.write_str(Reason::QuotaConcurrency.sentence())
                }
                CounterKey::Name(name) => {
                    write!(f, "Jobs named `{name}` have reached `max_parallel_of_name`.")
                }
            },
            Binding::NoRoom { pool, free: 0, needed } => {
                write!(f, "Pool `{pool}` is full, and the job needs {}.", units(*needed))
            }
            Binding::NoRoom { pool, free, needed } => {
                write!(f, "Pool `{pool}` has {} free, but the job needs {needed}.", units(*free))
            }
            Binding::Reserved { pool, free: 0, .. } => {
                write!(f, "The only free units of pool `{pool}` are reserved for manual and short runs.")
            }
            Binding::Reserved { pool, free, needed } => write!(
                f,
                "Pool `{pool}` has {} free outside the reserve for manual and short runs, but the job needs {needed}.",
                units(*free)
            ),
            Binding::LeavesRoomTo(key) => write!(f, "Its room is held for `{key}`, which is more urgent."),
            Binding::LooksAheadTo(key) => {
                write!(f, "Its room is held for `{key}`, which will soon need it more.")
            }
            Binding::StartRate => f.write_str("This node has reached its limit of starts per second."),
            Binding::InLine => f.write_str("Other jobs go first."),
            Binding::NodeRests(rest) => f.write_str(match rest {
                NodeRest::Starting => "No node can take it yet: this node is still loading the fleet.",
                NodeRest::NotTrusted => "No node can take it: this node is waiting for the store to answer.",
                NodeRest::Asking => "Other jobs go first: this node waits for the store to grant them.",
            }),
        }
    }
}

/// `a`, `b`.
fn names(nodes: &[NodeName]) -> String {
    nodes.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ")
}
