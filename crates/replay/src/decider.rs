//! Decides requests under the limits, as the memory store of a server would.

use crate::fields::Record;
use crate::heavy::Heavy;
use crate::subject::Subject;
use tidegate_core::{Decision, Policy};
use tidegate_table::{Call, Limit, Member, Op, Table};

/// One limit of a table, and where a record has its count and key.
struct Meter {
    limit: Limit,
    number: usize,
    key: Option<usize>,
    reserve: bool,
    /// Whether it denies no request.
    shadow: bool,
}

impl Meter {
    fn new(table: &Table, subject: &Subject, policy: Policy) -> Meter {
        let limit = Limit::new(table.secret(), &subject.name, policy);
        let shadow = subject.scope.shadow;
        Meter { limit, number: subject.number, key: subject.scope.key, reserve: subject.reserve, shadow }
    }

    fn key<'a>(&self, record: &'a Record) -> Option<&'a [u8]> {
        record.key(self.key)
    }

    fn applies_to(&self, record: &Record) -> bool {
        !record.counts[self.number].is_nan()
    }

    fn member(&self, record: &Record) -> Member {
        Member::new(&self.limit, self.key(record), record.counts[self.number], self.reserve)
    }

    fn call(&self, record: &Record, op: Op) -> Call {
        Call { op, count: record.counts[self.number], reserve: self.reserve, ..Call::at(record.now) }
    }
}

/// The decision on one request.
pub(crate) struct Decided<'a> {
    pub(crate) ok: bool,
    /// Of a denial: when the same request would be granted, ms since the Unix epoch; `None` if it never would.
    pub(crate) retry_at: Option<f64>,
    /// The decision of each limit that applies, with the limit's number; also of one in shadow mode.
    pub(crate) decisions: &'a [(usize, Decision)],
}

/// The limits' states.
pub(crate) struct Decider {
    table: Table,
    meters: Vec<Meter>,
    decisions: Vec<(usize, Decision)>,
}

/// Settings of a replay's tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    /// Most keys held for each limit.
    pub(crate) max_keys: u32,
    /// Random bits from the host, so that a log cannot cause collisions.
    pub(crate) secret: [u64; 2],
}

impl Tables {
    fn table(&self, limits: usize) -> Table {
        Table::new((self.max_keys as usize).saturating_mul(limits), self.secret)
    }
}

impl Decider {
    pub(crate) fn new(subjects: &[Subject], tables: Tables) -> Decider {
        let table = tables.table(subjects.len());
        let meters = subjects.iter().map(|subject| Meter::new(&table, subject, subject.policy)).collect();
        Decider { table, meters, decisions: Vec::new() }
    }

    /// One limit under another policy, which it enforces.
    pub(crate) fn alone(subject: &Subject, policy: Policy, tables: Tables) -> Decider {
        let table = tables.table(1);
        let meters = vec![Meter { shadow: false, ..Meter::new(&table, subject, policy) }];
        Decider { table, meters, decisions: Vec::new() }
    }

    pub(crate) fn take(&mut self, record: &Record) -> Decided<'_> {
        let Decider { table, meters, decisions } = self;
        decisions.clear();
        let applied = || meters.iter().filter(|meter| !meter.shadow && meter.applies_to(record));
        let mut some = applied();
        let (ok, retry_at) = match (some.next(), some.next()) {
            (None, _) => (true, None),
            (Some(meter), None) => {
                let decision = table.decide(&meter.limit, meter.key(record), meter.call(record, Op::Take));
                decisions.push((meter.number, decision));
                (decision.ok, decision.retry_at)
            }
            _ => {
                let members: Vec<Member> = applied().map(|meter| meter.member(record)).collect();
                let all = table.take_all(&members, record.now, true);
                decisions.extend(applied().map(|meter| meter.number).zip(all.decisions));
                (all.ok, all.retry_at)
            }
        };
        // As on a server: after the others, each by itself, and without taking tokens of a request that is denied.
        let op = if ok { Op::Take } else { Op::Check };
        for meter in meters.iter().filter(|meter| meter.shadow && meter.applies_to(record)) {
            let decision = table.decide(&meter.limit, meter.key(record), meter.call(record, op));
            decisions.push((meter.number, decision));
        }
        Decided { ok, retry_at, decisions }
    }

    /// States that were evicted before they were full.
    pub(crate) fn evicted(&self) -> u64 {
        self.table.stats().evicted
    }
}

/// The deepest debt of the keys of each limit if no request were denied.
///
/// A bucket that holds nothing and is only charged owes exactly what a full one lacks, so the deepest debt is the
/// capacity needed. A state without debt is full, and is dropped.
pub(crate) struct Debts {
    table: Table,
    meters: Vec<Meter>,
    /// Per limit, the keys that may have the deepest debt, and that debt.
    pub(crate) heavy: Vec<Heavy>,
}

impl Debts {
    pub(crate) fn new(subjects: &[Subject], tables: Tables) -> Debts {
        let table = tables.table(subjects.len());
        let meter = |subject: &Subject| {
            // A capacity of 0 is legal in every policy.
            let empty = subject.with(subject.policy.rate(), 0.0);
            Meter::new(&table, subject, empty.unwrap_or(subject.policy))
        };
        let meters = subjects.iter().map(meter).collect();
        Debts { table, meters, heavy: subjects.iter().map(|_| Heavy::default()).collect() }
    }

    pub(crate) fn charge(&mut self, record: &Record) {
        for meter in self.meters.iter().filter(|meter| meter.applies_to(record)) {
            let call = Call { op: Op::Charge, count: record.counts[meter.number], ..Call::at(record.now) };
            let key = meter.key(record);
            let decision = self.table.decide(&meter.limit, key, call);
            self.heavy[meter.number].add(key, -decision.value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::Slots;
    use crate::subject::subjects;

    const TABLES: Tables = Tables { max_keys: 100, secret: [1, 2] };

    fn wide_and_narrow() -> Vec<Subject> {
        let options = serde_json::json!({ "limits": ["name=wide rate=9 period=1h", "name=narrow rate=1 period=1h"] });
        let options = serde_json::from_value(options).expect("options");
        subjects(&options, &mut Slots::new(None)).expect("limits").0
    }

    fn record(counts: [f64; 2]) -> Record {
        Record { now: 1.7e12, counts: counts.to_vec(), keys: vec![b"10.0.0.1".to_vec()] }
    }

    #[test]
    fn only_the_limits_that_apply_decide_on_a_request() {
        let mut decider = Decider::new(&wide_and_narrow(), TABLES);
        let none = f64::NAN;
        let cases = [
            (record([1.0, none]), true, vec![(0, true)]),
            (record([none, 1.0]), true, vec![(1, true)]),
            (record([1.0, 1.0]), false, vec![(0, true), (1, false)]),
            (record([none, 1.0]), false, vec![(1, false)]),
            (record([8.0, none]), true, vec![(0, true)]),
            (record([none, none]), true, vec![]),
        ];
        for (i, (record, ok, expected)) in cases.into_iter().enumerate() {
            let decided = decider.take(&record);
            let by: Vec<_> = decided.decisions.iter().map(|(number, decision)| (*number, decision.ok)).collect();
            assert_eq!((decided.ok, by), (ok, expected), "request {i}");
        }
    }

    #[test]
    fn the_deepest_debt_is_what_all_requests_of_a_key_take() {
        let mut debts = Debts::new(&wide_and_narrow(), TABLES);
        for counts in [[3.0, f64::NAN], [4.0, 2.0]] {
            debts.charge(&record(counts));
        }
        assert_eq!([debts.heavy[0].deepest, debts.heavy[1].deepest], [7.0, 2.0]);
    }
}
