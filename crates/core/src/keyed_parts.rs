//! A map from job keys that can be copied in microseconds, however many jobs there are.
//!
//! It is a row of sorted parts. A copy shares all parts, and a change copies the one part that it touches if a copy of
//! the map still holds it. So a reader takes a copy and looks through a million jobs, while others go on changing them.

use std::sync::Arc;

use crate::ids::JobKey;

/// Jobs per part: few enough to shift or to copy when one of them changes.
const PART_MAX: usize = 256;

/// A map from keys, in their order. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct KeyedParts<T> {
    /// None of them is empty.
    parts: Vec<Arc<Vec<(JobKey, T)>>>,
    len: usize,
}

impl<T> Default for KeyedParts<T> {
    fn default() -> KeyedParts<T> {
        KeyedParts { parts: Vec::new(), len: 0 }
    }
}

/// Two are the same if they have the same entries, whatever the parts.
impl<T: PartialEq> PartialEq for KeyedParts<T> {
    fn eq(&self, other: &KeyedParts<T>) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T> KeyedParts<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// In the order of their keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&JobKey, &T)> {
        self.parts.iter().flat_map(|part| part.iter()).map(|(key, value)| (key, value))
    }

    pub(crate) fn get(&self, key: &JobKey) -> Option<(&JobKey, &T)> {
        let (part_idx, within) = self.locate(key).ok()?;
        self.parts.get(part_idx)?.get(within).map(|(key, value)| (key, value))
    }

    /// Where a key is, or where it would go.
    fn locate(&self, key: &JobKey) -> Result<(usize, usize), (usize, usize)> {
        let ends_before = |part: &Vec<(JobKey, T)>| part.last().is_some_and(|(last, _)| last < key);
        let Some(part) = self.parts.last() else { return Err((0, 0)) };
        if ends_before(part) {
            // Where every job goes of a fleet that is read in the order of keys.
            return Err((self.parts.len() - 1, part.len()));
        }
        let part_idx = self.parts.partition_point(|part| ends_before(part));
        let part = self.parts.get(part_idx).map_or(&[][..], |part| part.as_slice());
        match part.binary_search_by(|(own, _)| own.cmp(key)) {
            Ok(within) => Ok((part_idx, within)),
            Err(within) => Err((part_idx, within)),
        }
    }
}

impl<T: Clone> KeyedParts<T> {
    pub(crate) fn get_mut(&mut self, key: &JobKey) -> Option<&mut T> {
        let (part_idx, within) = self.locate(key).ok()?;
        let part = Arc::make_mut(self.parts.get_mut(part_idx)?);
        part.get_mut(within).map(|(_, value)| value)
    }

    /// In the order of their keys.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = (&JobKey, &mut T)> {
        let parts = self.parts.iter_mut().map(Arc::make_mut);
        parts.flatten().map(|(key, value)| (&*key, value))
    }

    /// Adds a job. It must not be there yet.
    pub(crate) fn insert(&mut self, key: &JobKey, value: T) {
        let Err((part_idx, within)) = self.locate(key) else { return };
        self.len += 1;
        let entry = (key.clone(), value);
        let n_parts = self.parts.len();
        let Some(part) = self.parts.get_mut(part_idx) else { return self.parts.push(part_of([entry])) };
        if part.len() < PART_MAX {
            Arc::make_mut(part).insert(within, entry);
        } else if part_idx + 1 == n_parts && within == part.len() {
            // Keys often come in their order: then every part is filled.
            self.parts.push(part_of([entry]));
        } else {
            let part = Arc::make_mut(part);
            let mut rest: Vec<(JobKey, T)> = Vec::with_capacity(PART_MAX);
            rest.extend(part.drain(PART_MAX / 2..));
            match within.checked_sub(PART_MAX / 2) {
                Some(within) => rest.insert(within, entry),
                None => part.insert(within, entry),
            }
            self.parts.insert(part_idx + 1, Arc::new(rest));
        }
    }

    pub(crate) fn remove(&mut self, key: &JobKey) -> Option<T> {
        let (part_idx, within) = self.locate(key).ok()?;
        let part = Arc::make_mut(self.parts.get_mut(part_idx)?);
        let (_, removed) = part.remove(within);
        if part.is_empty() {
            self.parts.remove(part_idx);
        }
        self.len -= 1;
        Some(removed)
    }
}

fn part_of<T>(entries: impl IntoIterator<Item = (JobKey, T)>) -> Arc<Vec<(JobKey, T)>> {
    let mut part = Vec::with_capacity(PART_MAX);
    part.extend(entries);
    Arc::new(part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key(no: u16) -> JobKey {
        format!("job-{no:05}").parse().unwrap()
    }

    proptest! {
        #[test]
        fn it_is_a_map_and_a_copy_stays_as_it_was(
            acts in proptest::collection::vec((0_u8..4, 0_u16..2_000, 1_u16..400), 1..60),
        ) {
            let (mut jobs, mut model) = (KeyedParts::default(), BTreeMap::new());
            let mut copies = Vec::new();
            for (act_no, (act, from, n)) in acts.into_iter().enumerate() {
                match act {
                    0 => copies.push((jobs.clone(), model.clone())),
                    1 => {
                        for no in from..from + n {
                            prop_assert_eq!(jobs.remove(&key(no)), model.remove(&key(no)));
                        }
                    }
                    _ => {
                        for no in from..from + n {
                            match jobs.get_mut(&key(no)) {
                                Some(value) => *value = act_no,
                                None => jobs.insert(&key(no), act_no),
                            }
                            model.insert(key(no), act_no);
                        }
                    }
                }
                prop_assert_eq!(jobs.len(), model.len());
                prop_assert!(jobs.iter().eq(model.iter()));
                prop_assert!(jobs.parts.iter().all(|part| (1..=PART_MAX).contains(&part.len())));
                prop_assert_eq!(jobs.get(&key(from)).map(|(_, value)| value), model.get(&key(from)));
            }
            for (copy, was) in copies {
                prop_assert!(copy.iter().eq(was.iter()));
            }
        }
    }

    #[test]
    fn a_change_copies_one_part_of_what_is_shared() {
        let mut jobs = KeyedParts::default();
        for no in 0..2_000 {
            jobs.insert(&key(no), 0);
        }
        let copy = jobs.clone();
        *jobs.get_mut(&key(1_000)).unwrap() = 1;
        let n_shared =
            jobs.parts.iter().zip(&copy.parts).filter(|(one, other)| Arc::ptr_eq(one, other)).count();
        assert_eq!(n_shared, jobs.parts.len() - 1);
    }
}
