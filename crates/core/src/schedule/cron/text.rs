//! What a person wrote: perhaps a zone in front, then a cron expression or `@every`.

use std::ops::Range;
use std::str::FromStr;

use super::expr::check_length;
use super::text_span::TextSpan;
use super::{CronError, CronExpr};
use crate::nearest::shortened;
use crate::time::Duration;

/// How a zone in front of an expression begins; the first is what others write too.
pub(super) const ZONE_PREFIXES: [&str; 2] = ["CRON_TZ=", "TZ="];
pub(super) const EVERY: &str = "@every";

/// The shortest interval.
const EVERY_MIN: Duration = Duration::from_secs(1);

/// A cron text in all its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronText {
    /// The zone in front, if one was written.
    pub zone: Option<ZonePrefix>,
    /// The rule.
    pub rule: CronRule,
}

/// `CRON_TZ=Europe/Berlin` or `TZ=Europe/Berlin`. Whether there is such a zone has not been asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZonePrefix {
    /// The name of the zone, as written.
    pub name: String,
    /// Where in the text the name stands.
    pub span: Range<usize>,
}

/// What a cron text asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CronRule {
    /// Fields or a nickname.
    Cron(CronExpr),
    /// `@every 15m`: an interval, a second or longer.
    Every(Duration),
}

impl FromStr for CronText {
    type Err = CronError;

    fn from_str(text: &str) -> Result<CronText, CronError> {
        let whole = TextSpan::whole(text);
        check_length(whole)?;
        let (zone, rest) = split_zone(whole.trimmed())?;
        let (first, argument) = rest.first_word();
        let rule = if first.text.eq_ignore_ascii_case(EVERY) {
            CronRule::Every(every(first, argument)?)
        } else {
            CronRule::Cron(CronExpr::from_scrap(rest)?)
        };
        Ok(CronText { zone, rule })
    }
}

fn split_zone(whole: TextSpan<'_>) -> Result<(Option<ZonePrefix>, TextSpan<'_>), CronError> {
    let (first, rest) = whole.first_word();
    let Some(name) = ZONE_PREFIXES.iter().find_map(|prefix| first.after(prefix)) else {
        return Ok((None, whole));
    };
    if name.is_empty() {
        return Err(CronError::ZoneMissing { text: shortened(first.text), span: first.span() });
    }
    Ok((Some(ZonePrefix { name: name.text.to_owned(), span: name.span() }), rest))
}

fn every(first: TextSpan<'_>, argument: TextSpan<'_>) -> Result<Duration, CronError> {
    let span = if argument.is_empty() { first.span() } else { argument.span() };
    let length: Duration = match argument.text.parse() {
        Ok(length) => length,
        Err(error) => return Err(CronError::EveryDuration { error, span }),
    };
    if length < EVERY_MIN {
        return Err(CronError::EveryTooShort { text: shortened(argument.text), span });
    }
    Ok(length)
}
