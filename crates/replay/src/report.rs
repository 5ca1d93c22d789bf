//! The report of a replay. Times are ms since the Unix epoch, durations ms, amounts tokens unless named requests.

use serde::Serialize;
use tsify::Tsify;

/// The report, as `--json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What was read.
    pub read: Read,
    /// Requests that all limits granted.
    pub granted: u64,
    /// Requests that a limit denied.
    pub denied: u64,
    /// Tokens requested.
    pub tokens: f64,
    /// Tokens granted.
    pub tokens_granted: f64,
    /// Each limit by itself.
    pub limits: Vec<LimitReport>,
    /// Waits until denied requests would be granted.
    pub waits: Option<Waits>,
    /// Denied requests that can never be granted: they need more than a limit ever holds.
    pub never: u64,
    /// States that were evicted before they were full: each key may have been granted too much.
    pub forgotten: u64,
    /// The busiest second and minute, of all keys together.
    pub peaks: Vec<PeakReport>,
    /// Notes on what the replay ignored.
    pub notes: Vec<String>,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct Read {
    /// Lines that are not empty, without lines of column names.
    pub lines: u64,
    /// Requests among them.
    pub requests: u64,
    /// Lines that are no request.
    pub bad: u64,
    /// The first of those.
    pub first_bad: Vec<BadLine>,
    /// Requests with a time before that of an earlier line.
    pub out_of_order: u64,
    /// The largest such difference, ms.
    pub farthest_back: f64,
    /// Whether all times are whole seconds: bursts then look up to one second denser than they were.
    pub whole_seconds: bool,
    /// The earliest time; absent without requests.
    pub from: f64,
    /// The latest.
    pub to: f64,
    /// Each file's format.
    pub formats: Vec<(String, String)>,
}

/// A line that is not a request.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct BadLine {
    /// Its file.
    pub file: String,
    /// Line number, from 1.
    pub line: u64,
    /// Beginning of the line.
    pub text: String,
    /// The mistake in it.
    pub why: String,
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct LimitReport {
    /// Its name.
    pub name: String,
    /// `"token bucket"` or `"fixed window"`.
    #[tsify(type = "\"token bucket\" | \"fixed window\"")]
    pub kind: &'static str,
    /// The fields that make its key.
    pub key: Vec<String>,
    /// Tokens per period.
    pub rate: f64,
    /// ms.
    pub period: f64,
    /// Most tokens that accumulate.
    pub capacity: f64,
    /// Whether it is in shadow mode, and denies no request: what follows is what it would have denied.
    pub shadow: bool,
    /// Requests that it denied; one that two limits deny counts in both.
    pub denied: u64,
    /// Number of different keys with a denial; absent if there were more than are counted.
    pub keys_denied: Option<u64>,
    /// Its worst hit keys.
    pub worst: Vec<WorstKey>,
    /// The least integer capacity with which this limit, by itself, would have denied nothing; absent if there is
    /// none.
    pub smallest_capacity: Option<f64>,
    /// Whether that is exact: no key was evicted during the search.
    pub smallest_capacity_exact: bool,
    /// A proposal, if `suggest` is set.
    pub suggestion: Option<Suggestion>,
}

/// A key, and the number of its denials.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct WorstKey {
    /// The key as the limiter uses it, or the value of a rule's only key; bytes that are not UTF-8 are replaced.
    pub key: String,
    /// Lower bound of the number of denials. Exact if it equals `atMost`.
    pub denied: u64,
    /// Upper bound of the number of denials.
    pub at_most: u64,
    /// The longest `retryAfter` of its denials, ms.
    pub longest_wait: f64,
}

/// The tightest policy within a budget of denials.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct Suggestion {
    /// The share of requests that may be denied.
    pub budget: f64,
    /// Tokens per period.
    pub rate: f64,
    /// ms.
    pub period: f64,
    /// Most tokens that accumulate.
    pub capacity: f64,
    /// Requests that it would have denied.
    pub denied: u64,
}

/// Waits of denied requests, ms: percentiles to three digits, and the longest.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct Waits {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// The busiest step.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct PeakReport {
    /// Its length, ms.
    pub width: f64,
    /// When it began.
    pub at: f64,
    /// Tokens requested in it.
    pub tokens: f64,
}
