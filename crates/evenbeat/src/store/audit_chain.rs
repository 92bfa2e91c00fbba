//! The chain of audit entries (S17): each link is a hash over the entry and the link before it, so an entry that is
//! changed, removed or slipped in later no longer fits.
//!
//! Entries are written together with the change that they are about, by many writers at once. They are chained a moment
//! later, by one process at a time and in the order in which they were found, so that no writer waits for another. What
//! is not chained yet is not protected yet. When old entries are trimmed, the last removed link stays as the anchor from
//! which the rest is checked.

use evenbeat_core::store::AuditEntry;
use evenbeat_core::time::Timestamp;

/// Entries that are chained in one transaction.
pub const CHAIN_BATCH: usize = 1_000;

/// Under which name the anchor is kept.
pub(super) const ANCHOR_SETTING: &str = "audit_anchor";

/// The place of an entry in the chain. The first has the number 1, and the number 0 is the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainLink {
    /// Its number. There are no gaps.
    pub no: u64,
    /// The hash over the entry and the link before it.
    pub hash: [u8; 32],
}

impl ChainLink {
    /// The link of an entry that comes after this one.
    #[must_use]
    pub fn next(&self, at: Timestamp, entry: &AuditEntry) -> ChainLink {
        let no = self.no + 1;
        let mut hasher = blake3::Hasher::new_derive_key("evenbeat 2026 chain of audit entries");
        hasher.update(&self.hash).update(&no.to_be_bytes()).update(&at.as_millis().to_be_bytes());
        let AuditEntry { actor, action, subject, detail, before, after } = entry;
        let texts = [Some(actor), Some(action), Some(subject), Some(detail), before.as_ref(), after.as_ref()];
        for text in texts {
            // The length comes first, so that no two entries give the same bytes.
            let length = text.map_or(u64::MAX, |it| it.len() as u64);
            hasher.update(&length.to_be_bytes()).update(text.map_or(b"", |it| it.as_bytes()));
        }
        ChainLink { no, hash: *hasher.finalize().as_bytes() }
    }

    /// The hash in hexadecimal.
    pub fn hex(&self) -> String {
        blake3::Hash::from_bytes(self.hash).to_hex().to_string()
    }

    /// A link that was written as a number and a hash.
    pub fn parse(no: u64, hex: &str) -> Option<ChainLink> {
        let hash = *blake3::Hash::from_hex(hex).ok()?.as_bytes();
        Some(ChainLink { no, hash })
    }

    /// As it is kept as the anchor.
    pub(super) fn to_text(self) -> String {
        format!("{}:{}", self.no, self.hex())
    }

    /// The anchor; the beginning if nothing was trimmed yet.
    pub(super) fn from_text(text: Option<&str>) -> ChainLink {
        let parsed = text.and_then(|text| {
            let (no, hash) = text.split_once(':')?;
            ChainLink::parse(no.parse().ok()?, hash)
        });
        parsed.unwrap_or_default()
    }

    pub(super) fn of_columns(no: Option<i64>, hash: Option<Vec<u8>>) -> Option<ChainLink> {
        Some(ChainLink { no: u64::try_from(no?).ok()?, hash: hash?.try_into().ok()? })
    }
}

/// The links of entries that follow a link, with the numbers of their rows.
pub(super) fn links(
    last: ChainLink,
    entries: impl IntoIterator<Item = (i64, Timestamp, AuditEntry)>,
) -> Vec<(i64, ChainLink)> {
    let mut last = last;
    let mut linked = Vec::new();
    for (no, at, entry) in entries {
        last = last.next(at, &entry);
        linked.push((no, last));
    }
    linked
}

/// Up to which link entries can be removed: the last of those at the beginning that are all older than `before`.
pub(super) fn trimmed_to(
    first: impl IntoIterator<Item = (ChainLink, Timestamp)>,
    before: Timestamp,
) -> Option<ChainLink> {
    first.into_iter().take_while(|(_, at)| *at < before).map(|(link, _)| link).last()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(action: &str) -> AuditEntry {
        AuditEntry { actor: "ann".to_owned(), action: action.to_owned(), ..AuditEntry::default() }
    }

    #[test]
    fn a_link_depends_on_every_field_and_on_the_link_before() {
        let (start, at) = (ChainLink::default(), Timestamp::from_millis(5));
        let link = start.next(at, &entry("pause"));
        assert_eq!(link.no, 1);
        assert_eq!(link, start.next(at, &entry("pause")));
        let others = [
            start.next(Timestamp::from_millis(6), &entry("pause")),
            start.next(at, &entry("resume")),
            link.next(at, &entry("pause")),
            start.next(at, &AuditEntry { before: Some(String::new()), ..entry("pause") }),
            start.next(at, &AuditEntry { after: Some(String::new()), ..entry("pause") }),
            start.next(
                at,
                &AuditEntry { actor: "an".to_owned(), action: "npause".to_owned(), ..AuditEntry::default() },
            ),
        ];
        for other in others {
            assert_ne!(other.hash, link.hash);
        }
    }

    #[test]
    fn an_anchor_is_read_back() {
        let link = ChainLink::default().next(Timestamp::from_millis(5), &entry("pause"));
        assert_eq!(ChainLink::from_text(Some(&link.to_text())), link);
        for other in [None, Some(""), Some("x"), Some("1:zz")] {
            assert_eq!(ChainLink::from_text(other), ChainLink::default());
        }
    }

    #[test]
    fn only_the_beginning_of_the_chain_is_trimmed() {
        let link = |no: u64| ChainLink { no, hash: [0; 32] };
        let of = |ages: &[i64]| {
            let first = (1..).zip(ages).map(|(no, at)| (link(no), Timestamp::from_millis(*at)));
            trimmed_to(first, Timestamp::from_millis(10)).map(|it| it.no)
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[10]), None);
        assert_eq!(
            of(&[1, 9, 10, 2]),
            Some(2),
            "an entry of a clock that was behind waits for those before it"
        );
    }
}
