//! Made-up fleets: the same for the same size.

use evenbeat_core::ids::stable_hash;
use evenbeat_core::schedule::cron::CronExpr;
use evenbeat_core::slot::{JobLoad, RunWork, SlotWidth};
use evenbeat_core::time::{Duration, Timestamp};
use evenbeat_core::zone::Zone;

/// A Wednesday, in the middle of a slot.
pub(crate) fn now() -> Timestamp {
    "2026-02-04T10:07:30Z".parse().expect("an instant")
}

/// Minutes of an interval, and how many of a hundred jobs have it.
const INTERVALS: [(i64, u64); 11] = [
    (5, 5),
    (10, 5),
    (15, 10),
    (20, 3),
    (30, 10),
    (60, 22),
    (120, 8),
    (360, 12),
    (720, 5),
    (1_440, 15),
    (10_080, 5),
];

/// Cron expressions as people write them.
const PINNED: [&str; 5] = ["0 * * * *", "0 0 * * *", "0 */6 * * *", "30 * * * *", "0 9 * * 1-5"];

/// One job of a made-up fleet.
pub(crate) enum Made {
    Every { name: String, interval: Duration, work: RunWork },
    Pinned { load: JobLoad },
}

/// A fleet of which a tenth is pinned.
pub(crate) fn mixed(n_jobs: usize) -> Vec<Made> {
    let mut dice = Dice(n_jobs as u64);
    (0..n_jobs)
        .map(|idx| {
            let minutes = 1 + dice.below(40);
            let work = RunWork { length: Duration::from_mins(minutes as i64 / 4 + 1), cost: 1 };
            if dice.below(10) == 0 {
                let text = PINNED[dice.below(PINNED.len() as u64) as usize];
                let plan = CronExpr::parse(text).expect("an expression").plan().expect("without H");
                return Made::Pinned { load: JobLoad::cron(plan, Zone::utc(), now(), work) };
            }
            Made::Every { name: format!("job-{idx}"), interval: interval(&mut dice), work }
        })
        .collect()
}

fn interval(dice: &mut Dice) -> Duration {
    let mut rest = dice.below(100);
    for (minutes, share) in INTERVALS {
        if rest < share {
            return Duration::from_mins(minutes);
        }
        rest -= share;
    }
    Duration::from_hours(1)
}

/// The four ways of choosing a first run that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Phase,
    NameHash,
    Jitter,
    AtZero,
}

impl Way {
    pub(crate) const ALL: [Way; 4] = [Way::Phase, Way::NameHash, Way::Jitter, Way::AtZero];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Way::Phase => "phase",
            Way::NameHash => "name hash",
            Way::Jitter => "random jitter",
            Way::AtZero => "all at :00",
        }
    }

    /// The first run, for all but the phase, which looks at the load.
    pub(crate) fn first(self, name: &str, interval: Duration, dice: &mut Dice) -> Timestamp {
        let step = interval.as_millis();
        let phase = match self {
            Way::Phase | Way::AtZero => 0,
            Way::NameHash => {
                i64::try_from(stable_hash(name.as_bytes()) % step.unsigned_abs()).expect("small")
            }
            Way::Jitter => i64::try_from(dice.below(step.unsigned_abs())).expect("small"),
        };
        let after = now().as_millis() - phase;
        Timestamp::from_millis((after.div_euclid(step) + 1) * step + phase)
    }
}

/// `SplitMix64`.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % end
    }
}

pub(crate) const WIDTH: SlotWidth = SlotWidth::DEFAULT;
