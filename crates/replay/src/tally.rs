//! The counts of a replay.

use crate::decider::{Debts, Decider, Tables};
use crate::error::Error;
use crate::fields::Record;
use crate::report::{PeakReport, Waits, WorstKey};
use crate::series::{Peak, Series};
use crate::subject::Subject;
use crate::top::Top;
use hdrhistogram::Histogram;
use tidegate_core::MAX_NOW_MS;

/// Keys counted per limit, and keys shown.
const COUNTED: usize = 16_384;
const WORST: usize = 10;
const SECOND: f64 = 1000.0;
const MINUTE: f64 = 60_000.0;

pub(crate) struct Limited {
    key: Option<usize>,
    /// Whether it applied to a request.
    pub(crate) applied: bool,
    pub(crate) denied: u64,
    keys: Top,
}

impl Limited {
    pub(crate) fn keys_denied(&self) -> Option<u64> {
        self.key.and_then(|_| self.keys.keys())
    }

    pub(crate) fn worst(&self) -> Vec<WorstKey> {
        self.keys.leaders(WORST)
    }
}

pub(crate) struct Tally {
    decider: Decider,
    pub(crate) debts: Debts,
    pub(crate) limits: Vec<Limited>,
    pub(crate) granted: u64,
    pub(crate) denied: u64,
    pub(crate) never: u64,
    pub(crate) tokens: f64,
    pub(crate) tokens_granted: f64,
    waits: Histogram<u64>,
    longest_wait: f64,
    pub(crate) series: Series,
    peaks: [Peak; 2],
}

impl Tally {
    pub(crate) fn new(subjects: &[Subject], tables: Tables) -> Result<Tally, Error> {
        // No wait is longer than up to the latest clock reading.
        let waits = Histogram::new_with_bounds(1, MAX_NOW_MS as u64, 3);
        let waits = waits.map_err(|error| Error(error.to_string()))?;
        let limited =
            |subject: &Subject| Limited { key: subject.scope.key, applied: false, denied: 0, keys: Top::new(COUNTED) };
        Ok(Tally {
            decider: Decider::new(subjects, tables),
            debts: Debts::new(subjects, tables),
            limits: subjects.iter().map(limited).collect(),
            granted: 0,
            denied: 0,
            never: 0,
            tokens: 0.0,
            tokens_granted: 0.0,
            waits,
            longest_wait: 0.0,
            series: Series::new(),
            peaks: [SECOND, MINUTE].map(Peak::new),
        })
    }

    pub(crate) fn add(&mut self, record: &Record) {
        let now = record.now;
        let count = record.demand();
        self.debts.charge(record);
        let decided = self.decider.take(record);
        let ok = decided.ok;
        self.tokens += count;
        self.series.add(now, count, ok);
        for peak in &mut self.peaks {
            peak.add(now, count);
        }
        for (number, decision) in decided.decisions {
            let limit = &mut self.limits[*number];
            limit.applied = true;
            if decision.ok {
                continue;
            }
            limit.denied += 1;
            if let Some(key) = record.key(limit.key) {
                limit.keys.add(key, decision.retry_at.map_or(0.0, |at| at - now));
            }
        }
        if ok {
            self.granted += 1;
            self.tokens_granted += count;
            return;
        }
        self.denied += 1;
        match decided.retry_at {
            Some(at) => {
                self.waits.saturating_record((at - now) as u64);
                self.longest_wait = self.longest_wait.max(at - now);
            }
            None => self.never += 1,
        }
    }

    pub(crate) fn forgotten(&self) -> u64 {
        self.decider.evicted()
    }

    pub(crate) fn waits(&self) -> Option<Waits> {
        // A bucket of the histogram ends behind its longest wait.
        let at = |percent| (self.waits.value_at_percentile(percent) as f64).min(self.longest_wait);
        (!self.waits.is_empty()).then(|| Waits { p50: at(50.0), p90: at(90.0), p99: at(99.0), max: self.longest_wait })
    }

    pub(crate) fn peaks(&self) -> Vec<PeakReport> {
        self.peaks.iter().map(|peak| peak.busiest.clone()).collect()
    }
}
