/**
 * The key of a limit's state on the server: `prefix`, then `name`, `/shard` where shards live apart, `:key` if there
 * is a key. Names have neither of the two delimiters, so no two limits share a key.
 */
import { InputError } from "../../limit/errors.ts";
import type { Key } from "../contract.ts";

/** The Redis key. `shard` is given where shards live apart. */
export function redisKeyOf(
  prefix: string,
  name: string,
  shard: number | undefined,
  key: Key,
  tag: string | undefined,
): string {
  let identity = shard === undefined ? name : `${name}/${shard}`;
  if (key !== undefined) identity += isWellFormed(key) ? `:${key}` : `;${units(key)}`;
  if (tag !== undefined) return `${prefix}{${quoted(tag)}}${identity}`;
  // A brace in a caller's key must not choose the slot: an empty tag makes the server hash the whole key.
  return identity.includes("{") ? `${prefix}{}${identity}` : prefix + identity;
}

/** The name and key that {@link redisKeyOf} wrote, without a shard; `undefined` if it is another key. */
export function nameAndKeyOf(prefix: string, redisKey: string): { name: string; key: Key } | undefined {
  if (!redisKey.startsWith(prefix)) return undefined;
  const identity = redisKey.slice(prefix.length).replace(/^\{[^}]*\}/, "");
  const [, name, delimiter, rest = ""] = /^([^:;/]+)(?:([:;])(.*))?$/s.exec(identity) ?? [];
  if (name === undefined) return undefined;
  if (delimiter !== ";") return { name, key: delimiter === undefined ? undefined : rest };
  const unit = (hex: string): string => String.fromCharCode(Number.parseInt(hex, 16));
  return { name, key: (rest.match(/.{4}/g) ?? []).map(unit).join("") };
}

// In ES2024, and long before in every host that this runs on.
const isWellFormed = (key: string): boolean => (key as string & { isWellFormed(): boolean }).isWellFormed();

/** UTF-8 has no form for half a surrogate pair: such a key is written as its code units, after a `;`. */
function units(key: string): string {
  let hex = "";
  for (let i = 0; i < key.length; i++) hex += key.charCodeAt(i).toString(16).padStart(4, "0");
  return hex;
}

/** A tag ends at the first `}` and must not be empty. */
function quoted(tag: unknown): string {
  if (typeof tag !== "string") throw new InputError("tag", "a string or undefined, from the function `tag`", tag);
  if (tag === "") return "%";
  const text = tag.replace(/[%{}]/g, (c) => `%${c.charCodeAt(0).toString(16)}`);
  return isWellFormed(text) ? text : `%;${units(tag)}`;
}

const SLOTS = 16_384;
const CRC16 = new Uint16Array(256).map((_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
  return crc;
});
/** Made for the first slot: in Jest's jsdom, which has none, the store is imported all the same. */
let encoder: TextEncoder | undefined;

/**
 * The cluster slot of a key, 0 to 16383: CRC16 (XMODEM) of its hash tag, or if it has none, of all of it. Not the
 * package cluster-key-slot: after an empty tag it takes a later one (`{}a{b}`), and the server hashes the whole key.
 */
export function slotOf(key: string): number {
  const open = key.indexOf("{");
  const close = open < 0 ? -1 : key.indexOf("}", open + 1);
  const hashed = close > open + 1 ? key.slice(open + 1, close) : key;
  let crc = 0;
  encoder ??= new TextEncoder();
  for (const byte of encoder.encode(hashed)) crc = ((crc << 8) ^ (CRC16[((crc >> 8) ^ byte) & 0xff] ?? 0)) & 0xffff;
  return crc % SLOTS;
}
