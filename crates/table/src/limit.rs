//! A named policy, and the digests of its keys.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use siphasher::sip128::SipHasher13;
use tidegate_core::{Bucket, Policy, default_start};

/// The keyed 128-bit hash of one identity in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digest {
    pub(crate) low: u64,
    pub(crate) high: u64,
}

impl Digest {
    /// The digest of no identity.
    pub const NONE: Digest = Digest { low: 0, high: 0 };

    /// The digest as 16 bytes, for stores outside of this crate.
    #[must_use]
    #[inline]
    pub fn to_bytes(self) -> [u8; 16] {
        (u128::from(self.high) << 64 | u128::from(self.low)).to_be_bytes()
    }

    // Not inlined: it is the largest function here, and the call costs less than the hash.
    #[inline(never)]
    fn of(secret: [u64; 2], bytes: &[u8]) -> Digest {
        let (low, high) = SipHasher13::new_with_keys(secret[0], secret[1]).hash(bytes).as_u64();
        Digest { low, high }
    }
}

/// A named policy, prepared for one table.
///
/// Each limit hashes its keys under its own secret, which is the hash of its name under the secret of the table. So a
/// call hashes the key alone, and equal keys of two limits have different digests.
#[derive(Clone)]
pub struct Limit {
    name: Vec<u8>,
    policy: Policy,
    /// The bucket of all keys; `None` if each key has a start of its own.
    common: Option<Bucket>,
    /// The hash of the name: the digest without a key, and the secret of the hash of keys.
    keyless: Digest,
}

impl Limit {
    /// Prepares `policy` under `name` for the table with this secret. Limits with different names have different states. A
    /// name for the other implementations, such as the JavaScript package, also passes [`is_name`](tidegate_core::is_name).
    #[must_use]
    pub fn new(secret: [u64; 2], name: impl AsRef<[u8]>, policy: Policy) -> Limit {
        let name = name.as_ref();
        let common = if policy.start_is_derived() { None } else { Some(policy.bucket(0.0)) };
        Limit { name: name.to_vec(), policy, common, keyless: Digest::of(secret, name) }
    }

    /// The name, one byte per character.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its policy.
    #[must_use]
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The hash of `key` under this limit.
    #[must_use]
    #[inline]
    pub fn digest(&self, key: Option<&[u8]>) -> Digest {
        match key {
            Some(key) => Digest::of([self.keyless.low, self.keyless.high], key),
            None => self.keyless,
        }
    }

    /// Start of the key's window grid, ms; 0 if the policy needs none from the key.
    #[must_use]
    pub fn start(&self, key: Option<&[u8]>) -> f64 {
        if self.common.is_some() { 0.0 } else { default_start(&self.name, key, self.policy.period()) }
    }

    /// The bucket, if it does not depend on the key.
    #[inline]
    pub(crate) fn common_bucket(&self) -> Option<&Bucket> {
        self.common.as_ref()
    }

    /// The bucket for `key`.
    #[must_use]
    #[inline(never)]
    pub fn bucket(&self, key: Option<&[u8]>) -> Bucket {
        match self.common {
            Some(bucket) => bucket,
            None => self.policy.bucket(self.start(key)),
        }
    }
}

/// Without the secret, and the hash that is one: logs contain it.
impl fmt::Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = String::from_utf8_lossy(&self.name);
        f.debug_struct("Limit").field("name", &name).field("policy", &self.policy).finish_non_exhaustive()
    }
}
