import ipaddr from "ipaddr.js";
import { InputError } from "../limit/errors.ts";

const { IPv4, IPv6 } = ipaddr;

/** Settings of {@link addressKey}. */
export interface AddressOptions {
  /**
   * Bits of an IPv6 address that make one client: a whole number, 32 to 128; default 56, what a provider commonly
   * assigns to one household. IPv4 addresses are clients of their own.
   */
  prefix?: number | undefined;
}

/** An IPv4 or IPv6 address of ipaddr.js, by shape: the package's declarations name no bundled library. */
export interface Address {
  kind(): "ipv4" | "ipv6";
  toByteArray(): number[];
}

/** `64:ff9b::/96`: a translator's prefix, whose last 32 bits are an IPv4 client (RFC 6052). */
const TRANSLATED: readonly number[] = [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0];

/** The longest text of an address: eight groups of which the last two are dotted, without a zone. */
const LONGEST = 45;

/**
 * An address without its zone (`%eth0`), and as IPv4 where it embeds one. `undefined` for anything else, a port or
 * brackets included.
 */
export function parseAddress(text: string): Address | undefined {
  const [bare = "", zone] = text.split("%", 2);
  if (bare.length > LONGEST) return undefined;
  // Four decimal parts without leading zeros: readers disagree whether those are octal.
  if (!bare.includes(":")) {
    return zone === undefined && IPv4.isValidFourPartDecimal(bare) ? IPv4.parse(bare) : undefined;
  }
  const last = bare.slice(bare.lastIndexOf(":") + 1);
  if (!IPv6.isValid(bare) || (last.includes(".") && !IPv4.isValidFourPartDecimal(last))) return undefined;
  const address = IPv6.parse(bare);
  const bytes = address.toByteArray();
  return address.isIPv4MappedAddress() || TRANSLATED.every((byte, i) => bytes[i] === byte)
    ? new IPv4(bytes.slice(12))
    : address;
}

/** Whether the address is in this network: one with the same first `bits`, and of the same kind. */
export const isWithin = (address: Address, network: Address, bits: number): boolean =>
  address.kind() === network.kind() && (address as ipaddr.IPv6).match(network as ipaddr.IPv6, bits);

/** The key of an address: itself, or an IPv6 one's network with its length. */
export function keyOf(address: Address, options: AddressOptions): string {
  if (typeof options !== "object" || options === null) {
    throw new InputError("options", "an object, such as { prefix: 56 }", options);
  }
  const { prefix = 56 } = options;
  if (typeof prefix !== "number" || !Number.isInteger(prefix) || prefix < 32 || prefix > 128) {
    throw new InputError("prefix", "a whole number of bits from 32 to 128", prefix);
  }
  if (address.kind() === "ipv4") return address.toString();
  const bytes = address.toByteArray();
  const kept = bytes.map((byte, i) => byte & (0xff00 >> Math.min(Math.max(prefix - i * 8, 0), 8)));
  const text = new IPv6(kept).toRFC5952String();
  return prefix === 128 ? text : `${text}/${prefix}`;
}

/**
 * The key of an IP address: one client has one key, in every notation. IPv6 is grouped (`/56`), since a client can use any
 * address of its network; IPv4 in IPv6 (`::ffff:192.0.2.1`, `64:ff9b::192.0.2.1`) is the IPv4 client; a zone (`%eth0`) is
 * dropped. Other prefixes of translators (RFC 6052 allows any) are not recognized.
 *
 * ```ts
 * addressKey("2001:DB8:0:1234::1"); // "2001:db8:0:1200::/56"
 * ```
 *
 * Returns `undefined` where it is no address. Throws an `InputError` where `prefix` is out of range.
 */
export function addressKey(address: string, options: AddressOptions = {}): string | undefined {
  if (typeof address !== "string") throw new InputError("address", "a string", address);
  const parsed = parseAddress(address);
  return parsed === undefined ? undefined : keyOf(parsed, options);
}
