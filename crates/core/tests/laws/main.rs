//! The laws of the algebra, by their numbers in `npm/site/reference/promises.md`, tried on generated limits, states and
//! clocks. One program, since each would compile what generates them again.

mod block;
mod bound;
mod clock;
mod corrupt;
mod drift;
mod law;
mod lease;
mod retry;
mod shards;
mod state;
