//! Keys as the package writes them, so that a replay is about the limits that a server keeps.

use sha2::{Digest, Sha256};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Length in bits of the IPv6 prefix that counts as one client, as in `clientIp`.
const PREFIX: u32 = 56;
/// `64:ff9b::/96`, the prefix that translators add to an IPv4 address (RFC 6052).
const TRANSLATOR: u128 = 0x0064_ff9b << 96;

/// The part of a rule's key for a field that a request lacks.
pub(crate) const ABSENT: u8 = b'-';

/// The prefix of the hash of a rule's key.
pub(crate) const HASHED: &str = "sha256:";

/// Replaces a rule's key by its hash, as `boundedKey` does if a key is longer than a limiter takes.
pub(crate) fn hash(key: &mut Vec<u8>) {
    let hex: String = Sha256::digest(&key).iter().map(|byte| format!("{byte:02x}")).collect();
    *key = format!("{HASHED}{hex}").into_bytes();
}

/// A field's text; an address as `clientIp` writes it, if it is one.
pub(crate) fn write_part(text: &[u8], address: bool, key: &mut Vec<u8>) {
    // An IPv4 address without a port has only one notation.
    if address && text.contains(&b':') && write_address(text, key).is_some() {
        return;
    }
    key.extend_from_slice(text);
}

/// An address as `clientIp` writes it.
pub(crate) fn address(text: &[u8]) -> Vec<u8> {
    let mut address = Vec::with_capacity(text.len());
    write_part(text, true, &mut address);
    address
}

/// The same text as one part of a `tupleKey`: preceded by its length in UTF-16 code units.
pub(crate) fn write_tuple_part(text: &[u8], address: bool, key: &mut Vec<u8>) {
    let mut part = Vec::with_capacity(text.len());
    write_part(text, address, &mut part);
    let length = String::from_utf8_lossy(&part).encode_utf16().count();
    key.extend_from_slice(format!("{length}:").as_bytes());
    key.extend_from_slice(&part);
}

/// An IPv6 address, or either with the port of its connection, as Traefik and load balancers log it.
fn write_address(text: &[u8], key: &mut Vec<u8>) -> Option<()> {
    let text = std::str::from_utf8(text).ok()?;
    let with_port = text.parse::<SocketAddr>().ok().map(|peer| peer.ip());
    let address = with_port.or_else(|| {
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let bare = text.split_once('%').map_or(text, |(address, _)| address);
        bare.parse::<Ipv6Addr>().ok().map(IpAddr::V6)
    })?;
    let IpAddr::V6(v6) = address.to_canonical() else { return write!(key, "{}", address.to_canonical()).ok() };
    let bits = v6.to_bits();
    let v4 = (bits >> 32 == TRANSLATOR >> 32).then_some(Ipv4Addr::from_bits(bits as u32));
    match v4 {
        Some(v4) => write!(key, "{v4}"),
        None => write!(key, "{}/{PREFIX}", Ipv6Addr::from_bits(bits & u128::MAX << (128 - PREFIX))),
    }
    .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str) -> String {
        let mut key = Vec::new();
        write_part(text.as_bytes(), true, &mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn addresses_are_written_as_client_ip_writes_them() {
        assert_eq!(part("10.0.0.1"), "10.0.0.1");
        assert_eq!(part("::ffff:10.0.0.1"), "10.0.0.1");
        assert_eq!(part("64:ff9b::10.0.0.1"), "10.0.0.1");
        assert_eq!(part("2001:DB8:0:1234::1"), "2001:db8:0:1200::/56");
        assert_eq!(part("fe80::1%eth0"), "fe80::/56");
        assert_eq!(part("a.host"), "a.host");
        assert_eq!(part("not:an:address"), "not:an:address");
        assert_eq!(part("10.0.0.1:4711"), "10.0.0.1", "as Traefik's ClientAddr and load balancers have it");
        assert_eq!(part("[::ffff:10.0.0.1]:4711"), "10.0.0.1");
        assert_eq!(part("[2001:DB8:0:1234::1]:4711"), "2001:db8:0:1200::/56");
        assert_eq!(part("[2001:DB8:0:1234::1]"), "2001:db8:0:1200::/56");
        assert_eq!(part("a.host:4711"), "a.host:4711");
        let mut other = Vec::new();
        write_part(b"::ffff:10.0.0.1", false, &mut other);
        assert_eq!(other, b"::ffff:10.0.0.1", "a field that is no address");
    }

    #[test]
    fn parts_of_a_tuple_come_after_their_length() {
        let mut key = Vec::new();
        write_tuple_part("acme".as_bytes(), false, &mut key);
        write_tuple_part("é😀".as_bytes(), false, &mut key);
        assert_eq!(String::from_utf8(key).unwrap(), "4:acme3:é😀");
    }
}
