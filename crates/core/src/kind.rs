//! The kinds of limits.

/// How tokens come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Continuously, `rate` per `period`.
    TokenBucket,
    /// `rate` tokens at the start of each window of `period` ms.
    FixedWindow,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 2] = [Kind::TokenBucket, Kind::FixedWindow];

    /// The kind as the public API writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::TokenBucket => "token bucket",
            Kind::FixedWindow => "fixed window",
        }
    }
}
