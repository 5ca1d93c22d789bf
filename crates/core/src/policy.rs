//! The policy of a limit: checked once, then immutable.

use crate::bounds::{FIRST_REQUEST, Field};
use crate::bucket::Bucket;
use crate::error::InputError;
use crate::kind::Kind;

/// An unchecked policy. `None` is an absent field; zero is a value.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// How tokens come back.
    pub kind: Kind,
    /// Tokens added per period: above 0, up to 2^40.
    pub rate: f64,
    /// Length of the period: integer ms, 1 to 2^40.
    pub period: f64,
    /// Most tokens that accumulate: 0 to 2^40; default `rate`. With 0 every grant is a reservation, evenly spaced.
    pub capacity: Option<f64>,
    /// Most tokens that may be owed: 0 to 2^40; default unbounded.
    pub max_reserved: Option<f64>,
    /// Fixed window only: offset of the window grid from 0 UTC, integer ms; or [`FIRST_REQUEST`]; default derived from
    /// the key.
    pub start: Option<f64>,
    /// Shards: 1 to 65,536; default 1. Only stores whose rows are on different servers use them (see
    /// [`Pool`](crate::Pool)); in other stores they have no effect.
    pub shards: Option<f64>,
}

impl Config {
    /// A config of `kind` with all other fields unset; `rate` and `period` are required.
    #[must_use]
    pub const fn new(kind: Kind) -> Config {
        Config { kind, rate: f64::NAN, period: f64::NAN, capacity: None, max_reserved: None, start: None, shards: None }
    }
}

/// A checked policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    kind: Kind,
    rate: f64,
    period: f64,
    capacity: f64,
    max_reserved: f64,
    start: Option<f64>,
    shards: u32,
    ms_per_token: f64,
}

impl Policy {
    /// Checks a config, field by field in the order of [`Field`].
    ///
    /// ```
    /// use tidegate_core::{Config, Kind, Policy};
    /// let zero = Config { rate: 0.0, period: 1000.0, ..Config::new(Kind::TokenBucket) };
    /// assert_eq!(
    ///     Policy::new(&zero).unwrap_err().to_string(),
    ///     "`rate` must be a finite number of tokens above 0 and up to 1099511627776; got 0"
    /// );
    /// ```
    ///
    /// # Errors
    /// The first field that is out of its range.
    pub fn new(config: &Config) -> Result<Policy, InputError> {
        let optional = |field: Field, value: Option<f64>| value.map(|v| field.check(v)).transpose();
        let rate = Field::Rate.check(config.rate)?;
        let period = Field::Period.check(config.period)?;
        Ok(Policy {
            kind: config.kind,
            rate,
            period,
            capacity: optional(Field::Capacity, config.capacity)?.unwrap_or(rate),
            max_reserved: optional(Field::MaxReserved, config.max_reserved)?.unwrap_or(f64::INFINITY),
            start: match config.start {
                Some(FIRST_REQUEST) => config.start,
                start => optional(Field::Start, start)?,
            },
            shards: optional(Field::Shards, config.shards)?.unwrap_or(1.0) as u32,
            ms_per_token: period / rate,
        })
    }

    /// The config of this policy, defaults included; an unbounded `max_reserved` and a derived `start` are `None`. To change a
    /// number, change it in the config:
    ///
    /// ```
    /// use tidegate_core::{Config, Kind, Policy};
    /// let policy = Policy::new(&Config { rate: 10.0, period: 1000.0, ..Config::new(Kind::TokenBucket) })?;
    /// let half = Policy::new(&Config { rate: policy.rate() / 2.0, ..policy.config() })?;
    /// assert_eq!((half.rate(), half.capacity()), (5.0, 10.0));
    /// # Ok::<(), tidegate_core::InputError>(())
    /// ```
    #[must_use]
    pub fn config(&self) -> Config {
        Config {
            kind: self.kind,
            rate: self.rate,
            period: self.period,
            capacity: Some(self.capacity),
            max_reserved: Some(self.max_reserved).filter(|most| most.is_finite()),
            start: self.start,
            shards: Some(f64::from(self.shards)),
        }
    }

    /// How tokens come back.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Tokens added per period.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// Length of the period, ms.
    #[must_use]
    pub fn period(&self) -> f64 {
        self.period
    }

    /// Most tokens that accumulate.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.capacity
    }

    /// Most tokens that may be owed; infinite if the config has no bound.
    #[must_use]
    pub fn max_reserved(&self) -> f64 {
        self.max_reserved
    }

    /// Offset of the window grid from 0 UTC, integer ms, or [`FIRST_REQUEST`]; `None` if the config has none.
    #[must_use]
    pub fn start(&self) -> Option<f64> {
        self.start
    }

    /// Number of shards, in stores that use them.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// Whether [`Policy::bucket`] needs the start that is derived from the key: only for a fixed window without `start`.
    #[must_use]
    #[inline]
    pub fn start_is_derived(&self) -> bool {
        matches!(self.kind, Kind::FixedWindow) && self.start.is_none()
    }

    /// The bucket of the whole limit. `start` is the [default](crate::default_start), ms; it is used only if the
    /// config has none.
    #[must_use]
    #[inline]
    pub fn bucket(&self, start: f64) -> Bucket {
        Bucket {
            kind: self.kind,
            rate: self.rate,
            period: self.period,
            capacity: self.capacity,
            max_reserved: self.max_reserved,
            start: match self.start {
                Some(given) => given,
                None => start,
            },
            one: 1.0,
            ms_per_token: self.ms_per_token,
        }
    }

    /// The bucket of one shard: rate, capacity and reserve divided by the number of shards.
    #[must_use]
    #[inline]
    pub fn shard_bucket(&self, start: f64) -> Bucket {
        let shards = f64::from(self.shards);
        let whole = self.bucket(start);
        Bucket {
            rate: self.rate / shards,
            capacity: self.capacity / shards,
            max_reserved: self.max_reserved / shards,
            one: 1.0 / shards,
            ms_per_token: self.ms_per_token * shards,
            ..whole
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_has_its_configs_numbers_and_the_defaults() {
        let config = Config { rate: 10.0, period: 1000.0, ..Config::new(Kind::FixedWindow) };
        let usual = Policy::new(&config).unwrap();
        assert_eq!((usual.kind(), usual.rate(), usual.period()), (Kind::FixedWindow, 10.0, 1000.0));
        assert_eq!((usual.capacity(), usual.max_reserved()), (10.0, f64::INFINITY));
        assert_eq!((usual.start(), usual.shards(), usual.start_is_derived()), (None, 1, true));
        let own =
            Config { capacity: Some(20.0), max_reserved: Some(5.0), start: Some(250.0), shards: Some(4.0), ..config };
        let own = Policy::new(&own).unwrap();
        assert_eq!((own.capacity(), own.max_reserved()), (20.0, 5.0));
        assert_eq!((own.start(), own.shards(), own.start_is_derived()), (Some(250.0), 4, false));
        assert_eq!([usual, own].map(|policy| Policy::new(&policy.config())), [Ok(usual), Ok(own)]);
        let bucket = Policy::new(&Config { kind: Kind::TokenBucket, ..config }).unwrap();
        assert!(!bucket.start_is_derived());
    }

    #[test]
    fn a_shard_has_its_part_of_each_number_but_the_period() {
        let config = Config { rate: 12.0, period: 1000.0, ..Config::new(Kind::TokenBucket) };
        let config = Config { capacity: Some(8.0), max_reserved: Some(6.0), shards: Some(4.0), ..config };
        let shard = Policy::new(&config).unwrap().shard_bucket(0.0);
        assert_eq!((shard.rate, shard.period, shard.capacity, shard.max_reserved), (3.0, 1000.0, 2.0, 1.5));
        assert!((shard.ms_per_token - shard.period / shard.rate).abs() < 1e-9);
    }
}
