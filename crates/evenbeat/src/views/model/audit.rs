//! Audit entries (S17).

use evenbeat_core::store::AuditEntry;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::Instant;
use crate::store::audit_chain::ChainLink;
use crate::store::query::{AuditChainPage, AuditRow};

/// Who changed what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = AuditEntry)]
pub struct AuditView {
    /// Its number. Later entries have greater ones; there may be gaps.
    pub no: u64,
    /// When it was written.
    pub at: Instant,
    /// Who did it: the name of a token, a user of the machine, or `system`.
    pub actor: String,
    /// What was done: `create`, `edit`, `delete`, `pause`, `resume`, `trigger`, `backfill`, `cancel`, `rebalance`, `mend`,
    /// `drain`, `undrain`, and others.
    pub action: String,
    /// What it was done to: the key of a job, or a word and a name such as `node web-1`.
    pub subject: String,
    /// How, for people.
    pub detail: String,
    /// The changed fields as they were, an object; absent if there was nothing before. Secrets are masked.
    #[schema(value_type = Option<Object>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Json>,
    /// The changed fields as they are now.
    #[schema(value_type = Option<Object>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Json>,
    /// Its place in the chain; absent for the first seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<ChainView>,
}

/// The place of an entry in the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = AuditLink)]
pub struct ChainView {
    /// Its number. There are no gaps.
    pub no: u64,
    /// A hash over the entry and the hash before it, in hexadecimal.
    pub hash: String,
}

impl From<ChainLink> for ChainView {
    fn from(link: ChainLink) -> ChainView {
        ChainView { no: link.no, hash: link.hex() }
    }
}

impl From<AuditRow> for AuditView {
    fn from(AuditRow { no, at, entry, link }: AuditRow) -> AuditView {
        let AuditEntry { actor, action, subject, detail, before, after } = entry;
        // What cannot be read as JSON was changed by another program; it is shown as it is.
        let read = |text: String| serde_json::from_str(&text).unwrap_or(Json::String(text));
        AuditView {
            no,
            at: at.into(),
            actor,
            action,
            subject,
            detail,
            before: before.map(read),
            after: after.map(read),
            chain: link.map(Into::into),
        }
    }
}

/// An entry exactly as it is stored, so that its hash can be checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChainedAuditEntry)]
pub struct ChainedEntry {
    /// Its place in the chain.
    pub chain: ChainView,
    /// When it was written.
    pub at: Instant,
    /// Who did it.
    pub actor: String,
    /// What was done.
    pub action: String,
    /// To what.
    pub subject: String,
    /// How.
    pub detail: String,
    /// The text of the changed fields before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// The text of the changed fields after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl ChainedEntry {
    /// The link that this entry has after another one.
    pub fn link_after(&self, last: &ChainLink) -> ChainLink {
        let ChainedEntry { chain: _, at, actor, action, subject, detail, before, after } = self.clone();
        last.next(at.0, &AuditEntry { actor, action, subject, detail, before, after })
    }

    /// The link that it says it has.
    pub fn link(&self) -> Option<ChainLink> {
        ChainLink::parse(self.chain.no, &self.chain.hash)
    }
}

/// A part of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditChain {
    /// The last link that was trimmed. The chain is checked from here on.
    pub anchor: ChainView,
    /// The entries that follow, in the order of the chain.
    pub items: Vec<ChainedEntry>,
    /// Where the next page begins: to be handed back as `after`; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
    /// How many entries are not chained yet.
    pub unchained: u64,
}

impl AuditChain {
    /// A page that had room for `most` entries.
    pub fn of(page: AuditChainPage, most: usize) -> AuditChain {
        let AuditChainPage { anchor, rows, n_unchained } = page;
        let next = rows.last().filter(|_| rows.len() == most).and_then(|row| row.link).map(|link| link.no);
        let chained = |row: AuditRow| {
            let AuditEntry { actor, action, subject, detail, before, after } = row.entry;
            let (chain, at) = (row.link?.into(), row.at.into());
            Some(ChainedEntry { chain, at, actor, action, subject, detail, before, after })
        };
        let items = rows.into_iter().filter_map(chained).collect();
        AuditChain { anchor: anchor.into(), items, next, unchained: n_unchained }
    }
}
