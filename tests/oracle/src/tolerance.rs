//! The tolerance between doubles and exact arithmetic.
//!
//! One step rounds a product, a quotient, a sum and a difference. Product and quotient err by half a part in 2^53 of
//! the refill each, together by up to one ulp of the scale; sum and difference by half an ulp each. So a step errs by
//! less than 3 ulp of its largest number, and an error does not grow by itself.

use crate::exact::{Answer, rational};
use crate::naive::{CLOCK_END, Decision};
use num_rational::BigRational;
use num_traits::Signed;

/// The distance from `|x|` to the next double.
#[must_use]
pub fn ulp(x: f64) -> f64 {
    let size = x.abs();
    size.next_up() - size
}

/// The numbers of a call on which its tolerance depends.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Tokens.
    pub count: f64,
    /// The least value that it may leave, tokens.
    pub floor: f64,
    /// Time to refill one token, ms.
    pub ms_per_token: f64,
    /// Distance of the possible instants: 1 ms, or the period of a window.
    pub grid: f64,
}

/// The rounding error accumulated so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tolerance {
    steps: f64,
    scale: f64,
}

impl Tolerance {
    /// Adds `steps` steps on numbers up to `scale`.
    pub fn step(&mut self, steps: f64, scale: f64) {
        self.steps += steps;
        self.scale = self.scale.max(scale.abs());
    }

    /// The tolerance in tokens.
    #[must_use]
    pub fn tokens(&self) -> f64 {
        self.steps * 3.0 * ulp(self.scale)
    }

    /// Whether two values are equal within the tolerance.
    #[must_use]
    pub fn same(&self, value: f64, exact: &BigRational) -> bool {
        (rational(value) - exact).abs() <= rational(self.tokens())
    }

    /// Compares the decisions of both oracles on one call. `Ok(false)` where rounding alone changes the decision: both
    /// are at the same edge then, within the tolerance.
    ///
    /// # Errors
    /// A sentence with the difference.
    pub fn compare(&self, got: &Decision, exact: &Answer, query: Query) -> Result<bool, String> {
        let fail = |what: &str| Err(format!("{what}: {got:?} is not {exact:?} within {} tokens", self.tokens()));
        if (got.ok, got.reserved) != (exact.ok, exact.reserved) {
            let left = if got.ok { got.value } else { got.value - query.count };
            let count = rational(if exact.ok { 0.0 } else { query.count });
            let exactly = &exact.value - count;
            let at_edge = [0.0, query.floor].into_iter().any(|edge| edge.is_finite() && self.same(edge, &exactly));
            return if self.same(left, &exactly) && at_edge { Ok(false) } else { fail("decision") };
        }
        if !self.same(got.value, &exact.value) {
            return fail("value");
        }
        if got.ts != exact.ts as f64 {
            return fail("ts");
        }
        // An instant is rounded up to the next point of the grid, so an error of any size may move it by one point.
        let slack = query.grid + self.tokens() * query.ms_per_token;
        if (got.reset_at - exact.reset_at as f64).abs() > slack {
            return fail("resetAt");
        }
        match (got.retry_at, exact.retry_at) {
            (None, None) => Ok(true),
            (Some(a), Some(b)) if (a - b as f64).abs() <= slack => Ok(true),
            // A limit that hardly refills: the tolerance reaches beyond the end of the clock.
            (None, Some(b)) if CLOCK_END - b as f64 <= slack => Ok(true),
            _ => fail("retryAt"),
        }
    }
}
