//! A slab in chunks: values are found by a number of four bytes, and never move when the slab grows.

/// Values per chunk: large enough to find them quickly, small enough not to waste memory in the last chunk.
const CHUNK: usize = 1_024;

/// Values by number. The number of a removed value is used again.
#[derive(Clone, Debug)]
pub(crate) struct ChunkedSlab<T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
}

impl<T> Default for ChunkedSlab<T> {
    fn default() -> ChunkedSlab<T> {
        ChunkedSlab { chunks: Vec::new(), free: Vec::new() }
    }
}

impl<T> ChunkedSlab<T> {
    pub(crate) fn get(&self, number: u32) -> Option<&T> {
        let (chunk_idx, within) = place_of(number);
        self.chunks.get(chunk_idx)?.get(within)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut T> {
        self.slot(number)?.as_mut()
    }

    pub(crate) fn add(&mut self, thing: T) -> u32 {
        if let Some(number) = self.free.pop() {
            if let Some(slot) = self.slot(number) {
                *slot = Some(thing);
            }
            return number;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            self.chunks.push(Vec::with_capacity(CHUNK));
        }
        let n_full = self.chunks.len().saturating_sub(1);
        let within = self.chunks.last_mut().map_or(0, |chunk| {
            chunk.push(Some(thing));
            chunk.len() - 1
        });
        // There are never four thousand million jobs.
        u32::try_from(n_full * CHUNK + within).unwrap_or(u32::MAX)
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<T> {
        let removed = self.slot(number)?.take();
        if removed.is_some() {
            self.free.push(number);
        }
        removed
    }

    fn slot(&mut self, number: u32) -> Option<&mut Option<T>> {
        let (chunk_idx, within) = place_of(number);
        self.chunks.get_mut(chunk_idx)?.get_mut(within)
    }
}

fn place_of(number: u32) -> (usize, usize) {
    let number = usize::try_from(number).unwrap_or(usize::MAX);
    (number / CHUNK, number % CHUNK)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum SlabOp {
        Add(usize),
        /// The one with this number, or the next that is there.
        Remove(u32),
        Change(u32),
    }

    fn act() -> impl Strategy<Value = SlabOp> {
        let number = || 0..3 * CHUNK as u32;
        prop_oneof![
            2 => (1..CHUNK).prop_map(SlabOp::Add),
            5 => number().prop_map(SlabOp::Remove),
            3 => number().prop_map(SlabOp::Change),
        ]
    }

    proptest! {
        #[test]
        fn each_has_a_number_of_its_own_for_as_long_as_it_is_there(
            acts in proptest::collection::vec(act(), 1..40),
        ) {
            let mut numbered = ChunkedSlab::default();
            let mut model: BTreeMap<u32, usize> = BTreeMap::new();
            let mut most = 0;
            for (no, act) in acts.into_iter().enumerate() {
                match act {
                    SlabOp::Add(n) => {
                        for _ in 0..n {
                            let number = numbered.add(no);
                            prop_assert_eq!(model.insert(number, no), None, "it was somebody's");
                        }
                        most = most.max(model.len());
                    }
                    SlabOp::Remove(from) => {
                        let number = model.range(from..).next().map_or(from, |(number, _)| *number);
                        prop_assert_eq!(numbered.remove(number), model.remove(&number));
                        prop_assert_eq!(numbered.remove(number), None, "twice");
                    }
                    SlabOp::Change(number) => {
                        let [kept, expected] = [numbered.get_mut(number), model.get_mut(&number)];
                        prop_assert_eq!(&kept, &expected);
                        for thing in [kept, expected].into_iter().flatten() {
                            *thing += 1_000;
                        }
                    }
                }
                prop_assert!(model.iter().all(|(number, thing)| numbered.get(*number) == Some(thing)));
                prop_assert!(model.keys().all(|number| (*number as usize) < most), "free numbers are used first");
            }
        }
    }
}
