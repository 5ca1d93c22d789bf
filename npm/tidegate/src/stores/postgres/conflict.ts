/** Errors of a client, and statements that the server undid because of concurrent transactions: only these are sent again. */
import { show } from "../../limit/errors.ts";

const SERIALIZATION_FAILURE = "40001";
const DEADLOCK_DETECTED = "40P01";
const LOCK_NOT_AVAILABLE = "55P03";
/** The exception of `in_time`; see `schema/calls.sql`. */
const TOO_LATE = "TG002";
/** ms; the wait is drawn evenly from 0 to twice as much each time, and never above the last. */
const FIRST_WAIT = 2;
const MOST_WAIT = 50;
/** A wait is at most this part of the time left, so that calls become more persistent as their deadlines come closer. */
const PART_OF_REST = 1 / 4;

/** What is known about a failed statement: `undone` names the reason why the server undid it as a whole. */
export interface Fault {
  readonly message: string;
  readonly code: string | undefined;
  readonly undone: "conflict" | "lock" | "late" | undefined;
}

/** Reads what a client rejected with, which may be any value. */
export function faultOf(error: unknown): Fault {
  const { code, message } = (typeof error === "object" && error !== null ? error : {}) as {
    code?: unknown;
    message?: unknown;
  };
  const given = typeof code === "string" && code !== "" ? code : undefined;
  const text = typeof message === "string" ? message : typeof error === "string" ? error : "";
  return {
    message: text !== "" ? text : (given ?? `the client rejected with ${show(error)} in place of an error`),
    code: given,
    undone:
      given === SERIALIZATION_FAILURE || given === DEADLOCK_DETECTED
        ? "conflict"
        : given === LOCK_NOT_AVAILABLE
          ? "lock"
          : given === TOO_LATE
            ? "late"
            : undefined,
  };
}

/** Waits before the next try. `false`: no time is left until then (`performance.now()`). */
export async function pause(tries: number, until: number): Promise<boolean> {
  const rest = until - performance.now();
  const wait = Math.random() * Math.min(MOST_WAIT, FIRST_WAIT * 2 ** tries, rest * PART_OF_REST);
  if (!(rest > 1)) return false;
  await new Promise((resolve) => setTimeout(resolve, wait));
  return true;
}
