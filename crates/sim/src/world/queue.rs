//! What will happen, in the order of real time; of the same instant, what was put first comes first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::fact::RealTime;

/// What will happen.
#[derive(Debug)]
pub(super) struct Queue<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    n_put: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: RealTime,
    number: u64,
    it: T,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Queue<T> {
        Queue { heap: BinaryHeap::new(), n_put: 0 }
    }

    pub(super) fn put(&mut self, at: RealTime, it: T) {
        self.n_put += 1;
        self.heap.push(Reverse(Entry { at, number: self.n_put, it }));
    }

    pub(super) fn take(&mut self) -> Option<(RealTime, T)> {
        self.heap.pop().map(|Reverse(entry)| (entry.at, entry.it))
    }

    /// How many things were ever put.
    pub(super) fn n_put(&self) -> u64 {
        self.n_put
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Entry<T>) -> bool {
        self.number == other.number
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Entry<T>) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Entry<T>) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
