// Written here: these lines are a tenth of the size of ipaddr.js, which the tests compare them with, and pages and Workers
// load them.
import { check, checkOptions, fieldTable, integerFrom } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";

/** Settings of {@link addressKey}. */
export interface AddressOptions {
  /**
   * Bits of an IPv6 address that make one client: an integer, 32 to 128; default 56, what a provider commonly assigns
   * to one household. Each IPv4 address is a client.
   */
  prefix?: number | undefined;
}

/** The bytes of an address: 4 of IPv4, 16 of IPv6. */
export type Address = readonly number[];

const EMBEDDED: readonly Address[] = [
  /** `::ffff:0:0/96`, IPv4 as an IPv6 socket reports it (RFC 4291). */
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, 0, 0],
  /** `64:ff9b::/96`, a translator's prefix, whose last 32 bits are an IPv4 client (RFC 6052). */
  [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
];

/** The longest text of an address: eight groups of which the last two are dotted, without a zone. */
const LONGEST = 45;

/** Four decimal parts without leading zeros: readers disagree whether those are octal. In place of a pattern, for its speed. */
function parseIpv4(text: string): Address | undefined {
  const bytes: number[] = [];
  let byte: number | undefined;
  for (let i = 0; i <= text.length; i++) {
    const digit = text.charCodeAt(i) - 0x30;
    if (digit >= 0 && digit <= 9) {
      if (byte === 0) return undefined;
      byte = (byte ?? 0) * 10 + digit;
      if (byte > 255) return undefined;
    } else if (byte !== undefined && (i === text.length || text[i] === ".")) {
      bytes.push(byte);
      byte = undefined;
    } else {
      return undefined;
    }
  }
  return bytes.length === 4 ? bytes : undefined;
}

/** The bytes of groups with colons between; at the end of an address the last may be IPv4. */
function parseGroups(text: string, isEnd: boolean): Address | undefined {
  const bytes: number[] = [];
  const groups = text === "" ? [] : text.split(":");
  for (const [i, group] of groups.entries()) {
    const embedded = isEnd && i === groups.length - 1 ? parseIpv4(group) : undefined;
    if (embedded === undefined && !/^[\da-f]{1,4}$/i.test(group)) return undefined;
    const number = Number.parseInt(group, 16);
    bytes.push(...(embedded ?? [number >> 8, number & 0xff]));
  }
  return bytes;
}

function parseIpv6(text: string): Address | undefined {
  const [before = "", after, more] = text.split("::");
  const head = parseGroups(before, after === undefined);
  const tail = parseGroups(after ?? "", true);
  if (head === undefined || tail === undefined || more !== undefined) return undefined;
  const missing = 16 - head.length - tail.length;
  // `::` is at least one group of zeros.
  if (after === undefined ? missing !== 0 : missing < 2) return undefined;
  return [...head, ...new Array<number>(missing).fill(0), ...tail];
}

/**
 * An address without its zone (`%eth0`), and as IPv4 if it embeds one. `undefined` for anything else, a port or
 * brackets included.
 */
export function parseAddress(text: string): Address | undefined {
  const [bare = "", zone] = text.split("%", 2);
  if (bare.length > LONGEST) return undefined;
  if (!bare.includes(":")) return zone === undefined ? parseIpv4(bare) : undefined;
  const bytes = parseIpv6(bare);
  return bytes !== undefined && EMBEDDED.some((prefix) => isWithin(bytes, prefix, 96)) ? bytes.slice(12) : bytes;
}

/** Whether the first `bits` of an address are those of a network of its kind. */
export const isWithin = (address: Address, network: Address, bits: number): boolean =>
  address.length === network.length &&
  network.every((byte, i) => ((byte ^ (address[i] as number)) & maskOf(i, bits)) === 0);

/** The bits of a network's byte at this place. */
const maskOf = (at: number, bits: number): number => (0xff00 >> Math.min(Math.max(bits - at * 8, 0), 8)) & 0xff;

/** As RFC 5952 writes it: the first of the longest runs of zeros is `::`. */
function textOf(address: Address): string {
  const groups = Array.from(
    { length: 8 },
    (_, i) => ((address[2 * i] as number) << 8) | (address[2 * i + 1] as number),
  );
  const text = groups.map((group) => group.toString(16)).join(":");
  const [run = ""] = (text.match(/\b0(:0)+\b/g) ?? []).sort((a, b) => b.length - a.length);
  if (run === "") return text;
  const short = `:${text}:`.replace(`:${run}:`, "::");
  return short.slice(short.startsWith("::") ? 0 : 1, short.endsWith("::") ? undefined : -1);
}

/** Those of `clientIp`, which gives them to {@link keyOf}. */
const OPTIONS = fieldTable("prefix", "trust", "header");
const PREFIX = integerFrom("bits, an integer from 32 to 128", 32, 128);

/** The key of an address: itself, or an IPv6 one's network with its length. */
export function keyOf(address: Address, options: AddressOptions): string {
  checkOptions("an address", options, OPTIONS, "an object, such as { prefix: 56 }");
  const { prefix = 56 } = options;
  check("prefix", prefix, PREFIX);
  if (address.length === 4) return address.join(".");
  const text = textOf(address.map((byte, i) => byte & maskOf(i, prefix)));
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
 * Returns `undefined` if it is not an address. Throws an `InputError` if `prefix` is out of range.
 */
export function addressKey(address: string, options: AddressOptions = {}): string | undefined {
  if (typeof address !== "string") throw new InputError("address", "a string", address);
  const parsed = parseAddress(address);
  return parsed === undefined ? undefined : keyOf(parsed, options);
}
