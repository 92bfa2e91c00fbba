//! The proleptic Gregorian calendar on plain numbers.
//!
//! A day is counted from 1970-01-01, which was a Thursday. These few functions are what schedules
//! and blackouts walk on; they are written out here because a walk visits every day of a window for
//! every job, and integer arithmetic without checks for ranges is several times faster than a
//! general calendar type.

/// Seconds of a civil day; a day with a clock change is still walked as one of these, per offset.
pub const DAY_S: i64 = 86_400;

/// A date of the calendar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    /// The year; 1 to 9999 for every instant that can be written.
    pub year: i32,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
}

/// 0 is Sunday, as in cron.
pub fn weekday(day: i64) -> u8 {
    u8::try_from((day + 4).rem_euclid(7)).unwrap_or(0)
}

/// The date of a day counted from 1970-01-01.
pub fn date_of(day: i64) -> Date {
    // Years are counted from March, so that the leap day is the last of its year; an era is the
    // 400 years after which the calendar repeats.
    let shifted = day + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Date {
        year: i32::try_from(year).unwrap_or(i32::MAX),
        month: u8::try_from(month).unwrap_or(1),
        day: u8::try_from(day_of_month).unwrap_or(1),
    }
}

/// The day, counted from 1970-01-01, of a date.
pub fn day_of(date: Date) -> i64 {
    let year = i64::from(date.year) - i64::from(date.month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (i64::from(date.month) + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(date.day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// How many days the month has.
pub fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day of more than 800 years, against an independent calendar.
    #[test]
    fn agrees_with_jiff_day_by_day() {
        let mut theirs = jiff::civil::date(1599, 12, 30);
        let mut day = day_of(Date { year: 1599, month: 12, day: 30 });
        while theirs.year() < 2402 {
            let ours = date_of(day);
            assert_eq!(
                (ours.year, ours.month, ours.day),
                (i32::from(theirs.year()), theirs.month().unsigned_abs(), theirs.day().unsigned_abs())
            );
            assert_eq!(day_of(ours), day);
            assert_eq!(weekday(day), theirs.weekday().to_sunday_zero_offset().unsigned_abs());
            assert_eq!(days_in_month(ours.year, ours.month), theirs.days_in_month().unsigned_abs());
            theirs = theirs.tomorrow().unwrap();
            day += 1;
        }
    }
}
