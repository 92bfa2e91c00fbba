//! A cache of bounded size that keeps what was used last.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

/// The last `SIZE` values that were used are always there, and never more than twice as many.
///
/// Texts are looked up a million times at start-up, so the hash is a quick one. Only people who may write jobs can
/// make keys that collide, and then a lookup compares with as many keys as the cache holds.
pub(super) struct Generations<K, V, const SIZE: usize> {
    maps: Mutex<GenerationMaps<K, V>>,
}

/// What is used moves into the young map. When that is full, it replaces the old one.
struct GenerationMaps<K, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
}

impl<K, V, const SIZE: usize> Default for Generations<K, V, SIZE> {
    fn default() -> Generations<K, V, SIZE> {
        let maps = GenerationMaps { young: FxHashMap::default(), old: FxHashMap::default() };
        Generations { maps: Mutex::new(maps) }
    }
}

impl<K, V, const SIZE: usize> fmt::Debug for Generations<K, V, SIZE> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Generations").finish_non_exhaustive()
    }
}

impl<K: Eq + Hash, V, const SIZE: usize> Generations<K, V, SIZE> {
    /// What `read` takes from the value of a key.
    pub(super) fn get<Q, R>(&self, key: &Q, read: impl FnOnce(&V) -> R) -> Option<R>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let mut maps = self.lock();
        if let Some(value) = maps.young.get(key) {
            return Some(read(value));
        }
        let (key, value) = maps.old.remove_entry(key)?;
        let found = read(&value);
        maps.put(key, value, SIZE);
        Some(found)
    }

    /// Remembers a value under a key, instead of an earlier one.
    pub(super) fn put(&self, key: K, value: V) {
        self.lock().put(key, value, SIZE);
    }

    fn lock(&self) -> MutexGuard<'_, GenerationMaps<K, V>> {
        self.maps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Eq + Hash, V> GenerationMaps<K, V> {
    fn put(&mut self, key: K, value: V, size: usize) {
        if size <= self.young.len() {
            mem::swap(&mut self.young, &mut self.old);
            self.young.clear();
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cache = Generations<u32, u32, 10>;

    fn of(values: impl Iterator<Item = (u32, u32)>) -> Cache {
        let cache = Cache::default();
        values.for_each(|(key, value)| cache.put(key, value));
        cache
    }

    #[track_caller]
    fn check(cache: &Cache, key: u32, expected: Option<u32>) {
        assert_eq!(cache.get(&key, |it| *it), expected, "key {key}");
    }

    #[test]
    fn the_latest_value_counts() {
        let cache = of((0..10).map(|key| (key, 1)));
        check(&cache, 0, Some(1));
        check(&cache, 10, None);
        // This one begins a new generation, while the old one still has the earlier value.
        cache.put(0, 2);
        check(&cache, 0, Some(2));
        check(&cache, 1, Some(1));
    }

    #[test]
    fn values_that_were_not_used_for_long_are_forgotten() {
        let cache = of((0..11).map(|key| (key, key)));
        check(&cache, 1, Some(1));
        (11..20).for_each(|key| cache.put(key, key));
        check(&cache, 0, None);
        check(&cache, 1, Some(1));
        check(&cache, 11, Some(11));
    }

    #[test]
    fn never_more_than_two_generations_are_kept() {
        let cache = Cache::default();
        for key in 0..1_000_u32 {
            cache.put(key, key);
            let maps = cache.lock();
            assert!(maps.young.len() + maps.old.len() <= 20);
            for recent in key.saturating_sub(9)..=key {
                assert!(maps.young.contains_key(&recent) || maps.old.contains_key(&recent));
            }
        }
    }
}
