//! The rule itself: fields or a nickname, with every `H` still open.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::hashed::choices_from;
use super::parse::parse_fields;
use super::text::{EVERY, ZONE_PREFIXES};
use super::text_span::TextSpan;
use super::{CronError, CronPlan, HashedTerm};
use crate::nearest::{nearest, shortened};

/// The longest text that is read.
pub(super) const TEXT_MAX_BYTES: usize = 256;

/// Nicknames and what they stand for.
const NICKNAMES: [(&str, &str); 7] = [
    ("@hourly", "0 * * * *"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@weekly", "0 0 * * 0"),
    ("@monthly", "0 0 1 * *"),
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
];

/// A cron expression; its [`CronPlan`] is what has occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CronExpr {
    text: Box<str>,
    /// Everything but `H`.
    base: CronPlan,
    hashed: Box<[HashedTerm]>,
    /// Where in the text each `H` stands.
    hashed_spans: Box<[Range<usize>]>,
}

impl CronExpr {
    /// Reads fields or a nickname. A zone in front and `@every` are refused: where they may stand,
    /// the text is a [`CronText`](super::CronText).
    pub fn parse(text: &str) -> Result<CronExpr, CronError> {
        let whole = TextSpan::whole(text);
        check_length(whole)?;
        let (first, _) = whole.first_word();
        if let Some(zone) = ZONE_PREFIXES.iter().find_map(|prefix| first.after(prefix)) {
            let (text, zone) = (shortened(first.text), shortened(zone.text));
            return Err(CronError::ZoneNotCron { text, zone, span: first.span() });
        }
        if first.text.eq_ignore_ascii_case(EVERY) {
            return Err(CronError::EveryNotCron { span: whole.trimmed().span() });
        }
        CronExpr::from_scrap(whole.trimmed())
    }

    pub(super) fn from_scrap(whole: TextSpan<'_>) -> Result<CronExpr, CronError> {
        let words = whole.words();
        let written = words.iter().map(|it| it.text).collect::<Vec<_>>().join(" ");
        if let [nickname, rest @ ..] = words.as_slice()
            && nickname.text.starts_with('@')
        {
            let fields = TextSpan::whole(meaning_of(*nickname)?);
            if let Some(extra) = rest.first() {
                let (nickname, text) = (shortened(nickname.text), shortened(extra.text));
                return Err(CronError::AfterNickname { nickname, text, span: extra.span() });
            }
            let base = parse_fields(fields, &fields.words())?.plan;
            return Ok(CronExpr {
                text: written.into(),
                base,
                hashed: Box::default(),
                hashed_spans: Box::default(),
            });
        }
        let parsed = parse_fields(whole, &words)?;
        let (hashed, places): (Vec<HashedTerm>, Vec<TextSpan<'_>>) = parsed.hashed.into_iter().unzip();
        let hashed_spans = places.iter().map(|it| span_in_written(&words, it)).collect();
        Ok(CronExpr { text: written.into(), base: parsed.plan, hashed: hashed.into(), hashed_spans })
    }

    /// The expression as it was written, with single spaces.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// What waits for a choice, in order of appearance; nothing without `H`.
    pub fn hashed_terms(&self) -> &[HashedTerm] {
        &self.hashed
    }

    /// What to walk; `None` if there is any `H`, which [`CronExpr::resolve`] must settle.
    pub fn plan(&self) -> Option<CronPlan> {
        self.resolve(&[])
    }

    /// What to walk with these choices, one for each of [`CronExpr::hashed_terms`]; `None` if their
    /// number is another, or one is not below its term's [`HashedTerm::n_choices`].
    pub fn resolve(&self, choices: &[u8]) -> Option<CronPlan> {
        let mut plan = self.base;
        for (term, choice) in self.chosen(choices)? {
            for number in term.numbers(choice) {
                plan.insert(term.field, number);
            }
        }
        Some(plan)
    }

    /// What to walk until a placement has chosen: choices that follow from the seed alone.
    pub fn provisional(&self, seed: u64) -> (CronPlan, Vec<u8>) {
        let choices = choices_from(seed, &self.hashed);
        // The choices fit the terms by construction.
        (self.resolve(&choices).unwrap_or(self.base), choices)
    }

    /// The expression with each `H` replaced by what was chosen for it: `17 3 * * *`. `None` as for
    /// [`CronExpr::resolve`].
    pub fn resolved_text(&self, choices: &[u8]) -> Option<String> {
        let mut resolved = String::new();
        let mut copied_to = 0;
        for ((term, choice), span) in self.chosen(choices)?.zip(&self.hashed_spans) {
            resolved.push_str(self.text.get(copied_to..span.start)?);
            resolved.push_str(&term.resolved_text(choice));
            copied_to = span.end;
        }
        resolved.push_str(self.text.get(copied_to..)?);
        Some(resolved)
    }

    fn chosen(&self, choices: &[u8]) -> Option<impl Iterator<Item = (HashedTerm, u8)>> {
        let fits = choices.len() == self.hashed.len()
            && self.hashed.iter().zip(choices).all(|(term, choice)| *choice < term.n_choices());
        fits.then(|| self.hashed.iter().copied().zip(choices.iter().copied()))
    }
}

impl FromStr for CronExpr {
    type Err = CronError;

    fn from_str(text: &str) -> Result<CronExpr, CronError> {
        CronExpr::parse(text)
    }
}

impl fmt::Display for CronExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn check_length(whole: TextSpan<'_>) -> Result<(), CronError> {
    let n_bytes = whole.text.len();
    if TEXT_MAX_BYTES < n_bytes {
        return Err(CronError::TooLong { n_bytes, span: whole.span() });
    }
    Ok(())
}

fn meaning_of(nickname: TextSpan<'_>) -> Result<&'static str, CronError> {
    let known = NICKNAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(nickname.text));
    if let Some((_, meaning)) = known {
        return Ok(meaning);
    }
    if nickname.text.eq_ignore_ascii_case("@reboot") {
        return Err(CronError::Reboot { span: nickname.span() });
    }
    let names = NICKNAMES.iter().map(|(name, _)| *name).chain([EVERY]);
    Err(CronError::UnknownNickname {
        text: shortened(nickname.text),
        nearest: nearest(nickname.text, names).map(str::to_owned),
        span: nickname.span(),
    })
}

/// Where a scrap of one of the words lies once the words are joined by single spaces.
fn span_in_written(words: &[TextSpan<'_>], scrap: &TextSpan<'_>) -> Range<usize> {
    let mut word_start = 0;
    for word in words {
        if scrap.span().start < word.span().end {
            let start = word_start + scrap.span().start - word.span().start;
            return start..start + scrap.text.len();
        }
        word_start += word.text.len() + 1;
    }
    word_start..word_start
}
