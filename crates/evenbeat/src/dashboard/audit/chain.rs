//! Whether the entries on a page fit the chain: each hash covers its entry and the hash before it.

use crate::store::query::AuditRow;

/// What a check of some entries found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChainCheck {
    /// Entries that fit the one before them.
    n_good: usize,
    /// Entries that are not chained yet.
    n_unchained: usize,
    /// The first link that does not fit.
    broken_at: Option<u64>,
}

impl ChainCheck {
    /// Checks entries against those before them, as far as both are here.
    pub(super) fn of(rows: &[AuditRow]) -> ChainCheck {
        let mut linked: Vec<_> = rows.iter().filter_map(|row| Some((row.link?, row))).collect();
        linked.sort_by_key(|(link, _)| link.no);
        let mut check = ChainCheck { n_good: 0, n_unchained: rows.len() - linked.len(), broken_at: None };
        for pair in linked.windows(2) {
            let [(before, _), (link, row)] = pair else { continue };
            if link.no != before.no + 1 {
                continue;
            }
            if before.next(row.at, &row.entry) == *link {
                check.n_good += 1;
            } else if check.broken_at.is_none() {
                check.broken_at = Some(link.no);
            }
        }
        check
    }

    pub(super) fn is_broken(self) -> bool {
        self.broken_at.is_some()
    }

    /// What is wrong, if something is.
    pub(super) fn broken(self) -> Option<String> {
        let no = self.broken_at?;
        Some(format!("Link {no} of the chain does not fit: an entry here was changed after it was written."))
    }

    /// What was checked.
    pub(super) fn sentence(self) -> String {
        let waiting = match self.n_unchained {
            0 => "",
            1 => " The newest is chained in a moment.",
            _ => " The newest are chained in a moment.",
        };
        match (self.broken_at, self.n_good) {
            (Some(_), _) => "The chain is broken.".to_owned(),
            (None, 0) => format!("evenbeat audit verify checks all of them.{waiting}"),
            (None, 1) => format!("1 on this page was checked and fits.{waiting}"),
            (None, n) => format!("{n} on this page were checked and fit.{waiting}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use evenbeat_core::store::AuditEntry;
    use evenbeat_core::time::Timestamp;

    use super::*;
    use crate::store::audit_chain::ChainLink;

    fn rows() -> Vec<AuditRow> {
        let mut last = ChainLink::default();
        let row = |no: u64| {
            let entry =
                AuditEntry { actor: "ann".to_owned(), subject: no.to_string(), ..AuditEntry::default() };
            let at = Timestamp::from_second(1_000);
            last = last.next(at, &entry);
            AuditRow { no, at, entry, link: Some(last) }
        };
        let mut rows: Vec<AuditRow> = (1..=4).map(row).collect();
        rows.reverse();
        rows
    }

    #[test]
    fn a_changed_entry_is_noticed() {
        assert_eq!(ChainCheck::of(&rows()), ChainCheck { n_good: 3, n_unchained: 0, broken_at: None });
        assert_eq!(ChainCheck::of(&rows()).sentence(), "3 on this page were checked and fit.");
        let mut changed = rows();
        changed[1].entry.actor = "bob".to_owned();
        let check = ChainCheck::of(&changed);
        assert_eq!((check.broken_at, check.is_broken()), (Some(3), true));
        let mut unchained = rows();
        unchained[0].link = None;
        assert_eq!(
            ChainCheck::of(&unchained).sentence(),
            "2 on this page were checked and fit. The newest is chained in a moment."
        );
    }

    #[test]
    fn what_is_not_here_is_not_held_against_an_entry() {
        let mut rows = rows();
        rows.remove(1);
        assert_eq!(ChainCheck::of(&rows), ChainCheck { n_good: 1, n_unchained: 0, broken_at: None });
        assert_eq!(ChainCheck::of(&[]).n_good, 0);
    }
}
