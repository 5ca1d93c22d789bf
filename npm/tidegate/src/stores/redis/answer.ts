/** What the script answers: the server's clock, how many requests it granted, and what each key held before. */

import type { State } from "../../limit/decision.ts";

/** What a key held: a state, nothing, or something that is not a state (what it is instead). */
export type Before = State | null | string;

export interface Answer {
  readonly now: number;
  readonly granted: number;
  readonly before: readonly Before[];
}

const WRONG: Readonly<Record<string, string>> = {
  "2": "a state must be 16 bytes; the value under this key is not",
  "3": "a state must be two finite little-endian doubles; got one that is not finite",
  "4": "a state must be a string; the value under this key is of another type",
};
const HEAD_BYTES = 16;
const KEY_BYTES = 17;

const LATE = /^late (\d+)$/;
const LATE_BYTES = 18;

/** The server's clock, ms, where the answer is that the call came after its deadline and did nothing. */
export function readLate(reply: unknown): number | undefined {
  const bytes = reply instanceof Uint8Array && reply.length === LATE_BYTES;
  const text = bytes ? String.fromCharCode(...reply) : reply;
  const found = typeof text === "string" ? LATE.exec(text) : null;
  return found === null ? undefined : Number(found[1]);
}

/** Reads an answer about `keys` keys, or throws where it is not one. */
export function readAnswer(reply: unknown, keys: number): Answer {
  const answer =
    typeof reply === "string" ? fromText(reply) : reply instanceof Uint8Array ? fromBytes(reply) : undefined;
  if (answer === undefined || answer.before.length !== keys || !Number.isFinite(answer.now)) {
    throw new TypeError("the server's answer is not one of the script's");
  }
  return answer;
}

function fromBytes(bytes: Uint8Array): Answer | undefined {
  if (bytes.length < HEAD_BYTES || (bytes.length - HEAD_BYTES) % KEY_BYTES !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const before: Before[] = [];
  for (let at = HEAD_BYTES; at < bytes.length; at += KEY_BYTES) {
    const found = bytes[at];
    if (found === 0x31) before.push({ value: view.getFloat64(at + 1, true), ts: view.getFloat64(at + 9, true) });
    else before.push(found === 0x30 ? null : wrong(String.fromCharCode(found ?? 0)));
  }
  return { now: view.getFloat64(0, true), granted: view.getFloat64(8, true), before };
}

function fromText(text: string): Answer | undefined {
  const [head = "", ...keys] = text.split(";");
  const [word, now, granted] = head.split(" ");
  if (word !== "now") return undefined;
  const before = keys.map((key): Before => {
    const [found = "", value, ts] = key.split(" ");
    if (found === "1") return { value: Number(value), ts: Number(ts) };
    return found === "0" ? null : wrong(found);
  });
  return { now: Number(now), granted: Number(granted), before };
}

function wrong(found: string): string {
  return WRONG[found] ?? "the script's answer about this key cannot be read";
}
