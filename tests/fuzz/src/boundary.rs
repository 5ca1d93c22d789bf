use crate::draw::Draw;
use std::sync::{Mutex, PoisonError};
use tidegate_core::{Kind, MAX_KEY_BYTES, MAX_NOW_MS, check_now};
use tidegate_oracle::key::bytes;
use tidegate_table::{Call, Limit, Table};
use tidegate_wasm as engine;
use tidegate_wire::{self as wire, BROKEN, INPUT_ERROR, NO_KEY, OK};

/// The operation that takes nothing.
const CHECK: u32 = 1;

/// JavaScript has one engine per thread; this process has one engine, so targets take turns.
static ALONE: Mutex<()> = Mutex::new(());

/// Calls the raw exports as an unchecked host would: with any keys, doubles and numbers of limits and tables. They
/// return finite numbers, or the field that is wrong, and decide as the table itself does.
pub fn boundary(data: &[u8]) {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut draw = Draw::new(data);
    let secret = [draw.bits(), draw.bits()];
    write_key(&secret.map(u64::to_le_bytes).concat());
    let max_keys = 1 + u32::from(draw.below(50));
    let mut host =
        Host { table: engine::table_new(max_keys), twin: Table::new(max_keys as usize, secret), limits: vec![] };
    for _ in 0..60 {
        if draw.is_empty() {
            break;
        }
        host.step(&mut draw);
    }
    for (number, _) in &host.limits {
        engine::limit_drop(*number);
    }
    engine::table_drop(host.table);
    assert_eq!(engine::stats(host.table), BROKEN);
    engine::all_clear();
}

/// Writes a key as a host does: through a pointer into the memory of the engine.
fn write_key(key: &[u8]) -> u32 {
    let key = &key[..key.len().min(MAX_KEY_BYTES)];
    // Safety: there is room for the longest key, and no other thread calls the engine (see `ALONE`).
    unsafe { std::ptr::copy_nonoverlapping(key.as_ptr(), engine::key_at() as *mut u8, key.len()) };
    key.len() as u32
}

fn numbers() -> [f64; wire::NUMBERS] {
    // Safety: as above; the place is that many doubles.
    unsafe { *(engine::numbers_at() as *const [f64; wire::NUMBERS]) }
}

fn fails(status: u32) -> bool {
    status & (INPUT_ERROR | BROKEN) != 0
}

/// Every number of a decision is finite, except an absent time.
fn sound(status: u32) {
    if !fails(status) {
        let [value, ts, remaining, retry_at, reset_at, ..] = numbers();
        assert!([value, ts, remaining, reset_at].iter().all(|x| x.is_finite()), "{:?}", numbers());
        assert!(retry_at.is_nan() || (0.0..=MAX_NOW_MS).contains(&retry_at), "{retry_at}");
        assert!(remaining >= 0.0 && (status & OK == 0 || reset_at <= MAX_NOW_MS));
    }
}

fn write_numbers(numbers: [f64; wire::NUMBERS]) {
    // Safety: as above.
    unsafe { *(engine::numbers_at() as *mut [f64; wire::NUMBERS]) = numbers }
}

/// Writes a limit's policy with this start, and returns its kind; without a limit, numbers that no policy has.
fn write_policy(limit: Option<&Limit>, start: f64) -> u32 {
    let Some(policy) = limit.map(Limit::policy) else {
        write_numbers([0.0; wire::NUMBERS]);
        return 0;
    };
    let most = if policy.max_reserved().is_finite() { policy.max_reserved() } else { f64::NAN };
    let shards = f64::from(policy.shards());
    write_numbers([policy.rate(), policy.period(), policy.capacity(), most, start, shards, 0.0, 0.0]);
    Kind::ALL.iter().position(|kind| *kind == policy.kind()).unwrap_or(0) as u32
}

struct Host {
    table: u32,
    twin: Table,
    limits: Vec<(u32, Limit)>,
}

impl Host {
    fn step(&mut self, draw: &mut Draw<'_>) {
        let key = draw.yes().then(|| bytes(&draw.units(40)));
        let now = if draw.yes() { 1e12 + f64::from(draw.below(60_000)) } else { draw.double() };
        let (count, flags) = (draw.double(), u32::from(draw.byte()));
        match draw.byte() % 12 {
            0 | 1 => self.make(draw),
            2..=5 => self.decide(draw, key.as_deref(), now, count, flags),
            6 => self.value(draw, key.as_deref(), now),
            7 => self.all(draw, key.as_deref(), now, count),
            8 => self.pool(draw, now, count, flags),
            9 => self.pure(draw, now, count, flags),
            10 => self.forget(draw, key.as_deref()),
            _ => self.dump(),
        }
    }

    /// Usually an existing limit; sometimes a number that no limit has.
    fn limit(&self, draw: &mut Draw<'_>) -> (u32, Option<Limit>) {
        let at = usize::from(draw.byte());
        if self.limits.is_empty() || at > 250 {
            return (1_000_000 + at as u32, None);
        }
        let (number, limit) = &self.limits[at % self.limits.len()];
        (*number, Some(limit.clone()))
    }

    fn make(&mut self, draw: &mut Draw<'_>) {
        let name = draw.name();
        let kind = u32::from(draw.byte() & 1);
        let policy: [f64; wire::NUMBERS] = match draw.yes() {
            true => {
                let limit = draw.limit();
                let shards = f64::from(1 + draw.below(6));
                let most = limit.max_reserved.unwrap_or(7.0);
                [limit.rate, limit.period, limit.most(), most, limit.start.unwrap_or(0.0), shards, 0.0, 0.0]
            }
            false => std::array::from_fn(|place| if place < wire::POLICY.len() { draw.double() } else { 0.0 }),
        };
        let [.., shards, _, _] = policy;
        // More shards and limits are legal, but too slow for a fuzz target.
        if shards > 300.0 || self.limits.len() > 8 {
            return;
        }
        let length = write_key(name.as_bytes());
        write_numbers(policy);
        let made = engine::limit_new(self.table, length, kind);
        match wire::policy(kind, &policy) {
            Ok(policy) => {
                assert!(made >= 0, "{policy:?} is refused: {made}");
                self.limits.push((made as u32, Limit::new(self.twin.secret(), &name, policy)));
            }
            Err(status) => assert_eq!(made, -(status as i32)),
        }
    }

    fn decide(&mut self, draw: &mut Draw<'_>, key: Option<&[u8]>, now: f64, count: f64, flags: u32) {
        let (number, limit) = self.limit(draw);
        let length = key.map_or(NO_KEY, write_key);
        let status = engine::decide(self.table, number, length, now, count, flags);
        sound(status);
        match (wire::call(now, count, flags), limit) {
            (Err(refused), _) => assert_eq!(status, refused),
            (Ok(_), None) => assert_eq!(status, BROKEN),
            (Ok(call), Some(limit)) => {
                let answered = numbers();
                let mut expected = [0.0; wire::NUMBERS];
                let decision = self.twin.decide(&limit, key, call);
                assert_eq!(status, wire::write_decision(&decision, &mut expected));
                assert_eq!(answered.map(f64::to_bits)[..5], expected.map(f64::to_bits)[..5]);
                // Again, as a host that reuses the last key.
                assert_eq!(decision_again(self.table, number, call), {
                    let decision = self.twin.decide(&limit, key, call);
                    wire::write_decision(&decision, &mut expected)
                });
            }
        }
    }

    fn value(&mut self, draw: &mut Draw<'_>, key: Option<&[u8]>, now: f64) {
        let (number, limit) = self.limit(draw);
        let status = engine::decide(self.table, number, key.map_or(NO_KEY, write_key), now, 0.0, CHECK);
        if let (false, Some(limit)) = (fails(status), limit) {
            let state = self.twin.value(&limit, key, check_now(now).expect("a time that was taken"));
            assert_eq!(numbers()[..2], [state.value(), state.ts()]);
        } else {
            assert!(fails(status));
        }
    }

    fn all(&mut self, draw: &mut Draw<'_>, key: Option<&[u8]>, now: f64, count: f64) {
        let mut staged = 0;
        for _ in 0..1 + draw.below(4) {
            let (number, _) = self.limit(draw);
            let status = engine::all_stage(number, key.map_or(NO_KEY, write_key), count, u32::from(draw.byte()));
            staged += u32::from(!fails(status));
        }
        let status = engine::all_commit(self.table, now, 0);
        let at = numbers()[1] as usize as *const [f64; wire::NUMBERS];
        for i in 0..if fails(status) { 0 } else { staged as usize } {
            // Safety: `all_commit` wrote that many decisions there.
            let decision = unsafe { *at.add(i) };
            assert!(decision[0].is_finite() && decision[4].is_finite(), "{decision:?}");
        }
        // Nothing was taken.
        self.dump();
    }

    fn pool(&mut self, draw: &mut Draw<'_>, now: f64, count: f64, flags: u32) {
        let (_, limit) = self.limit(draw);
        let states = limit.as_ref().map_or(2, |limit| limit.policy().shards());
        let at = engine::pool_at(states) as *mut f64;
        for i in 0..2 * states as usize {
            let x = if draw.yes() { draw.double() } else { 1e12 };
            // The sum of larger values may overflow; no store returns such states.
            let x = if x.abs() > 1e300 { f64::NAN } else { x };
            // Safety: `pool_at` made room for two numbers per shard.
            unsafe { *at.add(i) = x };
        }
        let kind = write_policy(limit.as_ref(), f64::from(draw.below(1000)));
        sound(engine::pool_decide(kind, states, now, count, flags));
    }

    fn pure(&mut self, draw: &mut Draw<'_>, now: f64, count: f64, flags: u32) {
        let (number, limit) = self.limit(draw);
        let (start, value, ts, part) = (draw.double(), draw.double(), draw.double(), u32::from(draw.byte() & 1));
        // With an illegal start, the only promise is that the call returns.
        let legal = start.abs() <= MAX_NOW_MS && start.floor() == start;
        let spend = |leased| engine::lease_spend(write_policy(limit.as_ref(), start), value, ts, leased, now, count);
        let kind = write_policy(limit.as_ref(), start);
        let statuses = [engine::evaluate(kind, part, value, ts, now, count, flags), spend(f64::from(draw.below(100)))];
        if legal {
            statuses
                .into_iter()
                .for_each(|status| assert!(fails(status) || numbers()[..2].iter().all(|x| x.is_finite())));
        }
        let own = engine::start(number, 0);
        assert!(own.is_finite() || own == tidegate_core::FIRST_REQUEST);
        let _ = spend(draw.double());
    }

    fn forget(&mut self, draw: &mut Draw<'_>, key: Option<&[u8]>) {
        let (number, limit) = self.limit(draw);
        let status = engine::reset(self.table, number, key.map_or(NO_KEY, write_key));
        assert_eq!(status == 0, limit.is_some());
        if let Some(limit) = limit {
            self.twin.reset(&limit, key);
        }
    }

    fn dump(&self) {
        assert_eq!(engine::dump(self.table), 0);
        let [at, length, ..] = numbers();
        // Safety: the engine returned this address and length, valid until the next call of `room`.
        let dump = unsafe { std::slice::from_raw_parts(at as usize as *const u8, length as usize) };
        assert_eq!(dump, self.twin.dump());
        let restored = engine::restore(1000);
        assert!(restored >= 0, "its own dump");
        engine::table_drop(restored as u32);
    }
}

fn decision_again(table: u32, limit: u32, call: Call) -> u32 {
    let op = call.op as u32 | if call.reserve { wire::RESERVE } else { 0 };
    engine::decide(table, limit, u32::MAX - 1, call.now, call.count, op)
}
