//! How many jobs fit, and how many slots all of them need: by whole simulations.

/// The share of deadlines that must be met.
pub(super) const WANTED: f64 = 0.999;

/// A smaller loss is ignored: a hundredth of a percent.
const LOSS_MIN: f64 = 0.000_1;

/// How many slots were tried, and the share of deadlines that were met.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SlotShare {
    pub(crate) slots: u32,
    pub(crate) in_time: f64,
}

/// Whether a share is good enough: what was below what is wanted already must not fall further.
pub(super) fn is_kept(before: f64, after: f64) -> bool {
    WANTED.min(before - LOSS_MIN) <= after
}

/// The largest number below `asked` that fits, to about one in a hundred. `None` is a try that was given up.
pub(super) fn most_that_fit<E>(asked: u32, mut fits: impl FnMut(u32) -> Result<bool, E>) -> Result<u32, E> {
    let (mut fit, mut not) = (0, asked);
    while (fit / 100).max(1) < not - fit {
        let n = fit + (not - fit) / 2;
        if fits(n)? { fit = n } else { not = n }
    }
    Ok(fit)
}

/// What is found about slots.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SlotSearch {
    /// The smallest number that is enough; none if not even the most is.
    pub(super) enough: Option<u32>,
    /// All that were tried, in order.
    pub(super) tried: Vec<SlotShare>,
}

/// The smallest number of slots that is enough, up to the most that can be of use. Fewer than `least` are not tried: they
/// would have to be in use more than all the time.
pub(super) fn enough_slots<E>(
    now: SlotShare,
    least: u32,
    most: u32,
    mut share: impl FnMut(u32) -> Result<f64, E>,
) -> Result<SlotSearch, E> {
    let mut tried = vec![now];
    let mut enough = None;
    let mut not = now.slots.max(least.saturating_sub(1)).min(most.saturating_sub(1).max(now.slots));
    let mut step = 1;
    while not < most && enough.is_none() {
        let slots = not.saturating_add(step).min(most);
        let in_time = share(slots)?;
        tried.push(SlotShare { slots, in_time });
        if WANTED <= in_time {
            enough = Some(slots);
        } else {
            (not, step) = (slots, step * 2);
        }
    }
    while let Some(slots) = enough.filter(|slots| 1 < slots - not) {
        let middle = not + (slots - not) / 2;
        let in_time = share(middle)?;
        tried.push(SlotShare { slots: middle, in_time });
        if WANTED <= in_time {
            enough = Some(middle);
        } else {
            not = middle;
        }
    }
    tried.sort_by_key(|it| it.slots);
    tried.dedup_by_key(|it| it.slots);
    Ok(SlotSearch { enough, tried })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_that_fits_is_found() {
        let check = |asked: u32, limit: u32| {
            let mut n_tries = 0;
            let found = most_that_fit(asked, |n| {
                n_tries += 1;
                Ok::<_, ()>(n <= limit)
            });
            assert_eq!(found, Ok(limit));
            assert!(n_tries <= 10, "{n_tries}");
        };
        check(400, 87);
        check(400, 0);
        check(10, 9);
        assert_eq!(most_that_fit(1, |_| Err::<bool, _>(())), Ok(0));
    }

    #[test]
    fn the_smallest_number_of_slots_is_found_with_the_shares_on_the_way() {
        let share = |slots: u32| if 13 <= slots { 1.0 } else { f64::from(slots) / 20.0 };
        let now = SlotShare { slots: 8, in_time: share(8) };
        let found = enough_slots(now, 0, 100, |slots| Ok::<_, ()>(share(slots))).unwrap();
        assert_eq!(found.enough, Some(13));
        let slots: Vec<u32> = found.tried.iter().map(|it| it.slots).collect();
        assert_eq!(slots, [8, 9, 11, 12, 13, 15]);
        let found = enough_slots(now, 0, 12, |slots| Ok::<_, ()>(share(slots))).unwrap();
        assert_eq!((found.enough, found.tried.last().map(|it| it.slots)), (None, Some(12)));
        assert_eq!(enough_slots(now, 0, 12, |_| Err::<f64, _>("enough")), Err("enough"));
        // What is in use on average is where it begins.
        let found = enough_slots(now, 12, 100, |slots| Ok::<_, ()>(share(slots))).unwrap();
        let slots: Vec<u32> = found.tried.iter().map(|it| it.slots).collect();
        assert_eq!((found.enough, slots), (Some(13), vec![8, 12, 13, 14]));
    }

    #[test]
    fn what_was_bad_before_must_not_get_worse() {
        assert!(is_kept(1.0, 0.9995) && !is_kept(1.0, 0.998));
        assert!(is_kept(0.9, 0.9) && !is_kept(0.9, 0.89));
    }
}
