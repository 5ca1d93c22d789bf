//! What happens next.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::time::Us;

/// Events in the order of their times; those of one time in the order in which they were put in.
#[derive(Debug)]
pub struct Queue<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Us,
    number: u64,
    event: E,
}

impl<E> Queue<E> {
    /// Nothing happens.
    #[must_use]
    pub fn new() -> Queue<E> {
        Queue { heap: BinaryHeap::new(), next: 0 }
    }

    /// `event` happens at `at`.
    pub fn put(&mut self, at: Us, event: E) {
        self.heap.push(Reverse(Entry { at, number: self.next, event }));
        self.next += 1;
    }

    /// The next event and its time.
    pub fn take(&mut self) -> Option<(Us, E)> {
        self.heap.pop().map(|Reverse(Entry { at, event, .. })| (at, event))
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Queue<E> {
        Queue::new()
    }
}

impl<E> Entry<E> {
    fn place(&self) -> (Us, u64) {
        (self.at, self.number)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.place() == other.place()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> Ordering {
        self.place().cmp(&other.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_put_in() {
        let mut queue = Queue::new();
        for (at, event) in [(5, "c"), (1, "a"), (5, "d"), (3, "b"), (5, "e")] {
            queue.put(at, event);
        }
        let mut seen = Vec::new();
        while let Some((at, event)) = queue.take() {
            seen.push((at, event));
        }
        assert_eq!(seen, [(1, "a"), (3, "b"), (5, "c"), (5, "d"), (5, "e")]);
    }
}
