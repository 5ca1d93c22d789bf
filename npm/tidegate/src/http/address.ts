import { InputError } from "../limit/errors.ts";

/** Settings of {@link addressKey}. */
export interface AddressOptions {
  /**
   * Bits of an IPv6 address that make one client: a whole number, 32 to 128; default 56, what a provider commonly
   * assigns to one household. IPv4 addresses are clients of their own.
   */
  prefix?: number | undefined;
}

/** An address in bytes: 4 of them, or 16. */
export type Address = readonly number[];

/** Four decimal numbers. No leading zeros: some readers take them for octal. */
function parseV4(text: string): Address | undefined {
  const parts = text.split(".");
  if (parts.length !== 4 || !parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part))) return undefined;
  const bytes = parts.map(Number);
  return bytes.every((byte) => byte < 256) ? bytes : undefined;
}

/** Groups of up to four hexadecimal digits; the last may be an IPv4 address, which counts as two. */
function parseGroups(text: string, last: boolean): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  const parts = text.split(":");
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      const group = Number.parseInt(part, 16);
      bytes.push(group >> 8, group & 0xff);
      continue;
    }
    const dotted = last && i === parts.length - 1 ? parseV4(part) : undefined;
    if (dotted === undefined) return undefined;
    bytes.push(...dotted);
  }
  return bytes;
}

function parseV6(text: string): Address | undefined {
  const halves = text.split("::");
  if (halves.length > 2) return undefined;
  const [first = "", second] = halves;
  const head = parseGroups(first, second === undefined);
  if (second === undefined) return head?.length === 16 ? head : undefined;
  const tail = parseGroups(second, true);
  if (head === undefined || tail === undefined || head.length + tail.length > 14) return undefined;
  return [...head, ...new Array<number>(16 - head.length - tail.length).fill(0), ...tail];
}

/** `::ffff:0:0/96` (a dual-stack socket's) and `64:ff9b::/96` (a translator's, RFC 6052) hold an IPv4 client. */
const HOLDS_V4: readonly Address[] = [
  [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff],
  [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0],
];

/** The longest text of an address: eight groups of which the last two are dotted, without a zone. */
const LONGEST = 45;

/**
 * An address as bytes: without its zone (`%eth0`), and as IPv4 where it stands for one. `undefined` for anything else,
 * a port or brackets included.
 */
export function parseAddress(text: string): Address | undefined {
  const zone = text.indexOf("%");
  const bare = zone < 0 ? text : text.slice(0, zone);
  if (bare.length > LONGEST) return undefined;
  if (!bare.includes(":")) return zone < 0 ? parseV4(bare) : undefined;
  const bytes = parseV6(bare);
  const v4 = bytes !== undefined && HOLDS_V4.some((prefix) => prefix.every((byte, i) => bytes[i] === byte));
  return v4 ? bytes.slice(12) : bytes;
}

/** The canonical text (RFC 5952): lower case, no leading zeros, the first longest run of zero groups as `::`. */
export function addressText(bytes: Address): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i] as number) << 8) | (bytes[2 * i + 1] as number));
  let from = -1;
  let length = 1;
  for (let i = 0; i < 8; i++) {
    let run = 0;
    while (i + run < 8 && groups[i + run] === 0) run++;
    if (run > length) [from, length] = [i, run];
  }
  const text = (some: readonly number[]): string => some.map((group) => group.toString(16)).join(":");
  if (from < 0) return text(groups);
  return `${text(groups.slice(0, from))}::${text(groups.slice(from + length))}`;
}

/** The network that the first `prefix` bits name: the rest is zero. */
export function network(bytes: Address, prefix: number): Address {
  return bytes.map((byte, i) => {
    const bits = Math.min(Math.max(prefix - i * 8, 0), 8);
    return byte & (0xff << (8 - bits)) & 0xff;
  });
}

/** The key of an address: itself, or an IPv6 one's network with its length. */
export function keyOf(bytes: Address, options: AddressOptions): string {
  if (typeof options !== "object" || options === null) {
    throw new InputError("options", "an object, such as { prefix: 56 }", options);
  }
  const { prefix = 56 } = options;
  if (typeof prefix !== "number" || !Number.isInteger(prefix) || prefix < 32 || prefix > 128) {
    throw new InputError("prefix", "a whole number of bits from 32 to 128", prefix);
  }
  if (bytes.length === 4 || prefix === 128) return addressText(bytes);
  return `${addressText(network(bytes, prefix))}/${prefix}`;
}

/**
 * The key of an IP address: one client has one key, however it is written. IPv6 is grouped (`/56`), since whoever has
 * one address has as many as he likes; IPv4 in IPv6 (`::ffff:192.0.2.1`, `64:ff9b::192.0.2.1`) is the IPv4 client; a
 * zone (`%eth0`) is dropped. A translator's own prefix (RFC 6052 allows any) cannot be told from other IPv6.
 *
 * ```ts
 * addressKey("2001:DB8:0:1234::1"); // "2001:db8:0:1200::/56"
 * ```
 *
 * Returns `undefined` where it is no address. Throws an `InputError` where `prefix` is out of range.
 */
export function addressKey(address: string, options: AddressOptions = {}): string | undefined {
  if (typeof address !== "string") throw new InputError("address", "a string", address);
  const bytes = parseAddress(address);
  return bytes === undefined ? undefined : keyOf(bytes, options);
}
