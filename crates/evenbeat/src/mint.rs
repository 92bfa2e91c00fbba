//! Ids that were never used (by time, so that they sort as they were made, and then by chance), and secrets.

use evenbeat_core::time::Timestamp;
use uuid::{NoContext, Uuid};

/// A new id (UUID version 7).
pub(crate) fn mint(now: Timestamp) -> u128 {
    let millis = now.as_millis().max(0).unsigned_abs();
    let nanos = u32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
    Uuid::new_v7(uuid::Timestamp::from_unix(NoContext, millis / 1_000, nanos)).as_u128()
}

/// A secret of 256 random bits. The system's randomness comes in ids of 122 bits, so three are condensed into one.
pub(crate) fn secret() -> [u8; 32] {
    let drawn = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()].map(Uuid::into_bytes).concat();
    *blake3::hash(&drawn).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_begins_with_when_it_was_made_and_none_comes_twice() {
        let now = Timestamp::from_millis(1_781_528_400_123);
        let ids: std::collections::BTreeSet<u128> = (0..1_000).map(|_| mint(now)).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id >> 80 == 1_781_528_400_123));
    }
}
