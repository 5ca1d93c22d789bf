//! Data of each JavaScript thread: the stores that it has opened, and their limits.

use crate::store::Store;
use std::cell::RefCell;
use std::rc::Rc;
use tidegate_table::Limit;

/// A limit, prepared for a store.
pub(crate) struct Kept {
    pub(crate) limit: Limit,
    pub(crate) store: Rc<Store>,
}

thread_local! {
    static STORES: RefCell<Vec<Rc<Store>>> = const { RefCell::new(Vec::new()) };
    static LIMITS: RefCell<Vec<Option<Kept>>> = const { RefCell::new(Vec::new()) };
    /// Numbers of freed limits.
    static FREE: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

/// Keeps a store for as long as the thread runs, and returns its number.
pub(crate) fn keep_store(store: Store) -> u32 {
    STORES.with_borrow_mut(|stores| {
        stores.push(Rc::new(store));
        (stores.len() - 1) as u32
    })
}

pub(crate) fn store(number: u32) -> Option<Rc<Store>> {
    STORES.with_borrow(|stores| stores.get(number as usize).cloned())
}

pub(crate) fn keep_limit(kept: Kept) -> u32 {
    LIMITS.with_borrow_mut(|limits| {
        let free = FREE.with_borrow_mut(Vec::pop).filter(|at| (*at as usize) < limits.len());
        let at = free.unwrap_or(limits.len() as u32);
        match limits.get_mut(at as usize) {
            Some(slot) => *slot = Some(kept),
            None => limits.push(Some(kept)),
        }
        at
    })
}

/// Frees a limit; its number may be reused.
pub(crate) fn drop_limit(number: u32) {
    // Dropped after the table of limits is no longer borrowed.
    let dropped = LIMITS.with_borrow_mut(|limits| limits.get_mut(number as usize).and_then(Option::take));
    if dropped.is_some() {
        FREE.with_borrow_mut(|free| free.push(number));
    }
}

pub(crate) fn live_limits() -> usize {
    LIMITS.with_borrow(|limits| limits.iter().flatten().count())
}

#[inline]
pub(crate) fn with_limit<R>(number: u32, run: impl FnOnce(&Kept) -> R) -> Option<R> {
    LIMITS.with_borrow(|limits| limits.get(number as usize).and_then(Option::as_ref).map(run))
}

pub(crate) fn with_limits<R>(run: impl FnOnce(&[Option<Kept>]) -> R) -> R {
    LIMITS.with_borrow(|limits| run(limits))
}
