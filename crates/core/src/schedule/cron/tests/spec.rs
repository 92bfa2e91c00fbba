//! Made-up expressions that know their own meaning.
//!
//! A [`Spec`] is printed as text for whatever is tested, and asked about single local times by the
//! oracles. It shares no code with the module: no bit sets, no walk, another calendar.

use std::fmt;

use jiff::civil::DateTime;
use proptest::collection::vec;
use proptest::prelude::*;

/// Which of the things that can be written a made-up expression may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// All of them, with or without seconds.
    Ours,
    /// Where croner has the same rules: no wrapping ranges, no `L-n`, a star in a day field only
    /// alone (it takes `*/2` for OR), and `LW` only alone (in a list it swallows a plain `L`).
    Croner,
    /// Where cronexpr has them: five fields, no wrapping ranges, no `LW`, no `L-n`; and neither `L`
    /// nor `FRIL`, which it never finds in December.
    Cronexpr,
}

#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) second: Option<Field>,
    pub(super) minute: Field,
    pub(super) hour: Field,
    pub(super) day: Field,
    pub(super) month: Field,
    pub(super) weekday: Field,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    items: Vec<Item>,
    min: i16,
    max: i16,
}

#[derive(Clone, Debug)]
enum Item {
    Star(Option<i16>),
    One(i16),
    FromOn(i16, i16),
    Range(i16, i16, Option<i16>),
    Last,
    LastMinus(i16),
    LastWorkday,
    Workday(i16),
    LastWeekday(i16),
    NthWeekday(i16, i16),
}

impl Spec {
    pub(super) fn matches(&self, at: DateTime) -> bool {
        let month_matches = self.month.has(at.month().into());
        let time_matches = self.hour.has(at.hour().into())
            && self.minute.has(at.minute().into())
            && self.second.as_ref().map_or(at.second() == 0, |field| field.has(at.second().into()));
        if !month_matches || !time_matches {
            return false;
        }
        let day = self.day.items.iter().any(|it| self.day.has_by(it, at.day().into()) || is_that_day(it, at));
        let weekday_number = i16::from(at.weekday().to_sunday_zero_offset());
        let weekday = self
            .weekday
            .items
            .iter()
            .any(|it| self.weekday.has_by(it, weekday_number) || is_that_day(it, at));
        if self.day.begins_with_star() || self.weekday.begins_with_star() {
            day && weekday
        } else {
            day || weekday
        }
    }

    pub(super) fn is_wall_clock(&self) -> bool {
        !self.minute.begins_with_star() && !self.hour.begins_with_star()
    }
}

impl Field {
    fn begins_with_star(&self) -> bool {
        matches!(self.items.first(), Some(Item::Star(_)))
    }

    fn has(&self, value: i16) -> bool {
        self.items.iter().any(|it| self.has_by(it, value))
    }

    fn has_by(&self, item: &Item, value: i16) -> bool {
        let n_values = self.max - self.min + 1;
        // How far after `from` the value comes, going around if it must.
        let reach = |from: i16, to: i16, step: i16| {
            let steps_to = |value: i16| (value - from).rem_euclid(n_values);
            steps_to(value) <= steps_to(to) && steps_to(value) % step == 0
        };
        match *item {
            Item::Star(step) => (value - self.min) % step.unwrap_or(1) == 0,
            Item::One(number) => value == number,
            Item::FromOn(from, step) => reach(from, self.max, step),
            Item::Range(from, to, step) => reach(from, to, step.unwrap_or(1)),
            _ => false,
        }
    }
}

/// Whether a moving day of the month or of the week falls on this one.
fn is_that_day(item: &Item, at: DateTime) -> bool {
    let day = i16::from(at.day());
    let n_days = i16::from(at.days_in_month());
    let weekday = i16::from(at.weekday().to_sunday_zero_offset());
    let is_workday = |day: i16| {
        let weekday = (weekday + day - i16::from(at.day())).rem_euclid(7);
        (1..=n_days).contains(&day) && weekday != 0 && weekday != 6
    };
    let nearest_workday = |wanted: i16| {
        let candidates = [wanted, wanted - 1, wanted + 1, wanted - 2, wanted + 2];
        candidates.into_iter().find(|day| is_workday(*day))
    };
    match *item {
        Item::Last => day == n_days,
        Item::LastMinus(offset) => day == n_days - offset,
        Item::LastWorkday => (1..=n_days).rev().find(|day| is_workday(*day)) == Some(day),
        Item::Workday(wanted) => wanted <= n_days && nearest_workday(wanted) == Some(day),
        Item::LastWeekday(wanted) => weekday == wanted && n_days - 7 < day,
        Item::NthWeekday(wanted, nth) => weekday == wanted && (day + 6) / 7 == nth,
        _ => false,
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(second) = &self.second {
            write!(f, "{second} ")?;
        }
        write!(f, "{} {} {} {} {}", self.minute, self.hour, self.day, self.month, self.weekday)
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.items.iter().map(Item::to_string).collect();
        f.write_str(&items.join(","))
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::Star(None) => f.write_str("*"),
            Item::Star(Some(step)) => write!(f, "*/{step}"),
            Item::One(number) => write!(f, "{number}"),
            Item::FromOn(from, step) => write!(f, "{from}/{step}"),
            Item::Range(from, to, None) => write!(f, "{from}-{to}"),
            Item::Range(from, to, Some(step)) => write!(f, "{from}-{to}/{step}"),
            Item::Last => f.write_str("L"),
            Item::LastMinus(offset) => write!(f, "L-{offset}"),
            Item::LastWorkday => f.write_str("LW"),
            Item::Workday(day) => write!(f, "{day}W"),
            Item::LastWeekday(weekday) => write!(f, "{weekday}L"),
            Item::NthWeekday(weekday, nth) => write!(f, "{weekday}#{nth}"),
        }
    }
}

pub(super) fn any_spec(dialect: Dialect) -> impl Strategy<Value = Spec> {
    let second = match dialect {
        Dialect::Cronexpr => Just(None).boxed(),
        _ => prop_oneof![3 => Just(None), 1 => time_field(59, dialect).prop_map(Some)].boxed(),
    };
    (
        second,
        time_field(59, dialect),
        time_field(23, dialect),
        day_field(dialect),
        month_field(dialect),
        weekday_field(dialect),
    )
        .prop_map(|(second, minute, hour, day, month, weekday)| Spec {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
        })
}

fn field(min: i16, max: i16, items: impl Strategy<Value = Vec<Item>>) -> impl Strategy<Value = Field> {
    items.prop_map(move |items| Field { items, min, max })
}

fn time_field(max: i16, dialect: Dialect) -> impl Strategy<Value = Field> {
    let items = prop_oneof![
        2 => Just(vec![Item::Star(None)]),
        1 => (2..=max).prop_map(|step| vec![Item::Star(Some(step))]),
        5 => vec(plain_item(0, max, dialect), 1..4),
    ];
    field(0, max, items)
}

fn month_field(dialect: Dialect) -> impl Strategy<Value = Field> {
    let items = prop_oneof![3 => Just(vec![Item::Star(None)]), 1 => vec(plain_item(1, 12, dialect), 1..3)];
    field(1, 12, items)
}

fn day_field(dialect: Dialect) -> impl Strategy<Value = Field> {
    let plain = plain_item(1, 31, dialect);
    let special = match dialect {
        Dialect::Ours => prop_oneof![
            Just(Item::Last),
            (1..=30_i16).prop_map(Item::LastMinus),
            Just(Item::LastWorkday),
            (1..=31_i16).prop_map(Item::Workday),
        ]
        .boxed(),
        Dialect::Croner => prop_oneof![Just(Item::Last), Just(Item::LastWorkday)].boxed(),
        Dialect::Cronexpr => (1..=31_i16).prop_map(Item::Workday).boxed(),
    };
    let workdays = vec((1..=31_i16).prop_map(Item::Workday), 1..3);
    let mixed = match dialect {
        Dialect::Croner => prop_oneof![special.prop_map(|it| vec![it]), vec(plain.clone(), 1..4)].boxed(),
        Dialect::Ours | Dialect::Cronexpr => vec(prop_oneof![plain.clone(), special], 1..4).boxed(),
    };
    let starred = starred_day(plain, dialect);
    field(1, 31, prop_oneof![3 => Just(vec![Item::Star(None)]), 1 => starred, 1 => workdays, 3 => mixed])
}

fn weekday_field(dialect: Dialect) -> impl Strategy<Value = Field> {
    let plain = plain_weekday(dialect);
    let nth = (0..=6_i16, 1..=5_i16).prop_map(|(weekday, nth)| Item::NthWeekday(weekday, nth));
    let special = match dialect {
        Dialect::Cronexpr => nth.boxed(),
        _ => prop_oneof![nth, (0..=6_i16).prop_map(Item::LastWeekday)].boxed(),
    };
    let starred = starred_day(plain.clone(), dialect);
    let mixed = vec(prop_oneof![2 => plain, 1 => special], 1..4);
    field(0, 6, prop_oneof![3 => Just(vec![Item::Star(None)]), 1 => starred, 3 => mixed])
}

/// A day field that begins with a star and means fewer than all days.
fn starred_day(plain: impl Strategy<Value = Item> + 'static, dialect: Dialect) -> BoxedStrategy<Vec<Item>> {
    if dialect == Dialect::Croner {
        return Just(vec![Item::Star(None)]).boxed();
    }
    (2..=7_i16, vec(plain, 0..2))
        .prop_map(|(step, rest)| std::iter::once(Item::Star(Some(step))).chain(rest).collect())
        .boxed()
}

fn plain_item(min: i16, max: i16, dialect: Dialect) -> impl Strategy<Value = Item> + Clone {
    let n_values = max - min + 1;
    prop_oneof![
        4 => (min..=max).prop_map(Item::One),
        1 => (min..=max, 1..n_values).prop_map(|(from, step)| Item::FromOn(from, step)),
        3 => (min..=max, min..=max, proptest::option::of(1..=n_values.min(9)))
            .prop_map(move |(from, to, step)| range(from, to, step, dialect)),
    ]
}

/// Without `a/n`, whose end is 7 in this field while the oracle counts to 6; the tables have it.
fn plain_weekday(dialect: Dialect) -> impl Strategy<Value = Item> + Clone {
    prop_oneof![
        2 => (0..=6_i16).prop_map(Item::One),
        1 => (0..=6_i16, 0..=6_i16, proptest::option::of(1..=4_i16))
            .prop_map(move |(from, to, step)| range(from, to, step, dialect)),
    ]
}

fn range(from: i16, to: i16, step: Option<i16>, dialect: Dialect) -> Item {
    match dialect {
        Dialect::Ours => Item::Range(from, to, step),
        _ => Item::Range(from.min(to), from.max(to), step),
    }
}
