//! The engine as a Node.js addon: one table for the whole process, shared by all worker threads, and
//! the folders that processes share.
//!
//! `decide` is the hot call and goes through Node-API by hand: a macro-generated method costs ten times as much. Its
//! numbers come and go through a `Float64Array` that the thread lends once. Everything else is by macro. Nothing here
//! decides, and no panic leaves an export.

// napi registers exports only outside of tests.
#![cfg_attr(test, allow(dead_code))]

mod decide;
mod file;
mod key;
mod replay;
mod several;
mod shared;
mod thread;
