//! A sorted index of numbers whose keys are kept elsewhere: a key is long, and is stored once, with its job.

use std::cmp::Ordering;

/// Numbers per part: few enough to shift when one is inserted.
const PART_MAX: usize = 512;

/// Numbers in the order of their keys. The caller passes in how the key of a number compares with the one it looks for.
#[derive(Clone, Debug)]
pub(crate) struct SortedIndex<N> {
    /// None of them is empty.
    parts: Vec<Vec<N>>,
    len: usize,
}

impl<N> Default for SortedIndex<N> {
    fn default() -> SortedIndex<N> {
        SortedIndex { parts: Vec::new(), len: 0 }
    }
}

/// Where a job is, or would be.
struct PartPosition {
    part_idx: usize,
    within: usize,
}

impl<N: Copy> SortedIndex<N> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = N> {
        self.parts.iter().flatten().copied()
    }

    /// Those that come after the one that is looked for, whether it is there or not.
    pub(crate) fn iter_after(&self, compare: impl Fn(N) -> Ordering) -> impl Iterator<Item = N> {
        let (PartPosition { part_idx, within }, skips) = match self.locate(compare) {
            Ok(place) => (place, 1),
            Err(place) => (place, 0),
        };
        let parts = self.parts.get(part_idx..).unwrap_or_default();
        parts.iter().flatten().skip(within + skips).copied()
    }

    pub(crate) fn find(&self, compare: impl Fn(N) -> Ordering) -> Option<N> {
        let PartPosition { part_idx, within } = self.locate(compare).ok()?;
        self.parts.get(part_idx)?.get(within).copied()
    }

    /// Adds a number. It must not be there yet.
    pub(crate) fn insert(&mut self, idx: N, compare: impl Fn(N) -> Ordering) {
        let Err(PartPosition { part_idx, within }) = self.locate(compare) else { return };
        self.len += 1;
        let n_parts = self.parts.len();
        let Some(part) = self.parts.get_mut(part_idx) else { return self.parts.push(part_of([idx])) };
        if part.len() < PART_MAX {
            part.insert(within, idx);
        } else if part_idx + 1 == n_parts && within == part.len() {
            // Keys often come in their order: then every part is filled.
            self.parts.push(part_of([idx]));
        } else {
            let mut rest = part_of(part.drain(PART_MAX / 2..));
            match within.checked_sub(PART_MAX / 2) {
                Some(within) => rest.insert(within, idx),
                None => part.insert(within, idx),
            }
            self.parts.insert(part_idx + 1, rest);
        }
    }

    pub(crate) fn remove(&mut self, compare: impl Fn(N) -> Ordering) -> Option<N> {
        let PartPosition { part_idx, within } = self.locate(compare).ok()?;
        let part = self.parts.get_mut(part_idx)?;
        let removed = part.remove(within);
        if part.is_empty() {
            self.parts.remove(part_idx);
        }
        self.len -= 1;
        Some(removed)
    }

    /// The error is where it would go.
    fn locate(&self, compare: impl Fn(N) -> Ordering) -> Result<PartPosition, PartPosition> {
        let ends_before = |part: &Vec<N>| part.last().is_some_and(|last| compare(*last).is_lt());
        let Some(part) = self.parts.last() else { return Err(PartPosition { part_idx: 0, within: 0 }) };
        if ends_before(part) {
            // Where every job of a fleet goes that is read in the order of keys, without a look at all the others.
            return Err(PartPosition { part_idx: self.parts.len() - 1, within: part.len() });
        }
        let part_idx = self.parts.partition_point(ends_before);
        let part = self.parts.get(part_idx).map_or(&[][..], Vec::as_slice);
        match part.binary_search_by(|idx| compare(*idx)) {
            Ok(within) => Ok(PartPosition { part_idx, within }),
            Err(within) => Err(PartPosition { part_idx, within }),
        }
    }
}

fn part_of<N>(numbers: impl IntoIterator<Item = N>) -> Vec<N> {
    let mut part = Vec::with_capacity(PART_MAX);
    part.extend(numbers);
    part
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::ops::Bound;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Idx(u32);

    #[derive(Clone, Debug)]
    enum IndexOp {
        Insert(u16),
        Remove(u16),
        /// Inserts this many keys in a row.
        InsertRow(u16, u16),
    }

    fn act() -> impl Strategy<Value = IndexOp> {
        prop_oneof![
            4 => any::<u16>().prop_map(IndexOp::Insert),
            3 => any::<u16>().prop_map(IndexOp::Remove),
            1 => (any::<u16>(), 0_u16..1_500).prop_map(|(from, n)| IndexOp::InsertRow(from, n)),
        ]
    }

    proptest! {
        #[test]
        fn it_is_a_sorted_map_whose_keys_are_elsewhere(acts in proptest::collection::vec(act(), 1..60)) {
            let mut keys: Vec<u16> = Vec::new();
            let mut sorted = SortedIndex::default();
            let mut model: BTreeMap<u16, Idx> = BTreeMap::new();
            for act in acts {
                match act {
                    IndexOp::Insert(key) => insert(&mut sorted, &mut model, &mut keys, key),
                    IndexOp::InsertRow(from, n) => {
                        for key in from..from.saturating_add(n) {
                            insert(&mut sorted, &mut model, &mut keys, key);
                        }
                    }
                    IndexOp::Remove(near) => {
                        let key = model.range(near..).next().map_or(near, |(key, _)| *key);
                        let removed = sorted.remove(|idx| keys[idx.0 as usize].cmp(&key));
                        prop_assert_eq!(removed, model.remove(&key));
                    }
                }
                prop_assert_eq!(sorted.len(), model.len());
                prop_assert!(sorted.iter().eq(model.values().copied()));
                prop_assert!(sorted.parts.iter().all(|part| (1..=PART_MAX).contains(&part.len())));
            }
            for (key, idx) in &model {
                prop_assert_eq!(sorted.find(|it| keys[it.0 as usize].cmp(key)), Some(*idx));
            }
            for key in [0, 1, 500, u16::MAX / 2, u16::MAX].into_iter().chain(model.keys().copied().take(3)) {
                let after = model.range((Bound::Excluded(key), Bound::Unbounded)).map(|(_, idx)| *idx);
                prop_assert!(sorted.iter_after(|it| keys[it.0 as usize].cmp(&key)).eq(after));
            }
        }
    }

    fn insert(sorted: &mut SortedIndex<Idx>, model: &mut BTreeMap<u16, Idx>, keys: &mut Vec<u16>, key: u16) {
        if model.contains_key(&key) {
            return;
        }
        let idx = Idx(keys.len() as u32);
        keys.push(key);
        sorted.insert(idx, |idx| keys[idx.0 as usize].cmp(&key));
        model.insert(key, idx);
    }

    #[test]
    fn keys_that_come_in_their_order_fill_every_part() {
        let mut sorted = SortedIndex::default();
        for no in 0..10_000 {
            sorted.insert(Idx(no), |idx| idx.0.cmp(&no));
        }
        assert_eq!(sorted.parts.len(), 10_000_usize.div_ceil(PART_MAX));
    }
}
