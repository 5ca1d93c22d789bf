//! The shards of a limit, for stores whose rows are on different servers (Durable Objects, Redis Cluster, Deno KV,
//! Convex, Memcached). In other stores a limit with `shards` is one bucket, and this module is not used.

use crate::bounds::MAX_NOW_MS;
use crate::bucket::Bucket;
use crate::decision::{Decision, Reason};
use crate::number::{max, min};
use crate::policy::Policy;
use crate::search::least;
use crate::state::State;

/// All shards of a limit as one pool. `states` has one element per shard; a shard without a state counts as full.
///
/// The pool counts missing tokens: it holds `capacity` less the sum of the tokens that each shard lacks. So it is full
/// exactly when every shard is, however the division of the capacity rounds.
#[derive(Debug)]
pub struct Pool<'a> {
    whole: Bucket,
    shard: Bucket,
    shards: f64,
    states: &'a mut [Option<State>],
    now: f64,
}

impl<'a> Pool<'a> {
    /// The pool of `states`, one for each shard, at `now`, integer ms ([`check_now`](crate::check_now)). `start` is that of
    /// [`Policy::bucket`].
    pub fn new(policy: &Policy, start: f64, states: &'a mut [Option<State>], now: f64) -> Pool<'a> {
        for state in states.iter_mut() {
            *state = Bucket::unless_broken(*state, now);
        }
        Pool {
            whole: policy.bucket(start),
            shard: policy.shard_bucket(start),
            shards: f64::from(policy.shards()),
            states,
            now,
        }
    }

    fn missing(&self, t: f64) -> f64 {
        self.missing_of(t, None)
    }

    /// Tokens that all shards lack at `t`, as if each held `spread` tokens now if that is given.
    fn missing_of(&self, t: f64, spread: Option<f64>) -> f64 {
        let mut missing = 0.0;
        for state in self.states.iter() {
            let state = match spread {
                Some(value) => Some(State { value, ts: self.shard.refill(*state, self.now).ts }),
                None => *state,
            };
            if state.is_some() {
                missing += self.shard.capacity - self.shard.refill(state, t).value;
            }
        }
        missing
    }

    /// The state of the whole limit now.
    #[must_use]
    pub fn state(&self) -> State {
        let mut ts = f64::NEG_INFINITY;
        for state in self.states.iter() {
            ts = max(ts, self.shard.refill(*state, self.now).ts);
        }
        State { value: self.whole.capacity - self.missing(self.now), ts }
    }

    /// Takes `count` tokens, 0 to 2^40, from the pool. Returns the decision, and whether there are states to write; otherwise
    /// they are unchanged.
    pub fn take(&mut self, count: f64, reserve: bool) -> (Decision, bool) {
        let floor = self.whole.floor(reserve);
        if self.whole.exceeds_capacity(count, reserve) {
            return (Decision::never(self.now), false);
        }
        let value = self.state().value - count;
        if value < floor {
            return (self.denial(self.least_time(count, floor)), false);
        }
        let spread = if count > 0.0 { Some(self.even(self.missing(self.now) + count)) } else { None };
        // From the new states: a full shard that lent tokens to the others refills again.
        let retry_at = if value >= 0.0 { None } else { self.least_time_of(spread, value, 0.0, 0.0) };
        if value < 0.0 && retry_at.is_none() {
            return (self.denial(None), false);
        }
        if let Some(value) = spread {
            self.spread(value);
        }
        (self.decision(true, retry_at, None), spread.is_some())
    }

    /// Gives `count` unused tokens back, spread evenly. Returns the decision, and whether there are states to write.
    pub fn give(&mut self, count: f64) -> (Decision, bool) {
        let writes = count > 0.0 && self.states.iter().any(Option::is_some);
        if writes {
            self.spread(self.even(max(self.missing(self.now) - count, 0.0)));
        }
        (self.settled(), writes)
    }

    /// Takes `count` tokens that are already spent, spread evenly. Returns the decision, and whether there are states
    /// to write.
    pub fn charge(&mut self, count: f64) -> (Decision, bool) {
        if count > 0.0 {
            self.spread(self.even(self.missing(self.now) + count));
        }
        (self.settled(), count > 0.0)
    }

    /// Blocks every shard for `ms`: see [`Bucket::block`].
    pub fn block(&mut self, ms: f64) -> Decision {
        for state in self.states.iter_mut() {
            *state = self.shard.block(*state, self.now, ms).write.or(*state);
        }
        let retry_at = self.least_time(min(self.whole.one, self.whole.capacity), 0.0);
        Decision { reserved: false, ..self.decision(true, retry_at, None) }
    }

    fn denial(&self, retry_at: Option<f64>) -> Decision {
        self.decision(false, retry_at, if retry_at.is_none() { Some(Reason::ExceedsClock) } else { None })
    }

    fn settled(&self) -> Decision {
        let retry_at = if self.state().value >= 0.0 { None } else { self.least_time(0.0, 0.0) };
        Decision { reserved: false, ..self.decision(true, retry_at, None) }
    }

    /// Tokens of each shard if all lack the same number, `missing` in total.
    fn even(&self, missing: f64) -> f64 {
        self.shard.capacity - missing / self.shards
    }

    fn spread(&mut self, value: f64) {
        for state in self.states.iter_mut() {
            *state = Some(State { value, ts: self.shard.refill(*state, self.now).ts });
        }
    }

    fn least_time(&self, count: f64, floor: f64) -> Option<f64> {
        self.least_time_of(None, self.state().value, count, floor)
    }

    /// The first integer ms after `now` at which the pool holds `count` tokens above `floor`, as if each shard held
    /// `spread` tokens now if that is given. `value` is the tokens of the pool now.
    fn least_time_of(&self, spread: Option<f64>, value: f64, count: f64, floor: f64) -> Option<f64> {
        let holds = |t: f64| (self.whole.capacity - self.missing_of(t, spread)) - count >= floor;
        least(self.now, MAX_NOW_MS, self.estimate(value, count, floor), holds)
    }

    /// When the pool holds `count` tokens above `floor`, up to rounding, and if no shard is full before then.
    fn estimate(&self, value: f64, count: f64, floor: f64) -> f64 {
        self.now + ((count + floor) - value) * self.whole.ms_per_token
    }

    fn decision(&self, ok: bool, retry_at: Option<f64>, reason: Option<Reason>) -> Decision {
        let State { value, ts } = self.state();
        let mut reset_at = self.now;
        for state in self.states.iter() {
            reset_at = max(reset_at, self.shard.full_at(*state, self.now));
        }
        Decision { ok, value, ts, retry_at, reset_at, reserved: ok && retry_at.is_some(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Kind};

    #[test]
    fn with_equal_shards_the_estimate_is_off_by_at_most_1_ms() {
        for (rate, period) in [(12.0, 1000.0), (7.0, 60_000.0), (0.3, 1000.0), (1e6, 86_400_000.0)] {
            let config = Config { rate, period, shards: Some(4.0), ..Config::new(Kind::TokenBucket) };
            let policy = Policy::new(&config).unwrap();
            let now = 1_700_000_000_123.0;
            for value in [0.0, rate / 3.0, -2.5 * rate] {
                let mut states = [Some(State { value: value / 4.0, ts: now }); 4];
                let pool = Pool::new(&policy, 0.0, &mut states, now);
                for (count, floor) in [(value.max(0.0) + rate / 50.0, 0.0), (rate, 0.0), (rate * 4.0, -3.0 * rate)] {
                    let found = pool.least_time(count, floor).unwrap();
                    let estimate = pool.estimate(value, count, floor);
                    assert!((estimate - found).abs() <= 1.0, "{policy:?} {value} {count} {floor}");
                }
            }
        }
    }
}
