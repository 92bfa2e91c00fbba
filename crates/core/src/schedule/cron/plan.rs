//! What an expression compiles to: bit sets, and which days of a month they mean.

use super::CronField;
use super::local::Month;

/// A cron expression with nothing left to choose, ready to be walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CronPlan {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    /// For each weekday six bits from bit `6 * weekday`: the first to the fifth, and the last.
    pub(super) nth_weekdays: u64,
    pub(super) hours: u32,
    /// Days of the month, from bit 1.
    pub(super) days: u32,
    /// `L-n` as bit n; `L` as bit 0.
    pub(super) days_from_last: u32,
    /// `nW` as bit n.
    pub(super) nearest_workdays: u32,
    /// Months, from bit 1.
    pub(super) months: u16,
    /// Sunday as bit 0.
    pub(super) weekdays: u8,
    /// `LW`.
    pub(super) last_workday: bool,
    /// Whether a day must match both day fields, not just one of them.
    pub(super) both_days: bool,
    pub(super) wall_clock: bool,
}

const _: () = assert!(size_of::<CronPlan>() <= 48, "a million plans must fit into 48 MB");

/// The bit among a weekday's six that means the last of the month.
const LAST_BIT: u8 = 5;
/// Months 1 to 12.
const EVERY_MONTH: u16 = 0x1ffe;
const EVERY_WEEKDAY: u8 = 0x7f;
/// Days 1 to 31.
const EVERY_DAY: u32 = u32::MAX << 1;

impl CronPlan {
    /// Matches nothing yet.
    pub(super) const EMPTY: CronPlan = CronPlan {
        seconds: 0,
        minutes: 0,
        nth_weekdays: 0,
        hours: 0,
        days: 0,
        days_from_last: 0,
        nearest_workdays: 0,
        months: 0,
        weekdays: 0,
        last_workday: false,
        both_days: false,
        wall_clock: false,
    };

    /// Whether occurrences follow the clock on the wall over a clock change, instead of elapsed time.
    pub fn is_wall_clock(&self) -> bool {
        self.wall_clock
    }

    /// Adds a number to a field's set; 7 is Sunday.
    pub(super) fn insert(&mut self, field: CronField, number: u8) {
        let value = field.wrapped(number);
        match field {
            CronField::Second => self.seconds |= 1 << value,
            CronField::Minute => self.minutes |= 1 << value,
            CronField::Hour => self.hours |= 1 << value,
            CronField::DayOfMonth => self.days |= 1 << value,
            CronField::Month => self.months |= 1 << value,
            CronField::DayOfWeek => self.weekdays |= 1 << value,
        }
    }

    /// Adds the nth (1 to 5) such weekday of a month.
    pub(super) fn insert_nth_weekday(&mut self, weekday: u8, nth: u8) {
        self.nth_weekdays |= 1 << (6 * (weekday % 7) + nth - 1);
    }

    /// Adds the last such weekday of a month.
    pub(super) fn insert_last_weekday(&mut self, weekday: u8) {
        self.nth_weekdays |= 1 << (6 * (weekday % 7) + LAST_BIT);
    }

    /// Whether every day of every year matches, as the day fields are written.
    pub(super) fn is_every_day(&self) -> bool {
        self.months == EVERY_MONTH && self.days == EVERY_DAY && self.weekdays == EVERY_WEEKDAY
    }

    /// The days of a month that match, from bit 1.
    pub(super) fn days_in(&self, month: &Month) -> u32 {
        if self.months & (1 << month.number) == 0 {
            return 0;
        }
        let whole_month = EVERY_DAY & (u32::MAX >> (31 - month.n_days));
        let every_day = self.days == EVERY_DAY;
        let every_weekday = self.weekdays == EVERY_WEEKDAY;
        let matching = match (every_day, every_weekday, self.both_days) {
            // Most expressions name no day at all, or one kind of day: the calendar need not be asked.
            (true, true, _) | (true, _, false) | (_, true, false) => whole_month,
            (false, true, true) => self.days_by_date(month),
            (true, false, true) => self.days_by_weekday(month),
            (false, false, true) => self.days_by_date(month) & self.days_by_weekday(month),
            (false, false, false) => self.days_by_date(month) | self.days_by_weekday(month),
        };
        matching & whole_month
    }

    fn days_by_date(&self, month: &Month) -> u32 {
        let mut days = self.days;
        if self.days_from_last | self.nearest_workdays != 0 || self.last_workday {
            for day in 1..=month.n_days {
                if self.days_from_last & (1 << (month.n_days - day)) != 0 {
                    days |= 1 << day;
                }
                if self.nearest_workdays & (1 << day) != 0 {
                    days |= 1 << nearest_workday(month, day);
                }
            }
            if self.last_workday {
                days |= 1 << nearest_workday(month, month.n_days);
            }
        }
        days
    }

    fn days_by_weekday(&self, month: &Month) -> u32 {
        let first = month.first_weekday();
        // Turn the week until the month's first day is bit 0, then lay five weeks end to end.
        let week = u32::from(self.weekdays);
        let turned = ((week >> first) | (week << (7 - first))) & u32::from(EVERY_WEEKDAY);
        let mut days = (turned | turned << 7 | turned << 14 | turned << 21 | turned << 28) << 1;
        if self.nth_weekdays != 0 {
            for weekday in 0..7 {
                let earliest = 1 + (7 + weekday - first) % 7;
                for nth in 0..LAST_BIT {
                    let day = earliest + 7 * nth;
                    let wanted = self.nth_weekdays & (1 << (6 * weekday + nth)) != 0;
                    let wanted_as_last =
                        self.nth_weekdays & (1 << (6 * weekday + LAST_BIT)) != 0 && month.n_days < day + 7;
                    if day <= month.n_days && (wanted || wanted_as_last) {
                        days |= 1 << day;
                    }
                }
            }
        }
        days
    }
}

/// The Monday to Friday of the month that lies nearest to one of its days.
fn nearest_workday(month: &Month, day: u8) -> u8 {
    match (month.first_weekday() + day - 1) % 7 {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == month.n_days => day - 2,
        0 => day + 1,
        _ => day,
    }
}
