use crate::draw::{Draw, policy};
use std::collections::HashMap;
use tidegate_core::State;
use tidegate_table::{Call, Limit, Op, SharedTable, Table, checksum};

/// A table with room, own or shared, decides as a map that keeps every state. One without room holds at most `max_keys`
/// states and counts each that it drops; the states that it holds equal those of the map, and dropped ones are full.
pub fn table(data: &[u8]) {
    let mut draw = Draw::new(data);
    let secret = [draw.bits(), draw.bits()];
    let max_keys = 1 + usize::from(draw.below(40));
    let (mut wide, shared, mut narrow) =
        (Table::new(10_000, secret), SharedTable::new(10_000, secret), Table::new(max_keys, secret));
    let limits: [tidegate_oracle::Limit; 2] = std::array::from_fn(|_| draw.limit());
    let made = [("one", limits[0]), ("two", limits[1])].map(|(name, limit)| Limit::new(secret, name, policy(&limit)));
    let mut model: HashMap<(usize, u8), State> = HashMap::new();
    let mut now: f64 = 1e12;
    for _ in 0..300 {
        if draw.is_empty() {
            break;
        }
        let (which, key) = (usize::from(draw.yes()), draw.byte() % 100);
        // The clock never steps back here, so a key dropped as full stays full.
        now = (now + draw.step(&limits[which]).max(0.0).floor()).min(1e15);
        let (limit, at) = (&made[which], Some([key]));
        let (key_bytes, bucket) = (at.as_ref().map(<[u8; 1]>::as_slice), limit.policy().bucket(0.0));
        let stored = model.get(&(which, key)).copied();
        assert_eq!(wide.value(limit, key_bytes, now), bucket.refill(stored, now));
        assert_eq!(shared.value(limit, key_bytes, now), bucket.refill(stored, now));
        let kept = narrow.value(limit, key_bytes, now);
        assert!(kept == bucket.refill(stored, now) || kept == bucket.refill(None, now) || narrow.stats().evicted > 0);
        if draw.byte() < 8 {
            for_all(&mut wide, &shared, &mut narrow, limit, key_bytes);
            model.remove(&(which, key));
            continue;
        }
        let op = [Op::Take, Op::Take, Op::Take, Op::Check, Op::Give, Op::Charge][usize::from(draw.byte() % 6)];
        let count = (draw.share() * bucket.capacity().max(1.0)).min(1_099_511_627_776.0);
        let call = Call { op, now, count, reserve: draw.yes() };
        let outcome = call.on(&bucket, stored);
        assert_eq!(wide.decide(limit, key_bytes, call), outcome.decision);
        assert_eq!(shared.decide(limit, key_bytes, call), outcome.decision);
        model.extend(outcome.write.map(|write| ((which, key), write)));

        let before = narrow.stats();
        narrow.decide(limit, key_bytes, call);
        let after = narrow.stats();
        let gone = (after.evicted + after.expired - before.evicted - before.expired) as usize;
        assert!(after.keys <= max_keys && after.keys + gone - before.keys <= 1, "{before:?} {after:?}");
        assert!(after.evicted - before.evicted <= 1);
    }
    assert_eq!((wide.stats().evicted, shared.stats().evicted), (0, 0));
    let restored = Table::restore(10_000, &wide.dump()).expect("a dump does not restore");
    for (which, key) in model.keys() {
        let at = [*key];
        assert_eq!(restored.value(&made[*which], Some(&at), now), wide.value(&made[*which], Some(&at), now));
    }
    let (words, _) = data.as_chunks();
    let _ = Table::restore(10, &[words.as_flattened(), &checksum(words).to_le_bytes()].concat());
}

fn for_all(wide: &mut Table, shared: &SharedTable, narrow: &mut Table, limit: &Limit, key: Option<&[u8]>) {
    wide.reset(limit, key);
    shared.reset(limit, key);
    narrow.reset(limit, key);
}
