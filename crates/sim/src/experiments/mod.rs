//! Experiments beside the fleet: a rate that adapts, and clients that come back.

pub mod adaptive;
pub mod aimd;
pub mod herd;
