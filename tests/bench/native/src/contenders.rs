//! The contenders. The ones of tidegate receive `now`, as the library does, unless their name states otherwise;
//! governor reads its own clock.

use crate::turns::Contender;
use governor::clock::DefaultClock;
use governor::state::keyed::{HashMapStateStore, KeyedStateStore};
use governor::{Quota, RateLimiter};
use std::fmt;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{SystemTime, UNIX_EPOCH};
use tidegate_core::{Config, Decision, Kind, Policy, State};
use tidegate_table::{Call, Limit, SharedTable, Table};

const NOW_MS: f64 = 1_800_000_000_000.0;
const HOUR_MS: f64 = 3_600_000.0;
/// Calls per millisecond of the clock: about as many as one thread decides in that time.
const CALLS_A_MS: usize = 16_384;
const SECRET: [u64; 2] = [0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210];

/// The outcome of a case's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Granted,
    Denied,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Outcome::Granted { "granted" } else { "denied" })
    }
}

impl Outcome {
    /// Capacity: never spent in a run, or spent by the first call. The refill is so slow that no key
    /// is full when it is used again.
    fn tokens(self) -> u32 {
        if self == Outcome::Granted { 1_000_000_000 } else { 1 }
    }

    /// Tokens per hour.
    fn rate(self) -> u32 {
        if self == Outcome::Granted { 1000 } else { 1 }
    }

    fn policy(self) -> Policy {
        let rate = f64::from(self.rate());
        let capacity = Some(f64::from(self.tokens()));
        Policy::new(&Config { rate, period: HOUR_MS, capacity, ..Config::new(Kind::TokenBucket) })
            .expect("a policy in bounds")
    }

    fn quota(self) -> Quota {
        let number = |n| NonZeroU32::new(n).expect("above 0");
        Quota::per_hour(number(self.rate())).allow_burst(number(self.tokens()))
    }
}

/// The keys of the requests, 12 characters, in a shuffled order that is the same for all.
struct Requests {
    keys: Vec<String>,
    at: usize,
}

impl Requests {
    fn new(count: usize) -> Requests {
        let mut keys: Vec<String> = (0..count).map(|i| format!("user:{}", 1_000_000 + i)).collect();
        let mut seed = 0x9e37_79b9_u64;
        for i in (1..count).rev() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            keys.swap(i, (seed >> 33) as usize % (i + 1));
        }
        Requests { keys, at: 0 }
    }

    fn next(&mut self) -> &String {
        self.at = if self.at + 1 >= self.keys.len() { 0 } else { self.at + 1 };
        &self.keys[self.at]
    }
}

fn contender(name: &'static str, keys: usize, mut granted: impl FnMut(&String, f64) -> bool + 'static) -> Contender {
    let mut requests = Requests::new(keys);
    let mut made = 0_usize;
    let step = move |calls: usize| {
        let mut count = 0;
        for _ in 0..calls {
            made += 1;
            let now = NOW_MS + (made / CALLS_A_MS) as f64;
            count += usize::from(granted(black_box(requests.next()), now));
        }
        count
    };
    Contender { name, fill: keys, step: Box::new(step) }
}

/// Returns `ok`; `black_box` keeps the compiler from dropping the rest of the decision.
fn granted(decision: Decision) -> bool {
    black_box(decision).ok
}

pub(crate) fn core(outcome: Outcome) -> Contender {
    let bucket = outcome.policy().bucket(0.0);
    let mut state: Option<State> = None;
    contender("Bucket::take, state at hand", 1, move |_, now| {
        let taken = bucket.take(black_box(state), now, 1.0, false);
        state = taken.write.or(state);
        granted(taken.decision)
    })
}

pub(crate) fn table(keys: usize, outcome: Outcome) -> Contender {
    let mut table = Table::new(2 * keys, SECRET);
    let limit = Limit::new(SECRET, "api", outcome.policy());
    contender("tidegate_table", keys, move |key, now| {
        granted(table.decide(&limit, Some(key.as_bytes()), Call::at(now)))
    })
}

pub(crate) fn table_with_clock(keys: usize, outcome: Outcome) -> Contender {
    let mut table = Table::new(2 * keys, SECRET);
    let limit = Limit::new(SECRET, "api", outcome.policy());
    contender("tidegate_table, reading the system's clock", keys, move |key, _| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_millis() as f64;
        granted(table.decide(&limit, Some(key.as_bytes()), Call::at(now)))
    })
}

pub(crate) fn shared(keys: usize, outcome: Outcome) -> Contender {
    let table = SharedTable::new(2 * keys, SECRET);
    let limit = Limit::new(SECRET, "api", outcome.policy());
    contender("tidegate_table, shared by threads", keys, move |key, now| {
        granted(table.decide(&limit, Some(key.as_bytes()), Call::at(now)))
    })
}

pub(crate) fn governed(keys: usize, outcome: Outcome) -> Contender {
    governor("governor, keyed (DashMap)", keys, RateLimiter::keyed(outcome.quota()))
}

pub(crate) fn governed_hash_map(keys: usize, outcome: Outcome) -> Contender {
    let limiter: RateLimiter<String, HashMapStateStore<String>, _> = RateLimiter::hashmap(outcome.quota());
    governor("governor, keyed (Mutex<HashMap>)", keys, limiter)
}

fn governor<S: KeyedStateStore<String> + 'static>(
    name: &'static str,
    keys: usize,
    limiter: RateLimiter<String, S, DefaultClock>,
) -> Contender {
    contender(name, keys, move |key, _| black_box(limiter.check_key(key)).is_ok())
}
