//! A fleet of nodes on shared limits, simulated event by event on the real core.
//!
//! Everything that decides is `tidegate-core`: each step at the store, what a lease spends, which shard a call takes from. What a
//! node does around that (when it asks, for how much, what it does when nobody answers) is JavaScript in the package, and
//! is modelled here after it, file by file: `node/lease.rs`, `leases.rs` and `demand.rs` after `npm/tidegate/src/lease`, `spread.rs` after
//! `stores/spread.ts`, `breaker.rs` after `resilience.ts`, `experiments/adaptive.rs` after the documentation of
//! `adaptive.ts`. Where these are changed, so must be the model.
//!
//! The network, the clocks, the demand and the faults are drawn from one seed, so a [`Scenario`](scenario::Scenario) always
//! comes to the same [`Figures`](figures::Figures).

#![forbid(unsafe_code)]

pub mod cases;
pub mod clock;
pub mod demand;
pub mod experiments;
pub mod faults;
pub mod figures;
pub mod io;
pub mod meter;
pub mod network;
pub mod node;
pub mod queue;
pub mod random;
pub mod readme;
pub mod report;
pub mod scenario;
pub mod store;
pub mod tally;
pub mod time;
pub mod world;
