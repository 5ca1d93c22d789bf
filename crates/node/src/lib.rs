//! The engine as a Node.js addon: one table for the whole process, shared by all worker threads, and
//! the folders that processes share.
//!
//! A copy of the package opens a store and gets its number. Each store has its own `Float64Array` for the numbers of
//! its calls, so two copies in one thread never share one. `decide` is the hot call and uses Node-API directly, because
//! a generated method costs ten times as much. The macro generates all other exports. The decisions are those of the
//! table, and no panic leaves an export.

// napi registers exports only outside of tests.
#![cfg_attr(test, allow(dead_code))]

mod decide;
mod key;
mod open;
mod several;
mod store;
mod thread;
