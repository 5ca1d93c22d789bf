/** What the functions answer, and how a state of theirs is read. */
import type { State } from "../../limit/decision.ts";

/** What a row held: a state, nothing, or `"corrupt"`. */
export type Before = State | null | "corrupt";

/** A state from its two texts; empty ones are none. */
export function stateOf(value: string | undefined, ts: string | undefined): Before {
  if (value === "" || value === undefined) return null;
  const state = { value: Number(value), ts: Number(ts) };
  return Number.isFinite(state.value) && Number.isFinite(state.ts) && ts !== "" ? state : "corrupt";
}

/** The parts of an answer, split at `separator`; throws where it is not the functions'. */
export function partsOf(answer: unknown, separator: string, least: number): string[] {
  const parts = typeof answer === "string" ? answer.split(separator) : [];
  if (parts.length < least || !(Number(parts[0]) >= 0)) {
    throw new TypeError("the answer is not one of tidegate's functions; is the migration the one of this version?");
  }
  return parts;
}

/** A list's parts; none where there is nothing. */
export function listOf(text: string | undefined): string[] {
  return text === undefined || text === "" ? [] : text.split(",");
}
