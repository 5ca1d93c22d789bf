//! Whoever counts: sees all, and tells nobody before the end.

use hdrhistogram::Histogram;
use tidegate_core::{Rule, State};

use crate::demand::Call;
use crate::io::Verdict;
use crate::meter::{SpanMeter, SumMeter};
use crate::scenario::{Limit, Scenario};
use crate::store::{Honesty, Op, Reply, Step};
use crate::time::{Us, shown_ms};

/// Requests and tokens on the hottest key at one node.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hot {
    /// Tokens that were asked for.
    pub asked: f64,
    /// Tokens that were granted.
    pub granted: f64,
    /// Tokens that one bucket in one place would have granted.
    pub ideal: f64,
}

/// What is counted on each key.
#[derive(Clone, Copy, Debug, Default)]
struct OfKey {
    /// Of steps at the store, less what was brought back.
    taken: SpanMeter,
    /// Of grants, when callers hear of them.
    heard: SpanMeter,
    /// Of grants, since the beginning.
    granted: SumMeter,
    /// One bucket in one place, which hears of every request as it arrives.
    ideal: Option<State>,
}

/// All counts of a run.
#[derive(Debug)]
pub struct Tally {
    limit: Limit,
    rule: Rule,
    keys: Vec<OfKey>,
    /// Where there are several: the limit on each shard, and what each let by.
    shard: Limit,
    shards: Vec<SpanMeter>,
    /// On the hottest key, of each node.
    pub hot: Vec<Hot>,
    /// Round trips that reached the store, and steps in them.
    pub trips: u64,
    /// Atomic steps.
    pub steps: u64,
    /// Calls that arrived.
    pub asked: u64,
    /// Calls by how they ended.
    pub granted: u64,
    /// Denied by what the store holds.
    pub denied: u64,
    /// The store did not answer.
    pub failed: u64,
    /// Their process was killed.
    pub cut_off: u64,
    /// Tokens that all calls together were granted, and would have been by one bucket in one place.
    pub tokens: f64,
    /// See `tokens`.
    pub ideal: f64,
    /// Tokens that left the store, and came back.
    pub taken: f64,
    /// See `taken`.
    pub given: f64,
    /// Tokens that nobody has: in killed processes, in lost messages, in hand for too long.
    pub stranded: f64,
    /// The most tokens beyond the limit: of steps over any span, and of grants since the beginning; of each shard by itself,
    /// where there are several.
    pub over: f64,
    /// The same of all shards together.
    pub over_together: f64,
    /// The most tokens beyond `capacity + rate x time` that callers heard of in any span.
    pub burst: f64,
    /// Denials with a time to come back, by whether it was right.
    pub exact: u64,
    /// Denied still, if nobody else took any more.
    pub early: u64,
    /// Granted before.
    pub late: u64,
    /// Microseconds that granted and denied calls waited.
    pub wait: Histogram<u64>,
}

impl Tally {
    /// Nothing was counted yet.
    #[must_use]
    pub fn new(scenario: &Scenario, rule: Rule) -> Tally {
        let shards = f64::from(scenario.mode.shards());
        Tally {
            limit: scenario.limit,
            rule,
            keys: vec![OfKey::default(); scenario.keys as usize],
            shard: Limit {
                rate: scenario.limit.rate / shards,
                capacity: scenario.limit.capacity / shards,
                ..scenario.limit
            },
            shards: vec![SpanMeter::default(); if shards > 1.0 { scenario.keys as usize * shards as usize } else { 0 }],
            hot: vec![Hot::default(); scenario.nodes as usize],
            trips: 0,
            steps: 0,
            asked: 0,
            granted: 0,
            denied: 0,
            failed: 0,
            cut_off: 0,
            tokens: 0.0,
            ideal: 0.0,
            taken: 0.0,
            given: 0.0,
            stranded: 0.0,
            over: f64::NEG_INFINITY,
            over_together: f64::NEG_INFINITY,
            burst: f64::NEG_INFINITY,
            exact: 0,
            early: 0,
            late: 0,
            wait: Histogram::new(3).expect("three digits are few"),
        }
    }

    /// A call arrives at a node that runs.
    pub fn arrived(&mut self, call: Call, now: Us) {
        self.asked += 1;
        let of_key = &mut self.keys[call.key as usize];
        let outcome = self.rule.take(of_key.ideal, shown_ms(now, 0).floor(), call.count, false);
        of_key.ideal = outcome.write.or(of_key.ideal);
        let ideal = if outcome.decision.ok { call.count } else { 0.0 };
        self.ideal += ideal;
        if call.key == 0 {
            let hot = &mut self.hot[call.node as usize];
            hot.asked += call.count;
            hot.ideal += ideal;
        }
    }

    /// The store did a step.
    pub fn stepped(&mut self, step: Step, reply: &Reply) {
        self.steps += 1;
        // What writes nothing leaves no trace of the clock: only what was taken or brought back counts, at its time.
        if reply.taken > 0.0 {
            self.taken += reply.taken;
            let over = self.keys[step.key as usize].taken.count(&self.limit, reply.taken, reply.now);
            self.exceeded(over);
            if let Some(place) = self.place(step) {
                self.over = self.over.max(self.shards[place].count(&self.shard, reply.taken, reply.now));
            }
        } else if step.op == Op::Give {
            self.given += step.count;
            self.keys[step.key as usize].taken.uncount(&self.limit, step.count, reply.now);
            if let Some(place) = self.place(step) {
                self.shards[place].uncount(&self.shard, step.count, reply.now);
            }
        }
    }

    /// Where a shard's meter is, where there are several.
    fn place(&self, step: Step) -> Option<usize> {
        let shards = self.shards.len() / self.keys.len();
        (shards > 0).then(|| step.key as usize * shards + step.shard as usize)
    }

    /// The limit as a whole let by so many tokens too many.
    fn exceeded(&mut self, tokens: f64) {
        let over = if self.shards.is_empty() { &mut self.over } else { &mut self.over_together };
        *over = over.max(tokens);
    }

    /// A call ended.
    pub fn settled(&mut self, call: Call, verdict: Verdict, honesty: Option<Honesty>, now: Us, latest: f64) {
        match verdict {
            Verdict::Granted => self.grant(call, latest),
            Verdict::Denied { .. } => self.denied += 1,
            Verdict::Failed => self.failed += 1,
        }
        match honesty {
            Some(Honesty::Exact) => self.exact += 1,
            Some(Honesty::Early) => self.early += 1,
            Some(Honesty::Late) => self.late += 1,
            None => {}
        }
        if !matches!(verdict, Verdict::Failed) {
            self.wait.record((now - call.at).max(1)).expect("it grows as needed");
        }
    }

    fn grant(&mut self, call: Call, latest: f64) {
        self.granted += 1;
        self.tokens += call.count;
        let of_key = &mut self.keys[call.key as usize];
        let since_then = of_key.granted.count(&self.limit, call.count, shown_ms(0, 0), latest);
        self.burst = self.burst.max(of_key.heard.count(&self.limit, call.count, latest));
        self.exceeded(since_then);
        if call.key == 0 {
            self.hot[call.node as usize].granted += call.count;
        }
    }

    /// Tokens that left the store, and that nobody has any more.
    pub fn strand(&mut self, tokens: f64) {
        self.stranded += tokens;
    }
}
