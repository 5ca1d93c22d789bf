//! The simulation's own time: whole microseconds since it began. Nobody in it can read that, only clocks.

/// Microseconds since the simulation began.
pub type Us = u64;

/// One millisecond.
pub const MS: Us = 1_000;
/// One second.
pub const SECOND: Us = 1_000_000;
/// What a right clock shows at the beginning, ms since the Unix epoch.
pub const EPOCH_MS: f64 = 1_700_000_000_000.0;

/// ms since the Unix epoch on a clock that is `offset` microseconds ahead, fractions included.
#[must_use]
pub fn shown_ms(at: Us, offset: i64) -> f64 {
    EPOCH_MS + (at as i64 + offset) as f64 / MS as f64
}
