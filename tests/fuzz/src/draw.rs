//! Draws numbers, limits and keys from the fuzzer's bytes. After their end, every draw is zero.

use arbitrary::Unstructured;
use tidegate_core::{Config, FIRST_REQUEST, Kind, Policy};
use tidegate_oracle::Limit;

const MOST: f64 = 1_099_511_627_776.0;
const EDGES: [f64; 18] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    MOST,
    MOST + 1.0,
    4_503_599_627_370_496.0,
    4_503_599_627_370_497.0,
    9_007_199_254_740_992.0,
    -4_503_599_627_370_496.0,
    5e-324,
    f64::MAX,
    f64::MIN,
    f64::NAN,
    f64::INFINITY,
    f64::NEG_INFINITY,
    1e300,
];

pub(crate) struct Draw<'a>(Unstructured<'a>);

impl<'a> Draw<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Draw<'a> {
        Draw(Unstructured::new(data))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u16) -> u16 {
        self.0.arbitrary::<u16>().unwrap_or(0) % n
    }

    pub(crate) fn yes(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// Any UTF-16 code units; lone surrogates are frequent.
    pub(crate) fn units(&mut self, most: u16) -> Vec<u16> {
        let length = self.below(most + 1);
        let mut units = Vec::new();
        for _ in 0..length {
            if self.is_empty() {
                break;
            }
            let unit = self.0.arbitrary().unwrap_or(0);
            units.push(match unit & 3 {
                0 => 0xd800 | unit >> 2 & 0x7ff,
                1 => unit >> 2 & 0x7f,
                _ => unit,
            });
        }
        units
    }

    /// A legal name.
    pub(crate) fn name(&mut self) -> String {
        const CHARACTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ012345678_.-";
        let length = 1 + usize::from(self.byte() & 63);
        (0..length).map(|_| char::from(CHARACTERS[usize::from(self.byte() & 63)])).collect()
    }

    /// Any double at all.
    pub(crate) fn double(&mut self) -> f64 {
        match self.byte() {
            edge @ 0..=63 => EDGES[usize::from(edge) % EDGES.len()],
            64..=127 => f64::from_bits(self.bits()),
            128..=191 => f64::from(self.below(2000)) / 8.0,
            _ => self.bits() as f64 / 4096.0,
        }
    }

    /// From `least` to `most`, spread evenly over the powers of two, often a whole number.
    pub(crate) fn size(&mut self, least: f64, most: f64) -> f64 {
        let (low, high) = (least.log2(), most.log2());
        let size = (low + (high - low) * f64::from(self.below(u16::MAX)) / f64::from(u16::MAX)).exp2();
        if self.yes() { size.round().clamp(least, most) } else { size.clamp(least, most) }
    }

    /// A share of something, 0 to 2.
    pub(crate) fn share(&mut self) -> f64 {
        match self.byte() {
            0..=31 => 0.0,
            32..=63 => 1.0,
            64..=95 => 1.0 / 3.0,
            _ => f64::from(self.below(u16::MAX)) / 32_768.0,
        }
    }

    /// A limit with typical numbers and a resolved window grid.
    pub(crate) fn limit(&mut self) -> Limit {
        let (rate, period) = (self.size(0.01, 1e9), self.size(1.0, 1e11).round());
        let times = |draw: &mut Self| if draw.yes() { Some((rate * draw.size(0.01, 100.0)).min(MOST)) } else { None };
        let window = self.yes();
        let capacity = if self.byte() < 16 { Some(0.0) } else { times(self) };
        let max_reserved = if self.byte() < 16 { Some(0.0) } else { times(self) };
        let start = window.then(|| match self.share() {
            0.0 => FIRST_REQUEST,
            share => (share * period).floor() - period,
        });
        let limit = if window { Limit::window(rate, period) } else { Limit::bucket(rate, period) };
        Limit { capacity, max_reserved, start, ..limit }
    }

    /// ms that may pass until the next call; a clock may step back.
    pub(crate) fn step(&mut self, limit: &Limit) -> f64 {
        match self.byte() {
            0..=63 => 0.0,
            64..=95 => 1.0,
            96..=143 => self.share() * limit.period,
            144..=207 => self.share() * limit.period * limit.most() / limit.rate,
            208..=231 => -self.share() * 10_000.0,
            232..=243 => -self.share() * 9e6,
            _ => self.share() * 1e10,
        }
    }
}

/// A limit's policy.
pub(crate) fn policy(limit: &Limit) -> Policy {
    let kind = match limit.kind {
        tidegate_oracle::Kind::TokenBucket => Kind::TokenBucket,
        tidegate_oracle::Kind::FixedWindow => Kind::FixedWindow,
    };
    let Limit { rate, period, capacity, max_reserved, start, shards, .. } = *limit;
    Policy::new(&Config { kind, rate, period, capacity, max_reserved, start, shards }).expect("a legal limit")
}
