//! Data of each JavaScript thread: the stores that it has opened, and their limits.

use crate::store::Store;
use slab::Slab;
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
    static LIMITS: RefCell<Slab<Kept>> = const { RefCell::new(Slab::new()) };
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
    LIMITS.with_borrow_mut(|limits| limits.insert(kept)) as u32
}

/// Frees a limit; its number may be reused.
pub(crate) fn drop_limit(number: u32) {
    // Dropped after the limits are no longer borrowed.
    drop(LIMITS.with_borrow_mut(|limits| limits.try_remove(number as usize)));
}

pub(crate) fn live_limits() -> usize {
    LIMITS.with_borrow(|limits| limits.len())
}

#[inline]
pub(crate) fn with_limit<R>(number: u32, run: impl FnOnce(&Kept) -> R) -> Option<R> {
    LIMITS.with_borrow(|limits| limits.get(number as usize).map(run))
}

pub(crate) fn with_limits<R>(run: impl FnOnce(&Slab<Kept>) -> R) -> R {
    LIMITS.with_borrow(run)
}
