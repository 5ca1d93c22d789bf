/** Keys and times as Memcached's protocol takes them. */
import { generalizedUtf8 } from "../../engine/utf8.ts";
import { sha256 } from "../../http/sha256.ts";

/** The server takes 250; the rest is left to a namespace of the client. */
const KEY_MOST = 200;
const PLAIN = /[\w.:/@+=,~-]/;

/**
 * The key of a state: `prefix:identity`. Every character that a client or the protocol does not send unchanged is written
 * as `%` and two digits for each byte of its (generalized) UTF-8: spaces, which end a key, and `$`, which one client
 * takes for a pattern. A key that is too long becomes its hash after a `#`, with which no identity begins.
 */
export function keyOf(prefix: string, id: string): string {
  const bytes = generalizedUtf8(id);
  let key = `${prefix}:`;
  for (const byte of bytes) {
    const character = String.fromCharCode(byte);
    key += PLAIN.test(character) ? character : `%${byte.toString(16).padStart(2, "0")}`;
    if (key.length > KEY_MOST) return `${prefix}:#${sha256(bytes)}`;
  }
  return key;
}

const WAIT_MOST = 30 * 24 * 3600;
/** The server reads 32 bits. What is full later than that (2038) is evicted when there is no room. */
const TIME_MOST = 2 ** 31 - 1;
/** Seconds for which a full state is kept: by then it is full by the clocks of other processes too. */
const SLACK = 60;
/** The same where the server's clock must reach a time. */
const SLACK_OF_TIMES = 3600;

/**
 * When the server drops a state that is full in `fullIn` ms, in the protocol's seconds: 0 is never, up to 30 days a
 * duration, above that a Unix time. `wall` is the current time, epoch ms.
 */
export function exptimeOf(fullIn: number, wall: number): number {
  const wait = Math.ceil(fullIn / 1000) + SLACK;
  if (wait <= WAIT_MOST) return wait;
  const time = Math.ceil(wall / 1000) + wait + SLACK_OF_TIMES;
  return time <= TIME_MOST ? time : 0;
}
