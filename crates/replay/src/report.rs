//! What a replay reports. Times are ms since the Unix epoch, durations ms, amounts tokens unless they are called requests.

use serde::Serialize;
use tsify::Tsify;

/// The whole of it, as `--json` prints it.
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
    /// How long denied requests would have to wait.
    pub waits: Option<Waits>,
    /// Denied requests that no wait would help: they need more than a limit ever holds.
    pub never: u64,
    /// States that were evicted before they were full: each key may have been granted too much.
    pub forgotten: u64,
    /// The busiest second and minute, of all keys together.
    pub peaks: Vec<PeakReport>,
    /// What was left out of account.
    pub notes: Vec<String>,
}

/// What was read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct Read {
    /// Lines that were not empty, names of columns aside.
    pub lines: u64,
    /// Requests among them.
    pub requests: u64,
    /// Lines that are no request.
    pub bad: u64,
    /// The first of those.
    pub first_bad: Vec<BadLine>,
    /// Requests that came before one that was read earlier.
    pub out_of_order: u64,
    /// The farthest of those, ms.
    pub farthest_back: f64,
    /// Whether all times are whole seconds: bursts then look up to a second denser than they were.
    pub whole_seconds: bool,
    /// The earliest time, where there are requests.
    pub from: f64,
    /// The latest.
    pub to: f64,
    /// Each file's format.
    pub formats: Vec<(String, String)>,
}

/// A line that is no request.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct BadLine {
    /// Its file.
    pub file: String,
    /// Its number in it, from 1.
    pub line: u64,
    /// How it begins.
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
    /// Requests that it denied; one that two limits deny counts in both.
    pub denied: u64,
    /// How many different keys it denied something; absent where there were more than are counted.
    pub keys_denied: Option<u64>,
    /// Its worst hit keys.
    pub worst: Vec<WorstKey>,
    /// The least whole capacity with which it, by itself, would have denied nothing; absent where none would.
    pub smallest_capacity: Option<f64>,
    /// Whether that is exact: no key had to be forgotten while it was found out.
    pub smallest_capacity_exact: bool,
    /// A proposal, where `suggest` is set.
    pub suggestion: Option<Suggestion>,
}

/// A key, and how often it was denied.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
#[serde(rename_all = "camelCase")]
pub struct WorstKey {
    /// As the limiter has it; bytes that are no UTF-8 are replaced.
    pub key: String,
    /// At least so often. Exact where `atMost` is the same.
    pub denied: u64,
    /// At most so often.
    pub at_most: u64,
    /// The longest `retryAfter` that it got, ms.
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

/// Waits of denied requests, ms, to three digits.
#[derive(Clone, Debug, PartialEq, Serialize, Tsify)]
#[tsify(missing_as_null)]
pub struct Waits {
    /// Half of them are no longer.
    pub p50: f64,
    /// Nine of ten.
    pub p90: f64,
    /// 99 of 100.
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
