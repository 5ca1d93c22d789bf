//! A call on a limit whose shards live apart: the rule of `npm/tidegate/src/stores/spread.ts`, but that what a shard has no
//! room for when parts go back goes to no other.

use tidegate_core::{Pool, State, pick_two, take_better};

use crate::demand::Call;
use crate::io::{Io, Link, Verdict};
use crate::random::unit;
use crate::store::{Op, Reply, Step};

use super::About;

/// How often what others took first is looked for anew.
const ROUNDS: u32 = 16;

/// A call on its way through the shards.
#[derive(Debug)]
pub struct Spread {
    call: Call,
    next: Next,
    /// Parts that were taken: of which shard, and how many tokens.
    taken: Vec<(u32, f64)>,
    /// Parts that are asked for.
    parts: Vec<(u32, f64)>,
    left: f64,
    round: u32,
}

#[derive(Clone, Copy, Debug)]
enum Next {
    Look([u32; 2]),
    Take,
    Read,
    Drain,
    Bring,
}

impl Spread {
    /// Tokens that were taken for it so far.
    #[must_use]
    pub fn held(&self) -> f64 {
        self.taken.iter().map(|(_, part)| part).sum()
    }
}

pub(super) fn ask(link: &mut Link, io: &mut Io, call: Call) {
    let (a, b) = pick_two(unit(&mut io.pick), io.policy.shards());
    let spread =
        Spread { call, next: Next::Look([a, b]), taken: Vec::new(), parts: Vec::new(), left: call.count, round: 1 };
    send(link, io, Box::new(spread), Op::Check, &[(a, 0.0), (b, 0.0)]);
}

pub(super) fn ended(link: &mut Link, io: &mut Io, spread: Box<Spread>, replies: Option<&[Reply]>) {
    let Some(replies) = replies else { return fail(io, &spread) };
    match spread.next {
        Next::Look(pair) => looked(link, io, spread, pair, replies),
        Next::Take if replies.iter().all(|reply| reply.decision.ok) => io.settle(spread.call, Verdict::Granted),
        Next::Take => read(link, io, spread),
        Next::Read => seen(link, io, spread, replies),
        Next::Drain => drained(link, io, spread, replies),
        Next::Bring if spread.round > ROUNDS => {
            let retry_at = replies.first().map(|reply| reply.now + 1.0);
            io.settle(spread.call, Verdict::Denied { retry_at, hand: 0.0 });
        }
        Next::Bring => read(link, io, spread),
    }
}

fn looked(link: &mut Link, io: &mut Io, mut spread: Box<Spread>, pair: [u32; 2], replies: &[Reply]) {
    let [one, two] = replies else { return fail(io, &spread) };
    let now = one.now.max(two.now);
    let (which, outcome) = take_better(&io.policy, 0.0, [one.before, two.before], now, spread.call.count);
    if !outcome.decision.ok {
        return read(link, io, spread);
    }
    spread.next = Next::Take;
    let count = spread.call.count;
    send(link, io, spread, Op::Take, &[(pair[which], count)]);
}

/// Looks at all shards.
fn read(link: &mut Link, io: &mut Io, mut spread: Box<Spread>) {
    spread.next = Next::Read;
    let all: Vec<_> = (0..io.policy.shards()).map(|shard| (shard, 0.0)).collect();
    send(link, io, spread, Op::Check, &all);
}

fn seen(link: &mut Link, io: &mut Io, mut spread: Box<Spread>, replies: &[Reply]) {
    let now = replies.iter().fold(0.0, |latest: f64, reply| latest.max(reply.now));
    let mut states: Vec<Option<State>> = replies.iter().map(|reply| reply.before).collect();
    let decision = Pool::new(&io.policy, 0.0, &mut states, now).take(spread.left, false);
    if !decision.ok && spread.taken.is_empty() {
        let verdict = Verdict::Denied { retry_at: decision.retry_at, hand: 0.0 };
        return io.settle(spread.call, verdict);
    }
    if !decision.ok || spread.round > ROUNDS {
        spread.next = Next::Bring;
        spread.left = spread.call.count;
        spread.round += 1;
        let back = std::mem::take(&mut spread.taken);
        return send(link, io, spread, Op::Give, &back);
    }
    let values: Vec<_> = replies.iter().map(|reply| reply.decision.value).collect();
    spread.next = Next::Drain;
    spread.parts = drain(&values, spread.left);
    let parts = spread.parts.clone();
    send(link, io, spread, Op::Take, &parts);
}

fn drained(link: &mut Link, io: &mut Io, mut spread: Box<Spread>, replies: &[Reply]) {
    for (part, reply) in std::mem::take(&mut spread.parts).into_iter().zip(replies) {
        if reply.decision.ok {
            spread.left -= part.1;
            spread.taken.push(part);
        }
    }
    let hair = f64::from(io.policy.shards()) * f64::EPSILON * io.policy.capacity().max(spread.call.count);
    if spread.left <= hair {
        return io.settle(spread.call, Verdict::Granted);
    }
    spread.round += 1;
    read(link, io, spread);
}

fn send(link: &mut Link, io: &mut Io, spread: Box<Spread>, op: Op, parts: &[(u32, f64)]) {
    let key = spread.call.key;
    let steps = parts.iter().map(|&(shard, count)| Step { op, key, shard, count }).collect();
    if let Err((steps, About::Spread(spread))) = io.send(link, steps, About::Spread(spread)) {
        io.strand_gives(&steps);
        fail(io, &spread);
    }
}

/// What was taken stays taken until it refills.
fn fail(io: &mut Io, spread: &Spread) {
    io.tally.strand(spread.held());
    io.settle(spread.call, Verdict::Failed);
}

/// What each shard gives so that together they give `count`: the fullest first, down to one level, none below 0.
fn drain(values: &[f64], count: f64) -> Vec<(u32, f64)> {
    let mut order: Vec<_> = (0_u32..).zip(values.iter().copied()).collect();
    order.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let (mut level, mut sum) = (0.0, 0.0);
    for (i, (_, value)) in order.iter().enumerate() {
        sum += value;
        level = (sum - count) / (i as f64 + 1.0);
        if order.get(i + 1).is_none_or(|(_, next)| level >= *next) {
            break;
        }
    }
    let part = |(shard, value): (u32, f64)| (shard, (value - level).min(value));
    order.into_iter().map(part).filter(|(_, tokens)| *tokens > 0.0).collect()
}

#[cfg(test)]
mod tests {
    use super::drain;

    #[test]
    fn the_fullest_give_first_down_to_one_level() {
        assert_eq!(drain(&[1.0, 5.0, 3.0], 3.0), [(1, 2.5), (2, 0.5)]);
        assert_eq!(drain(&[0.5, 0.5], 1.0), [(0, 0.5), (1, 0.5)]);
    }
}
