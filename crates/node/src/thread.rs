//! What each JavaScript thread has of its own: its limits, and the eight doubles it lends for numbers.

use std::cell::{Cell, RefCell};
use std::ptr;
use tidegate_table::Limit;
use tidegate_table::wire::NUMBERS;

thread_local! {
    static LIMITS: RefCell<Vec<Limit>> = const { RefCell::new(Vec::new()) };
    static NUMBERS_AT: Cell<*mut [f64; NUMBERS]> = const { Cell::new(ptr::null_mut()) };
}

/// Takes the doubles at `at` for this thread's numbers.
///
/// # Safety
/// They must stay where they are as long as the thread calls the addon: `open` keeps a reference to their buffer.
pub(crate) unsafe fn lend(at: *mut [f64; NUMBERS]) {
    NUMBERS_AT.set(at);
}

/// Runs with this thread's numbers; `None` before `open`.
#[inline]
pub(crate) fn with_numbers<R>(run: impl FnOnce(&mut [f64; NUMBERS]) -> R) -> Option<R> {
    // Safety: null, or lent for good by `open`; this thread alone uses them, and `run` calls no JavaScript.
    unsafe { NUMBERS_AT.get().as_mut() }.map(run)
}

/// Keeps a limit and returns its number on this thread.
pub(crate) fn keep(limit: Limit) -> u32 {
    LIMITS.with_borrow_mut(|limits| {
        limits.push(limit);
        (limits.len() - 1) as u32
    })
}

/// Runs with the limit of this number.
#[inline]
pub(crate) fn with_limit<R>(limit: u32, run: impl FnOnce(&Limit) -> R) -> Option<R> {
    LIMITS.with_borrow(|limits| limits.get(limit as usize).map(run))
}

/// Runs with all limits of this thread.
pub(crate) fn with_limits<R>(run: impl FnOnce(&[Limit]) -> R) -> R {
    LIMITS.with_borrow(|limits| run(limits))
}
