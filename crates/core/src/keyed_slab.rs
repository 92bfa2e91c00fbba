//! A map from job keys that stays compact with a million jobs: values lie in a slab, an index keeps them in key order.

use std::cmp::Ordering;

use crate::chunked_slab::ChunkedSlab;
use crate::ids::JobKey;
use crate::sorted_index::SortedIndex;

/// The number of a job, for as long as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyNo(u32);

impl KeyNo {
    /// Before all others.
    pub(crate) const FIRST: KeyNo = KeyNo(0);
}

/// A map from keys, in their order.
#[derive(Clone, Debug)]
pub(crate) struct KeyedSlab<T> {
    jobs: ChunkedSlab<(JobKey, T)>,
    by_key: SortedIndex<KeyNo>,
}

impl<T> Default for KeyedSlab<T> {
    fn default() -> KeyedSlab<T> {
        KeyedSlab { jobs: ChunkedSlab::default(), by_key: SortedIndex::default() }
    }
}

impl<T> KeyedSlab<T> {
    /// In the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&JobKey, &T)> {
        self.by_key.iter().filter_map(|no| self.get(no))
    }

    /// All numbers, in the order of keys.
    pub(crate) fn numbers(&self) -> &SortedIndex<KeyNo> {
        &self.by_key
    }

    pub(crate) fn number(&self, key: &JobKey) -> Option<KeyNo> {
        self.by_key.find(|no| self.compared(no, key))
    }

    pub(crate) fn get(&self, no: KeyNo) -> Option<(&JobKey, &T)> {
        self.jobs.get(no.0).map(|(key, known)| (key, known))
    }

    pub(crate) fn get_mut(&mut self, no: KeyNo) -> Option<&mut T> {
        self.jobs.get_mut(no.0).map(|(_, known)| known)
    }

    pub(crate) fn find(&self, key: &JobKey) -> Option<&T> {
        self.get(self.number(key)?).map(|(_, known)| known)
    }

    /// How the key of a job stands to another.
    pub(crate) fn compared(&self, no: KeyNo, key: &JobKey) -> Ordering {
        compared(&self.jobs, no, key)
    }

    /// Adds a job. It must not be there yet.
    pub(crate) fn insert(&mut self, key: &JobKey, known: T) -> KeyNo {
        let KeyedSlab { jobs, by_key } = self;
        let no = KeyNo(jobs.add((key.clone(), known)));
        by_key.insert(no, |other| compared(jobs, other, key));
        no
    }

    pub(crate) fn remove(&mut self, no: KeyNo) -> Option<(JobKey, T)> {
        let KeyedSlab { jobs, by_key } = self;
        let (key, _) = jobs.get(no.0)?;
        by_key.remove(|other| compared(jobs, other, key));
        jobs.remove(no.0)
    }
}

/// Two are the same if they know the same, whatever the numbers.
impl<T: PartialEq> PartialEq for KeyedSlab<T> {
    fn eq(&self, other: &KeyedSlab<T>) -> bool {
        self.iter().eq(other.iter())
    }
}

fn compared<T>(jobs: &ChunkedSlab<(JobKey, T)>, no: KeyNo, key: &JobKey) -> Ordering {
    jobs.get(no.0).map(|(own, _)| own).cmp(&Some(key))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_map(acts in proptest::collection::vec((any::<bool>(), 0_u8..40), 1..200)) {
            let (mut jobs, mut model) = (KeyedSlab::default(), BTreeMap::new());
            for (known, (is_put, name)) in acts.into_iter().enumerate() {
                let key: JobKey = format!("job-{name}").parse().unwrap();
                prop_assert_eq!(jobs.find(&key), model.get(&key));
                match (jobs.number(&key), is_put) {
                    (Some(no), true) => {
                        *jobs.get_mut(no).unwrap() = known;
                        model.insert(key, known);
                    }
                    (None, true) => {
                        let no = jobs.insert(&key, known);
                        prop_assert!(no.0 < 40, "numbers are used again");
                        prop_assert_eq!(jobs.get(no), Some((&key, &known)));
                        model.insert(key, known);
                    }
                    (Some(no), false) => prop_assert_eq!(jobs.remove(no), model.remove_entry(&key)),
                    (None, false) => prop_assert_eq!(model.get(&key), None),
                }
                prop_assert!(jobs.iter().eq(model.iter()));
            }
            let afresh = model.iter().rev().fold(KeyedSlab::default(), |mut afresh, (key, known)| {
                afresh.insert(key, *known);
                afresh
            });
            prop_assert_eq!(&afresh, &jobs);
            if let Some(no) = jobs.number(&"job-1".parse().unwrap()) {
                jobs.remove(no);
                prop_assert_ne!(afresh, jobs);
            }
        }
    }
}
