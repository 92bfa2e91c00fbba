//! Fields into bit sets.

use super::hashed::HASHED_TERMS_MAX;
use super::text_span::TextSpan;
use super::{CronError, CronField, CronPlan, HashedTerm};
use crate::nearest::shortened;

/// What the fields of an expression say.
pub(super) struct ParsedFields<'a> {
    /// Everything but `H`.
    pub(super) plan: CronPlan,
    /// Each `H`, with its place.
    pub(super) hashed: Vec<(HashedTerm, TextSpan<'a>)>,
}

/// Reads five or six fields.
pub(super) fn parse_fields<'a>(
    whole: TextSpan<'a>,
    words: &[TextSpan<'a>],
) -> Result<ParsedFields<'a>, CronError> {
    let fields = match words {
        [] => return Err(CronError::Empty { span: whole.span() }),
        [_, _, _, _, _] => CronField::ALL.get(1..).unwrap_or_default(),
        [_, _, _, _, _, _] => &CronField::ALL,
        [.., year] if words.len() == 7 => return Err(CronError::YearField { span: year.span() }),
        _ => return Err(CronError::FieldCount { n_fields: words.len(), span: whole.span() }),
    };
    let mut parsed = ParsedFields { plan: CronPlan::EMPTY, hashed: Vec::new() };
    if fields.len() == 5 {
        parsed.plan.insert(CronField::Second, 0);
    }
    parsed.plan.wall_clock = true;
    for (&field, &word) in fields.iter().zip(words) {
        parsed.field(field, word)?;
        // Vixie's test is the first letter, not the meaning: `*/2` counts, `0-59` does not.
        let has_star = word.text.starts_with(['*', '?']);
        match field {
            CronField::Minute | CronField::Hour if has_star => parsed.plan.wall_clock = false,
            CronField::DayOfMonth | CronField::DayOfWeek if has_star => parsed.plan.both_days = true,
            _ => {}
        }
    }
    Ok(parsed)
}

impl<'a> ParsedFields<'a> {
    fn field(&mut self, field: CronField, word: TextSpan<'a>) -> Result<(), CronError> {
        if word.text.contains('?') {
            if !field.is_day() {
                return Err(CronError::QuestionMark { field, span: word.span() });
            }
            if word.text != "?" {
                return Err(CronError::QuestionMarkNotAlone { field, text: shown(word), span: word.span() });
            }
            self.insert_range(field, field.first(), field.last(), 1);
            return Ok(());
        }
        let mut rest = word;
        while let Some((item, after)) = rest.split_once(',') {
            if item.is_empty() || after.is_empty() {
                // An empty item has no letters to point at; its comma has.
                let comma = rest.split_at(item.text.len()).1.split_at(1).0;
                return Err(CronError::EmptyItem { field, span: comma.span() });
            }
            self.item(field, item)?;
            rest = after;
        }
        self.item(field, rest)
    }

    fn item(&mut self, field: CronField, item: TextSpan<'a>) -> Result<(), CronError> {
        if item.after("H").is_some() {
            return self.hashed(field, item);
        }
        match field {
            CronField::DayOfMonth => {
                if let Some(rest) = item.after("L") {
                    return self.last_day(item, rest);
                }
                if let Some(day) = item.before("W") {
                    let is_one_day = !day.is_empty() && day.text.bytes().all(|it| it.is_ascii_digit());
                    if !is_one_day {
                        return Err(misplaced_workday(field, item));
                    }
                    self.plan.nearest_workdays |= 1 << number(field, day)?;
                    return Ok(());
                }
            }
            CronField::DayOfWeek => {
                if item.text.eq_ignore_ascii_case("L") {
                    return Err(CronError::BareLast { span: item.span() });
                }
                if let Some((weekday, nth)) = item.split_once('#') {
                    return self.nth_weekday(item, weekday, nth);
                }
                if let Some(weekday) = item.before("L") {
                    self.plan.insert_last_weekday(number(field, weekday)?);
                    return Ok(());
                }
            }
            _ => {}
        }
        self.range(field, item)
    }

    /// `*`, `a`, `a-b`, each perhaps with a step.
    fn range(&mut self, field: CronField, item: TextSpan<'a>) -> Result<(), CronError> {
        let (range, step) = match item.split_once('/') {
            Some((range, _)) if range.is_empty() => {
                return Err(CronError::StepWithoutRange { field, text: shown(item), span: item.span() });
            }
            Some((range, step)) => (range, Some(parse_step(field, item, step)?)),
            None => (item, None),
        };
        let (first, last) = if range.text == "*" {
            (field.first(), field.last())
        } else if let Some((first, last)) = range.split_once('-') {
            if first.is_empty() || last.is_empty() {
                return Err(CronError::OpenRange { field, text: shown(range), span: range.span() });
            }
            (number(field, first)?, number(field, last)?)
        } else {
            let first = number(field, range)?;
            (first, if step.is_some() { field.last() } else { first })
        };
        self.insert_range(field, first, last, step.unwrap_or(1));
        Ok(())
    }

    fn insert_range(&mut self, field: CronField, first: u8, last: u8, step: u8) {
        let last = if first <= last { last } else { last + field.n_values() };
        for number in (first..=last).step_by(usize::from(step)) {
            self.plan.insert(field, number);
        }
    }

    /// `L`, `LW`, `L-3`.
    fn last_day(&mut self, item: TextSpan<'a>, rest: TextSpan<'a>) -> Result<(), CronError> {
        if rest.is_empty() {
            self.plan.days_from_last |= 1;
            return Ok(());
        }
        if rest.text.eq_ignore_ascii_case("W") {
            self.plan.last_workday = true;
            return Ok(());
        }
        let Some(offset) = rest.after("-") else {
            return Err(malformed(CronField::DayOfMonth, item));
        };
        let offset = digits(offset).filter(|it| (1..=30).contains(it));
        let offset = offset.ok_or_else(|| CronError::LastOffset { text: shown(item), span: item.span() })?;
        self.plan.days_from_last |= 1 << offset;
        Ok(())
    }

    /// `FRI#3`.
    fn nth_weekday(
        &mut self,
        item: TextSpan<'a>,
        weekday: TextSpan<'a>,
        nth: TextSpan<'a>,
    ) -> Result<(), CronError> {
        let weekday = number(CronField::DayOfWeek, weekday)?;
        let nth = digits(nth).and_then(|it| u8::try_from(it).ok()).filter(|it| (1..=5).contains(it));
        let nth = nth.ok_or_else(|| CronError::NthOutOfRange { text: shown(item), span: item.span() })?;
        self.plan.insert_nth_weekday(weekday, nth);
        Ok(())
    }

    /// `H`, `H/15`, `H(0-29)`, `H(0-29)/10`.
    fn hashed(&mut self, field: CronField, item: TextSpan<'a>) -> Result<(), CronError> {
        let wrong_form = || CronError::HashedForm { text: shown(item), span: item.span() };
        let (head, step) = match item.split_once('/') {
            Some((head, step)) => (head, Some(parse_step(field, item, step)?)),
            None => (item, None),
        };
        let range = head.after("H").ok_or_else(wrong_form)?;
        let (first, last) = if range.is_empty() {
            (field.first(), field.hashed_max())
        } else {
            let inside = range.after("(").and_then(|it| it.before(")")).ok_or_else(wrong_form)?;
            let (first, last) = inside.split_once('-').ok_or_else(wrong_form)?;
            let (first, last) = (number(field, first)?, number(field, last)?);
            if last < first {
                return Err(CronError::HashedWraps { text: shown(item), span: item.span() });
            }
            // Sunday at both ends would be chosen twice as often.
            let is_whole_week = field == CronField::DayOfWeek && first == 0 && last == 7;
            (first, if is_whole_week { 6 } else { last })
        };
        if HASHED_TERMS_MAX <= self.hashed.len() {
            return Err(CronError::HashedTooMany { span: item.span() });
        }
        self.hashed.push((HashedTerm { field, first, last, step }, item));
        Ok(())
    }
}

fn parse_step(field: CronField, item: TextSpan<'_>, step: TextSpan<'_>) -> Result<u8, CronError> {
    let is_number = !step.is_empty() && step.text.bytes().all(|it| it.is_ascii_digit());
    if !is_number {
        return Err(CronError::StepNotNumber { field, text: shown(item), span: item.span() });
    }
    let too_large = || CronError::StepTooLarge { field, text: shown(step), span: step.span() };
    let number = digits(step).and_then(|it| u8::try_from(it).ok()).ok_or_else(too_large)?;
    if number == 0 {
        return Err(CronError::StepZero { field, span: step.span() });
    }
    if field.n_values() < number { Err(too_large()) } else { Ok(number) }
}

/// One number or name of a field.
fn number(field: CronField, scrap: TextSpan<'_>) -> Result<u8, CronError> {
    let text = scrap.text;
    if !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit()) {
        let in_range = |it: &u8| field.first() <= *it && *it <= field.last();
        let number = digits(scrap).and_then(|it| u8::try_from(it).ok()).filter(in_range);
        return number.ok_or_else(|| CronError::OutOfRange { field, text: shown(scrap), span: scrap.span() });
    }
    let named = field.names().iter().position(|name| name.eq_ignore_ascii_case(text));
    if let Some(idx) = named.and_then(|idx| u8::try_from(idx).ok()) {
        return Ok(field.first() + idx);
    }
    Err(not_a_number(field, scrap))
}

/// The most helpful error for a text that is not a number of its field.
fn not_a_number(field: CronField, scrap: TextSpan<'_>) -> CronError {
    let span = scrap.span();
    let text = shown(scrap);
    let is_word = !scrap.is_empty() && scrap.text.bytes().all(|it| it.is_ascii_alphabetic());
    if scrap.text.contains('#') {
        return CronError::MisplacedNth { field, text, span };
    }
    if is_word && !field.names().is_empty() && 1 < scrap.text.len() {
        // `Monday` is further from `MON` than any slip of the finger.
        let is_begun_by = |name: &&&'static str| scrap.after(name).is_some();
        let begun = field.names().iter().find(is_begun_by).copied();
        let nearest = begun.or_else(|| crate::nearest::nearest(scrap.text, field.names().iter().copied()));
        return CronError::UnknownName { field, text, nearest, span };
    }
    // `5L` outside of the weekdays, `L5` among them, `15W` outside of the days of the month.
    let rest_is_number = |rest: TextSpan<'_>| rest.text.bytes().all(|it| it.is_ascii_digit());
    if !scrap.is_empty() && [scrap.after("L"), scrap.before("L")].into_iter().flatten().any(rest_is_number) {
        return CronError::MisplacedLast { field, text, span };
    }
    if scrap.before("W").is_some_and(|rest| rest_is_number(rest) || rest.text.eq_ignore_ascii_case("L")) {
        return CronError::MisplacedWorkday { field, text, span };
    }
    CronError::Malformed { field, text, span }
}

/// The value of plain digits, however many; `None` if there is anything else, or too much.
fn digits(scrap: TextSpan<'_>) -> Option<u32> {
    let is_number = scrap.text.bytes().all(|it| it.is_ascii_digit());
    if is_number { scrap.text.parse().ok() } else { None }
}

fn misplaced_workday(field: CronField, item: TextSpan<'_>) -> CronError {
    CronError::MisplacedWorkday { field, text: shown(item), span: item.span() }
}

fn malformed(field: CronField, item: TextSpan<'_>) -> CronError {
    CronError::Malformed { field, text: shown(item), span: item.span() }
}

fn shown(scrap: TextSpan<'_>) -> String {
    shortened(scrap.text)
}
