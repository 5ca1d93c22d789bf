//! The engine as a Node.js addon: one table for the whole process, shared by all worker threads, and
//! the folders that processes share.
//!
//! A copy of the package opens a store and gets its number; each store has a `Float64Array` of its own for the numbers of
//! its calls, so two copies in one thread never share one. `decide` is the hot call and calls Node-API directly: a method
//! that the macro generates costs ten times as much. The macro generates everything else. Nothing here decides, and no panic
//! leaves an export.

// napi registers exports only outside of tests.
#![cfg_attr(test, allow(dead_code))]

mod decide;
mod key;
mod open;
mod several;
mod store;
mod thread;
