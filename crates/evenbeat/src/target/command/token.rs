//! Tokens that runs use for the API: valid for one run with one fence, and derived from the cluster's key.

use std::fmt;

use evenbeat_core::ids::{Fence, RunId};
use uuid::Uuid;

/// The key of a cluster, from which the tokens of its runs are derived.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenKey([u8; 32]);

/// What a run token begins with, so that it can be recognised wherever it turns up.
const PREFIX: &str = "evr_";

impl TokenKey {
    /// A key of these bytes, which must come from a good source of randomness.
    pub fn new(bytes: [u8; 32]) -> TokenKey {
        TokenKey(bytes)
    }

    /// The token of a run under a fence: it names both, and proves that this key was there.
    pub fn token(&self, run: RunId, fence: Fence) -> String {
        format!("{PREFIX}{run}_{}_{}", fence.0, self.hash(run, fence).to_hex())
    }

    /// The run and the fence that a token was made for. None if it was not made with this key.
    pub fn verify(&self, token: &str) -> Option<(RunId, Fence)> {
        let mut parts = token.strip_prefix(PREFIX)?.split('_');
        let (run, fence, proof) = (parts.next()?, parts.next()?, parts.next()?);
        let run = RunId(Uuid::try_parse(run).ok()?.as_u128());
        let fence = Fence(fence.parse().ok()?);
        let proof = blake3::Hash::from_hex(proof).ok()?;
        // The comparison of two hashes takes the same time wherever they differ.
        let is_ours = self.hash(run, fence) == proof && self.token(run, fence) == token;
        is_ours.then_some((run, fence))
    }

    fn hash(&self, run: RunId, fence: Fence) -> blake3::Hash {
        let mut message = [0; 24];
        let (first, last) = message.split_at_mut(16);
        first.copy_from_slice(&run.0.to_be_bytes());
        last.copy_from_slice(&fence.0.to_be_bytes());
        blake3::keyed_hash(&self.0, &message)
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: RunId = RunId(0x0198_c0de_0000_7000_8000_0000_0000_002a);

    #[test]
    fn a_token_is_good_for_one_run_and_one_fence() {
        let key = TokenKey::new([7; 32]);
        let token = key.token(RUN, Fence(3));
        assert_eq!(key.verify(&token), Some((RUN, Fence(3))));
        assert_eq!(TokenKey::new([8; 32]).verify(&token), None);
        assert_eq!(key.token(RUN, Fence(3)), token);
        assert_ne!(key.token(RUN, Fence(4)), token);
        assert_ne!(key.token(RunId(RUN.0 + 1), Fence(3)), token);
        assert_ne!(TokenKey::new([8; 32]).token(RUN, Fence(3)), token);
    }

    #[test]
    fn a_token_that_was_changed_is_not_one() {
        let key = TokenKey::new([7; 32]);
        let token = key.token(RUN, Fence(3));
        for other in [
            token.replace("_3_", "_4_"),
            token.replace("_3_", "_03_"),
            token.replace("002a", "002b"),
            token.to_uppercase(),
            format!("{token}_"),
            format!("{token} "),
            token[4..].to_owned(),
            String::new(),
        ] {
            assert_eq!(key.verify(&other), None, "{other}");
        }
    }

    #[test]
    fn a_key_does_not_show_itself() {
        assert_eq!(format!("{:?}", TokenKey::new([7; 32])), "TokenKey(…)");
    }
}
