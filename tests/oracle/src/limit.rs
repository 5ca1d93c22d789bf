//! A limit as a caller configures it.

use crate::json::number;
use crate::key::default_start;
use serde_json::{Map, Value};

/// How tokens refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Continuously.
    TokenBucket,
    /// At the start of each window.
    FixedWindow,
}

/// A limit, with the field names of the public API. All numbers must be legal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// How tokens refill.
    pub kind: Kind,
    /// Tokens per period.
    pub rate: f64,
    /// ms.
    pub period: f64,
    /// Most tokens that accumulate; default `rate`.
    pub capacity: Option<f64>,
    /// Most tokens that may be owed; default unbounded.
    pub max_reserved: Option<f64>,
    /// Offset of the window grid, ms; infinite: each key's window begins at its first request; default from the key.
    pub start: Option<f64>,
    /// Number of shards; default 1.
    pub shards: Option<f64>,
    /// What a request for one token takes of it: less of one shard.
    pub one: f64,
}

impl Limit {
    /// A token bucket.
    #[must_use]
    pub const fn bucket(rate: f64, period: f64) -> Limit {
        let kind = Kind::TokenBucket;
        Limit { kind, rate, period, capacity: None, max_reserved: None, start: None, shards: None, one: 1.0 }
    }

    /// A fixed window.
    #[must_use]
    pub const fn window(rate: f64, period: f64) -> Limit {
        Limit { kind: Kind::FixedWindow, ..Limit::bucket(rate, period) }
    }

    /// With this capacity.
    #[must_use]
    pub const fn capacity(self, capacity: f64) -> Limit {
        Limit { capacity: Some(capacity), ..self }
    }

    /// With this bound on what may be owed.
    #[must_use]
    pub const fn max_reserved(self, tokens: f64) -> Limit {
        Limit { max_reserved: Some(tokens), ..self }
    }

    /// With this window grid.
    #[must_use]
    pub const fn start(self, ms: f64) -> Limit {
        Limit { start: Some(ms), ..self }
    }

    /// With windows that begin at a key's first request.
    #[must_use]
    pub const fn first_request(self) -> Limit {
        self.start(f64::INFINITY)
    }

    /// Whether windows begin at a key's first request.
    #[must_use]
    pub fn opens(&self) -> bool {
        self.kind == Kind::FixedWindow && self.start == Some(f64::INFINITY)
    }

    /// With this many shards.
    #[must_use]
    pub const fn shards(self, shards: f64) -> Limit {
        Limit { shards: Some(shards), ..self }
    }

    /// Most tokens that accumulate.
    #[must_use]
    pub fn most(&self) -> f64 {
        self.capacity.unwrap_or(self.rate)
    }

    /// The least value that a request may leave.
    #[must_use]
    pub fn floor(&self, reserve: bool) -> f64 {
        match (reserve, self.max_reserved) {
            (false, _) => 0.0,
            (true, None) => f64::NEG_INFINITY,
            (true, Some(tokens)) => -tokens,
        }
    }

    /// With a resolved window grid: the given start, or the default of this name and key.
    #[must_use]
    pub fn settled(&self, name: &str, key: Option<&[u16]>) -> Limit {
        match self.kind {
            Kind::TokenBucket => *self,
            Kind::FixedWindow => self.start(self.start.unwrap_or_else(|| default_start(name, key, self.period))),
        }
    }

    /// The limit of one shard.
    #[must_use]
    pub fn part(&self) -> Limit {
        let shards = self.shards.unwrap_or(1.0);
        Limit {
            rate: self.rate / shards,
            capacity: Some(self.most() / shards),
            max_reserved: self.max_reserved.map(|tokens| tokens / shards),
            shards: None,
            one: 1.0 / shards,
            ..*self
        }
    }

    /// As the vectors write it.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let kind = match self.kind {
            Kind::TokenBucket => "token bucket",
            Kind::FixedWindow => "fixed window",
        };
        let mut fields = Map::new();
        fields.insert("kind".into(), kind.into());
        let numbers = [
            ("rate", Some(self.rate)),
            ("period", Some(self.period)),
            ("capacity", self.capacity),
            ("maxReserved", self.max_reserved),
            ("start", self.start),
            ("shards", self.shards),
        ];
        for (name, given) in numbers {
            if let Some(x) = given {
                fields.insert(name.into(), if x.is_infinite() { "first request".into() } else { number(x) });
            }
        }
        Value::Object(fields)
    }
}
