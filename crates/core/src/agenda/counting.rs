//! A stable counting sort.

/// The items by ascending key, those of one key in the order in which they came. Every key is less
/// than `n_keys`, and there are fewer than 2^32 items.
pub(super) fn sorted_by_count<T: Copy + Default>(
    items: &[T],
    n_keys: usize,
    key: impl Fn(&T) -> usize,
) -> Vec<T> {
    // First how many items each key has, then where the next of them goes.
    let mut next = vec![0_u32; n_keys];
    for item in items {
        if let Some(count) = next.get_mut(key(item)) {
            *count += 1;
        }
    }
    starts_from_counts(&mut next);
    let mut sorted = vec![T::default(); items.len()];
    for item in items {
        if let Some(place) = next.get_mut(key(item)) {
            if let Some(slot) = sorted.get_mut(*place as usize) {
                *slot = *item;
            }
            *place += 1;
        }
    }
    sorted
}

/// Turns counts into the sums of all before them.
pub(super) fn starts_from_counts(counts: &mut [u32]) {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
}
