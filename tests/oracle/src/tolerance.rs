//! How far doubles may be from the exact answer.
//!
//! One step rounds a product, a quotient, a sum and a difference. The first two are off by half a part in 2^53 of what
//! is earned, so by up to one ulp of the scale together with the quotient's own rounding; sum and difference by half an
//! ulp each. So a step is off by less than 3 ulp of the largest number in play, and an error never grows by itself.

use crate::exact::{Answer, rational};
use crate::naive::Decision;
use num_rational::BigRational;
use num_traits::Signed;

/// The distance from `|x|` to the next double.
#[must_use]
pub fn ulp(x: f64) -> f64 {
    let size = x.abs();
    size.next_up() - size
}

/// What a call asked for.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Tokens.
    pub count: f64,
    /// The least that it may leave behind.
    pub floor: f64,
    /// How long one token takes to come back.
    pub ms_per_token: f64,
    /// Distance of the instants that may be answered: 1 ms, or a window.
    pub grid: f64,
}

/// What has been rounded so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    steps: f64,
    scale: f64,
}

impl Tolerance {
    /// Counts `steps` more, with numbers as large as `scale`.
    pub fn step(&mut self, steps: f64, scale: f64) {
        self.steps += steps;
        self.scale = self.scale.max(scale.abs());
    }

    /// In tokens.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.steps * 3.0 * ulp(self.scale)
    }

    /// Whether two values are the same but for rounding.
    #[must_use]
    pub fn same(&self, value: f64, exact: &BigRational) -> bool {
        (rational(value) - exact).abs() <= rational(self.tokens())
    }

    /// Compares two answers of one call. `Ok(false)` where rounding alone turned the decision around: both oracles are
    /// at the same edge then, to within the tolerance.
    pub fn compare(&self, got: &Decision, exact: &Answer, asked: Asked) -> Result<bool, String> {
        let fail = |what: &str| Err(format!("{what}: {got:?} is not {exact:?} within {} tokens", self.tokens()));
        if (got.ok, got.reserved) != (exact.ok, exact.reserved) {
            let left = if got.ok { got.value } else { got.value - asked.count };
            let count = rational(if exact.ok { 0.0 } else { asked.count });
            let exactly = &exact.value - count;
            let at_edge = [0.0, asked.floor].into_iter().any(|edge| edge.is_finite() && self.same(edge, &exactly));
            return if self.same(left, &exactly) && at_edge { Ok(false) } else { fail("decision") };
        }
        if !self.same(got.value, &exact.value) {
            return fail("value");
        }
        if got.ts != exact.ts as f64 {
            return fail("ts");
        }
        // An instant is rounded up to the grid's next point, so an error of any size may move it by one.
        let slack = asked.grid + self.tokens() * asked.ms_per_token;
        if (got.reset_at - exact.reset_at as f64).abs() > slack {
            return fail("resetAt");
        }
        match (got.retry_at, exact.retry_at) {
            (None, None) => Ok(true),
            (Some(a), Some(b)) if (a - b as f64).abs() <= slack => Ok(true),
            _ => fail("retryAt"),
        }
    }
}
