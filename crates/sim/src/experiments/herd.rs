//! Clients that were denied together, and when they come back.

use serde::{Deserialize, Serialize};
use tidegate_core::{Rule, State, default_start};

use crate::figures::rounded;
use crate::queue::Queue;
use crate::random::{Purpose, below, stream};
use crate::scenario::Limit;
use crate::time::EPOCH_MS;

/// What a denied client does.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Back {
    /// It comes back at `retryAt`.
    AsTold,
    /// At the time that `jitter` makes of it, with this `fraction`.
    Jitter(f64),
    /// It was never denied: it reserved, and runs at its own time.
    Reserve,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Herd {
    /// The limit.
    pub limit: Limit,
    /// Clients, who come within one second and want one token each.
    pub clients: u32,
    /// What they do.
    pub back: Back,
    /// The most retries in one ms, and in any 100 ms from one full tenth of a second to the next.
    pub peak_1_ms: u32,
    /// See `peak_1_ms`.
    pub peak_100_ms: u32,
    /// Questions to the limit, for each token granted.
    pub asked_per_grant: f64,
    /// Seconds until the last of them had its token.
    pub done_s: f64,
    /// Seconds that it takes at the least.
    pub least_s: f64,
}

/// Lets all clients in. Panics where the limit is out of range.
#[must_use]
pub fn run(seed: u64, limit: Limit, clients: u32, back: Back) -> Herd {
    let rule: Rule = limit.policy(1).expect("a legal limit").rule(0.0);
    let rng = &mut stream(seed, Purpose::Others);
    let mut queue = Queue::new();
    for client in 0..clients {
        queue.put(below(rng, 1000), (client, false));
    }
    let mut state: Option<State> = None;
    let (mut asked, mut done) = (0_u64, 0);
    let (mut in_ms, mut in_100_ms) = (Peak::default(), Peak::default());
    while let Some((at, (client, again))) = queue.take() {
        asked += 1;
        if again {
            in_ms.count(at);
            in_100_ms.count(at / 100);
        }
        let now = EPOCH_MS + at as f64;
        let outcome = rule.take(state, now, 1.0, back == Back::Reserve);
        state = outcome.write.or(state);
        let time = |ms: f64| (ms - EPOCH_MS) as u64;
        match (outcome.decision.ok, outcome.decision.retry_at) {
            (true, runs_at) => done = done.max(runs_at.map_or(at, time)),
            (false, Some(retry_at)) => queue.put(time(come_back(back, retry_at, now, client)), (client, true)),
            (false, None) => {}
        }
    }
    Herd {
        limit,
        clients,
        back,
        peak_1_ms: in_ms.most,
        peak_100_ms: in_100_ms.most,
        asked_per_grant: rounded(asked as f64 / f64::from(clients)),
        done_s: done as f64 / 1000.0,
        least_s: rounded((f64::from(clients) - limit.capacity).max(0.0) * limit.period / limit.rate / 1000.0),
    }
}

fn come_back(back: Back, retry_at: f64, now: f64, client: u32) -> f64 {
    let Back::Jitter(fraction) = back else { return retry_at };
    jitter(retry_at, retry_at - now, &format!("client {client}"), fraction)
}

/// The rule of `npm/tidegate/src/jitter.ts`, for keys of up to 300 characters: the core's own hash of an identity.
#[must_use]
pub fn jitter(retry_at: f64, retry_after: f64, key: &str, fraction: f64) -> f64 {
    const SPREAD: f64 = 4_294_967_296.0;
    let start = |key: String| default_start("jitter", Some(key.as_bytes()), SPREAD);
    let hash = start(format!("{} {key}", start(format!("{retry_at}"))));
    retry_at + (hash / SPREAD * retry_after.max(0.0) * fraction).floor()
}

/// The most at one time, of times that only go on.
#[derive(Default)]
struct Peak {
    at: u64,
    now: u32,
    most: u32,
}

impl Peak {
    fn count(&mut self, at: u64) {
        self.now = if at == self.at { self.now + 1 } else { 1 };
        self.at = at;
        self.most = self.most.max(self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `jitter` of the package says of the same.
    #[test]
    fn it_jitters_as_the_package_does() {
        let after = |client: &str| jitter(1_700_000_000_100.0, 60_000.0, client, 1.0) - 1_700_000_000_100.0;
        let told = ["client 0", "client 1", "client 4", "client 19"].map(after);
        assert_eq!(told, [36_268.0, 11_702.0, 1_139.0, 46_757.0]);
    }
}
