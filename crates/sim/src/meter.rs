//! Meters that know nothing of the core: they count tokens that went by, against what the limit lets by.

use crate::scenario::Limit;

/// What rounding may add up to, in tokens: law 5 of the algebra.
pub const HAIR: f64 = 1e-3;

/// The most tokens of any span so far, beyond what came back in that span.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpanMeter {
    level: f64,
    at: f64,
}

impl SpanMeter {
    /// So many more went by at `now` (ms; a clock that steps back is taken to stand). Returns how many more than `capacity + what came back`
    /// went by in the worst span that ends now: at most 0 where the limit was kept.
    pub fn count(&mut self, limit: &Limit, tokens: f64, now: f64) -> f64 {
        let now = now.max(self.at);
        let came = if self.at == 0.0 { 0.0 } else { limit.earned(self.at, now) };
        self.level = (self.level - came).max(0.0) + tokens;
        self.at = now;
        self.level - limit.capacity
    }

    /// So many came back.
    pub fn uncount(&mut self, limit: &Limit, tokens: f64, now: f64) {
        self.count(limit, 0.0, now);
        self.level = (self.level - tokens).max(0.0);
    }
}

/// All tokens since the beginning.
#[derive(Clone, Copy, Debug, Default)]
pub struct SumMeter {
    sum: f64,
}

impl SumMeter {
    /// So many more went by at `now`. Returns how many more than the limit has let by since `began`.
    pub fn count(&mut self, limit: &Limit, tokens: f64, began: f64, now: f64) -> f64 {
        self.sum += tokens;
        self.sum - (limit.capacity + limit.earned(began, now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_meter_sees_a_burst_that_a_sum_hides() {
        let limit = Limit::bucket(10.0, 5.0);
        let (mut span, mut sum) = (SpanMeter::default(), SumMeter::default());
        assert_eq!(span.count(&limit, 5.0, 1_000.0), 0.0);
        // After a quiet minute there are five again, not six hundred.
        assert_eq!(span.count(&limit, 6.0, 61_000.0), 1.0);
        assert!(sum.count(&limit, 11.0, 1_000.0, 61_000.0) < 0.0);
        // What comes back may go again.
        span.uncount(&limit, 6.0, 61_000.0);
        assert_eq!(span.count(&limit, 5.0, 61_000.0), 0.0);
    }

    #[test]
    fn windows_bring_their_tokens_at_once() {
        let limit = Limit { windows: true, rate: 4.0, period: 1000.0, capacity: 4.0 };
        let mut span = SpanMeter::default();
        assert_eq!(span.count(&limit, 4.0, 1_999.0), 0.0);
        assert_eq!(span.count(&limit, 4.0, 2_000.0), 0.0);
        assert_eq!(span.count(&limit, 1.0, 2_999.0), 1.0);
    }
}
