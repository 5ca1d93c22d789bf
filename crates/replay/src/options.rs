//! The options of a replay, as JavaScript passes them.

use crate::format::Format;
use serde::Deserialize;
use tsify::Tsify;

/// What to replay, and under which limits.
#[derive(Clone, Debug, Default, Deserialize, Tsify)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Options {
    /// The files' format; default: detected from their first lines.
    pub format: Option<Format>,
    /// The field with the time; default: the usual names.
    pub time: Option<String>,
    /// The field with a request's cost; default: the policy's cost, or 1.
    pub cost: Option<String>,
    /// The fields of the key, instead of those of the policy; empty: all requests share one limit.
    pub key: Option<Vec<String>>,
    /// The text of a policy document.
    pub policy: Option<String>,
    /// Limits, one per text: `rate=10 period=1s capacity=20`.
    #[tsify(type = "string[] | undefined")]
    pub limits: Vec<String>,
    /// Most keys held for each limit: 1 to 2^32 - 1; default 1,000,000.
    pub max_keys: Option<u32>,
    /// Propose a policy that denies at most this share of the requests: `0.1%`, or 0 to 1.
    pub suggest: Option<String>,
    /// A share like `suggest`. It is checked here; the caller compares it with the result.
    pub budget: Option<String>,
    /// The period of the proposal if there is no limit: `1m`, or ms; default one minute.
    pub period: Option<String>,
    /// Draw demand, grants and denials over time.
    #[tsify(type = "boolean | undefined")]
    pub chart: bool,
}

impl Options {
    /// Whether there is no limit, so that one is proposed.
    pub(crate) fn proposes(&self) -> bool {
        self.policy.is_none() && self.limits.is_empty()
    }

    pub(crate) fn max_keys(&self) -> u32 {
        self.max_keys.unwrap_or(1_000_000)
    }
}
