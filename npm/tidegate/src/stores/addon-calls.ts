import type { AllDecision, Decision } from "../limit/decision.ts";
import { decisionOf } from "../engine/answer.ts";
import { KEY_EXPECTS, MAX_KEY_BYTES } from "../engine/generated/bounds.ts";
import { NO_KEY, NUMBERS, OK, STATUS_AT } from "../engine/generated/wire.ts";
import { InputError } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { Call } from "./contract.ts";

export function tooLong(key: string | undefined): InputError {
  return new InputError("key", KEY_EXPECTS, key, `${new TextEncoder().encode(key).length} bytes`);
}

/** Room for the answers to so many calls. */
export function answersTo(calls: number): Float64Array {
  return new Float64Array(new ArrayBuffer(calls * NUMBERS * Float64Array.BYTES_PER_ELEMENT));
}

/** The decisions that an array of answers stands for, eight numbers each. */
export function told(answers: Float64Array, limits: readonly Limit[], now: number): Decision[] {
  return limits.map((limit, i) => {
    const numbers = answers.subarray(i * NUMBERS, (i + 1) * NUMBERS);
    return decisionOf(numbers[STATUS_AT] as number, numbers, limit.policy, now);
  });
}

/** The keys' characters one after another, and where each ends. */
export function joined(keys: readonly (string | undefined)[]): { units: Uint16Array; ends: Uint32Array } {
  const ends = new Uint32Array(keys.length);
  let length = 0;
  for (const [i, key] of keys.entries()) {
    if (key !== undefined && key.length > MAX_KEY_BYTES) throw tooLong(key);
    length += key?.length ?? 0;
    ends[i] = key === undefined ? NO_KEY : length;
  }
  const units = new Uint16Array(length);
  let at = 0;
  for (const key of keys) {
    if (key !== undefined) for (let i = 0; i < key.length; i++) units[at++] = key.charCodeAt(i);
  }
  return { units, ends };
}

/** What a call on several limits hands over. */
export interface Staged {
  units: Uint16Array;
  ends: Uint32Array;
  /** Eight numbers for each: on the way in its count and whether tokens may be owed. */
  answers: Float64Array;
  takes: boolean;
  /** The count that an error would be about. */
  wrong: number | undefined;
}

export function staged(calls: readonly Call[]): Staged {
  const answers = answersTo(calls.length);
  for (const [i, { count, reserve }] of calls.entries()) {
    answers.set([count, reserve ? 1 : 0], i * NUMBERS);
  }
  return {
    ...joined(calls.map((call) => call.key)),
    answers,
    takes: calls.every((call) => call.op === "take"),
    wrong: (calls.find(({ count }) => !(count >= 0)) ?? calls[0])?.count,
  };
}

/** The answer to all of them. */
export function settled(
  calls: readonly Call[],
  answers: Float64Array,
  status: number,
  retryAt: number,
  now: number,
): AllDecision {
  const waits = !Number.isNaN(retryAt);
  return {
    ok: (status & OK) !== 0,
    retryAt: waits ? retryAt : undefined,
    retryAfter: waits ? retryAt - now : undefined,
    decisions: told(
      answers,
      calls.map((call) => call.limit),
      now,
    ),
  };
}
