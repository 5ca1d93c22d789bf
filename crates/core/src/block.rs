//! Blocks: debt that is paid at a given time.

use crate::bounds::FIRST_REQUEST;
use crate::bucket::Bucket;
use crate::decision::Outcome;
use crate::fixed_window::index;
use crate::kind::Kind;
use crate::number::{ceil, max, min};
use crate::state::State;

/// 2^-51: of a sum, one to four times the distance to the next double.
const ULPS: f64 = 4.440_892_098_500_626e-16;

impl Bucket {
    /// Blocks the key for `ms`: until the block ends, every request for one token is denied.
    ///
    /// `ms` is integer, 1 to 2^40 ([`check_for`](crate::check_for)). The block ends `ms` after the clock, or after `ts`
    /// if that is ahead; on a grid of windows, where the first window begins at or after that. At its end a token
    /// bucket holds one token, and a window `rate` tokens (no more than `capacity`); a window that began at a request
    /// holds no more than it would have without the block. `retry_at` is the end.
    ///
    /// A block is debt. It never raises the value at any instant, so it shortens neither a debt nor an earlier block:
    /// if one token is denied until then anyway, nothing is written.
    #[must_use]
    pub fn block(&self, state: Option<State>, now: f64, ms: f64) -> Outcome {
        let known = Bucket::unless_broken(state, now);
        let held = self.refill(known, now);
        let from = max(now, held.ts);
        let least = min(self.one, self.capacity);
        // A fresh key is full, so only a state can deny.
        let denies = self.refill(known.or(Some(held)), from + ms - 1.0).value < least;
        let write = if denies { None } else { Some(self.owing(held, from, ms, least)) };
        let kept = write.or(known);
        let retry_at = kept.and_then(|kept| self.least_time(kept, now, least, 0.0));
        Outcome { decision: self.granted(write.unwrap_or(held), kept, now, retry_at, false), write }
    }

    /// `held` with a value that reaches `least` when the block ends, and not before.
    fn owing(&self, held: State, from: f64, ms: f64, least: f64) -> State {
        let until = from + ms;
        let refilled = |t: f64| ((t - held.ts) * self.rate) / self.period;
        let begun = |windows: f64| self.rate * windows;
        let most = max(min(self.rate, self.capacity), least);
        match self.kind {
            Kind::TokenBucket => {
                State { value: debt(least, least, refilled(until), refilled(until - 1.0)), ts: held.ts }
            }
            Kind::FixedWindow if self.start == FIRST_REQUEST => {
                // Its grid moves, so that a window begins at the end.
                let windows = ceil(ms / self.period);
                let target = min(most, self.refill(Some(held), until).value);
                State {
                    value: debt(target, least, begun(windows), begun(windows - 1.0)),
                    ts: until - windows * self.period,
                }
            }
            Kind::FixedWindow => {
                let windows = index(self, self.start, until - 1.0) + 1.0 - index(self, self.start, held.ts);
                State { value: debt(most, least, begun(windows), begun(windows - 1.0)), ts: held.ts }
            }
        }
    }
}

/// The value that is `target` with `all` tokens more, and below `least` with `before` tokens more. If rounding would
/// make it miss that, it is corrected, the second condition last: a block may end late, and never early.
fn debt(target: f64, least: f64, all: f64, before: f64) -> f64 {
    let ulps = (all + target) * ULPS;
    let mut value = target - all;
    if value + all < least {
        value += ulps;
    }
    if value + before >= least {
        value -= ulps;
    }
    value
}
