//! Finds keys by a part of their text, ignoring case, in the order of keys.
//!
//! Keys lie in parts of a few hundred, each with the lower-case text of all of them in one piece: looking for a text in a
//! piece of sixteen kilobytes is hundreds of times quicker than in five hundred strings. And each part has a set of the
//! three-letter sequences that occur in it, by their hashes, so that most parts need not be looked through at all.
//!
//! A copy shares all parts, so that a search does not hold up those who add and remove keys.

use std::sync::Arc;

use crate::ids::JobKey;

/// Keys per part.
const PART_MAX: usize = 256;

/// Bits of the set of a part.
const GRAM_BITS: usize = 8_192;

/// Separates keys in the text of a part. No key has it.
const SEPARATOR: char = '\n';

/// All keys, to be searched. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct KeySearch {
    /// In order; none of them is empty.
    parts: Vec<Arc<KeyPart>>,
}

#[derive(Clone, Debug)]
struct KeyPart {
    /// In order.
    keys: Vec<JobKey>,
    /// Their texts in lower case, a separator behind each.
    text: String,
    /// Where the text of each key ends, at its separator.
    ends: Vec<u32>,
    /// May have more than there is, after keys were removed.
    grams: Box<[u64; GRAM_BITS / 64]>,
}

impl KeyPart {
    fn of(keys: Vec<JobKey>) -> KeyPart {
        let grams = Box::new([0; GRAM_BITS / 64]);
        let mut part = KeyPart { keys: Vec::new(), text: String::new(), ends: Vec::new(), grams };
        part.keys.reserve_exact(PART_MAX);
        for key in keys {
            part.push(key);
        }
        part
    }

    /// Adds a key behind all others.
    fn push(&mut self, key: JobKey) {
        let start = self.text.len();
        self.text.extend(key.as_str().chars().map(|it| it.to_ascii_lowercase()));
        for gram in self.text.as_bytes().get(start..).unwrap_or_default().windows(3) {
            let (word, bit) = place_of(gram);
            if let Some(word) = self.grams.get_mut(word) {
                *word |= bit;
            }
        }
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        self.text.push(SEPARATOR);
        self.keys.push(key);
    }

    /// Whether a text may be in it.
    fn may_have(&self, grams: &[(usize, u64)]) -> bool {
        grams.iter().all(|(word, bit)| self.grams.get(*word).is_some_and(|word| word & bit != 0))
    }

    /// Visits the keys that have this text, until told to stop. Returns whether it was.
    fn find(&self, text: &str, mut visit: impl FnMut(&JobKey) -> bool) -> bool {
        // Quicker than looking for the place, and most parts do not have it.
        if !self.text.contains(text) {
            return false;
        }
        let mut from = 0;
        while let Some(found) = self.text.get(from..).and_then(|rest| rest.find(text)) {
            let at = u32::try_from(from + found).unwrap_or(u32::MAX);
            let idx = self.ends.partition_point(|end| *end < at);
            let Some((key, end)) = self.keys.get(idx).zip(self.ends.get(idx)) else { return false };
            if !visit(key) {
                return true;
            }
            // On with the next key.
            from = *end as usize + SEPARATOR.len_utf8();
        }
        false
    }
}

fn place_of(gram: &[u8]) -> (usize, u64) {
    let number = gram.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
    let hash = number.wrapping_mul(0x9E37_79B1) >> (32 - GRAM_BITS.trailing_zeros());
    (hash as usize / 64, 1 << (hash % 64))
}

impl KeySearch {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.keys.len()).sum()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Adds a key. One that is there already stays.
    pub fn insert(&mut self, key: &JobKey) {
        let Err((part_idx, within)) = self.locate(key) else { return };
        let n_parts = self.parts.len();
        let Some(part) = self.parts.get_mut(part_idx) else {
            return self.parts.push(Arc::new(KeyPart::of(vec![key.clone()])));
        };
        let is_last = part_idx + 1 == n_parts && within == part.keys.len();
        if is_last && part.keys.len() < PART_MAX {
            // A fleet that is read in the order of keys is appended.
            Arc::make_mut(part).push(key.clone());
        } else if is_last {
            self.parts.push(Arc::new(KeyPart::of(vec![key.clone()])));
        } else {
            let mut keys = part.keys.clone();
            keys.insert(within, key.clone());
            let rest = (PART_MAX < keys.len()).then(|| keys.split_off(PART_MAX / 2));
            *part = Arc::new(KeyPart::of(keys));
            if let Some(rest) = rest {
                self.parts.insert(part_idx + 1, Arc::new(KeyPart::of(rest)));
            }
        }
    }

    /// Removes a key, if it is there.
    pub fn remove(&mut self, key: &JobKey) {
        let Ok((part_idx, within)) = self.locate(key) else { return };
        let Some(part) = self.parts.get_mut(part_idx) else { return };
        let mut keys = part.keys.clone();
        keys.remove(within);
        if keys.is_empty() {
            self.parts.remove(part_idx);
        } else {
            *part = Arc::new(KeyPart::of(keys));
        }
    }

    /// Up to `most` keys that have this text, ignoring case, and begin with the prefix; after a key if one is given. Fewer
    /// than that are all there are.
    pub fn find(&self, text: &str, prefix: &str, after: Option<&JobKey>, most: usize) -> Vec<JobKey> {
        let text = text.to_lowercase();
        let mut found = Vec::new();
        if most == 0 || text.contains(SEPARATOR) {
            return found;
        }
        let grams: Vec<(usize, u64)> = text.as_bytes().windows(3).map(place_of).collect();
        let starts_at = |key: &JobKey| after.is_none_or(|after| after < key) && prefix <= key.as_str();
        let first = self.parts.partition_point(|part| part.keys.last().is_some_and(|last| !starts_at(last)));
        for part in self.parts.get(first..).unwrap_or_default() {
            let is_behind = |key: &JobKey| prefix < key.as_str() && !key.as_str().starts_with(prefix);
            if part.keys.first().is_some_and(is_behind) {
                break;
            }
            if !part.may_have(&grams) {
                continue;
            }
            let is_done = part.find(&text, |key| {
                if starts_at(key) && key.as_str().starts_with(prefix) {
                    found.push(key.clone());
                }
                found.len() < most
            });
            if is_done {
                break;
            }
        }
        found
    }

    fn locate(&self, key: &JobKey) -> Result<(usize, usize), (usize, usize)> {
        let ends_before = |part: &KeyPart| part.keys.last().is_some_and(|last| last < key);
        let Some(last) = self.parts.last() else { return Err((0, 0)) };
        if ends_before(last) {
            return Err((self.parts.len() - 1, last.keys.len()));
        }
        let part_idx = self.parts.partition_point(|part| ends_before(part));
        match self.parts.get(part_idx).map(|part| part.keys.binary_search(key)) {
            Some(Ok(within)) => Ok((part_idx, within)),
            Some(Err(within)) => Err((part_idx, within)),
            None => Err((part_idx, 0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        /// Whatever is added and removed, a search finds what a look at every key finds.
        #[test]
        fn a_search_finds_what_a_look_at_every_key_finds(
            acts in prop::collection::vec((any::<bool>(), "[aAbB]{1,3}(-[aB12]{1,3}){0,2}(@[aA1]{1,2})?"), 400..700),
            texts in prop::collection::vec("[aAbB12@.-]{0,5}", 1..8),
            prefix in "[aAbB]{0,2}",
            most in 1_usize..40,
        ) {
            let (mut keys, mut model) = (KeySearch::default(), BTreeSet::new());
            for (is_put, key) in acts {
                let key: JobKey = key.parse().unwrap();
                if is_put || model.len() < 300 {
                    keys.insert(&key);
                    model.insert(key);
                } else {
                    keys.remove(&key);
                    model.remove(&key);
                }
            }
            prop_assert_eq!(keys.len(), model.len());
            for text in texts {
                let has = |key: &&JobKey| {
                    let own = key.as_str();
                    own.to_lowercase().contains(&text.to_lowercase()) && own.starts_with(&prefix)
                };
                let all: Vec<JobKey> = model.iter().filter(has).cloned().collect();
                let (mut paged, mut after) = (Vec::new(), None);
                loop {
                    let page = keys.find(&text, &prefix, after.as_ref(), most);
                    after = page.last().cloned();
                    let is_last = page.len() < most;
                    paged.extend(page);
                    if is_last {
                        break;
                    }
                }
                prop_assert_eq!(paged, all, "`{}` with `{}`", text, prefix);
            }
        }
    }

    #[test]
    fn a_text_that_spans_two_keys_is_not_there() {
        let mut keys = KeySearch::default();
        for key in ["ab", "cd"] {
            keys.insert(&key.parse().unwrap());
        }
        assert_eq!(keys.find("b\nc", "", None, 10), []);
        assert_eq!(keys.find("bc", "", None, 10), []);
        assert_eq!(keys.find("D", "", None, 10), ["cd".parse().unwrap()]);
    }
}
