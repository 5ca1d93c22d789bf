/** The state of one key, for people and for programs. */
import type { Config, Decision, KeyOptions, Limiter, Store } from "../index.ts";
import { DAY, HOUR, MINUTE, SECOND } from "../limit/duration.ts";
import type { KeyValues } from "../policies/target.ts";
import { visible } from "./output.ts";

/** The state of one key, with the fields of a check of `count` tokens. Times are epoch ms of the store's clock. */
interface KeyState extends Pick<Decision, "limit" | "ok" | "retryAt" | "retryAfter" | "reason" | "resetAt" | "now"> {
  readonly name: string;
  /** As it was given; absent for a limit that all share. */
  readonly key?: KeyValues | undefined;
  /** Tokens at `now`, which the check does not take; negative while tokens are owed. */
  readonly value: number;
  readonly count: number;
  readonly config: Config;
}

/** One key, as the limiter takes it. */
export type Target = KeyOptions & { readonly config: Config };

/** A decision of the store. Throws the store's error if it failed, and the decision was made without it. */
export function ofStore(decision: Decision): Decision {
  if (decision.degraded === true) throw decision.cause;
  return decision;
}

/** Reads the state. Throws the store's error if it fails. */
export async function readState(
  limits: Limiter<string, Store>,
  name: string,
  target: Target,
  given: KeyValues | undefined,
  count: number,
): Promise<KeyState> {
  const next = ofStore(await limits.check(name, { ...target, count }));
  const state = ofStore(await limits.check(name, { ...target, count: 0 }));
  const { config } = await limits.getValue(name, target);
  const { ok, retryAt, reason } = next;
  const { value, limit, resetAt, now } = state;
  // The two are some ms apart.
  const retryAfter = retryAt === undefined ? undefined : Math.max(retryAt - now, 0);
  return { name, key: given, value, limit, count, ok, retryAt, retryAfter, reason, resetAt, now, config };
}

const UNITS = Object.entries({ d: DAY, h: HOUR, min: MINUTE, s: SECOND });

/** A time in its two largest units: `14 min 3 s`. */
export function spanText(ms: number): string {
  const at = UNITS.findIndex(([, size]) => ms >= size);
  if (at < 0) return `${ms} ms`;
  let rest = ms;
  const parts = UNITS.slice(at, at + 2).map(([unit, size]) => {
    const count = Math.floor(rest / size);
    rest -= count * size;
    return count === 0 ? "" : `${count} ${unit}`;
  });
  return parts.filter((part) => part !== "").join(" ");
}

/** A number of at most three decimals. */
export const rounded = (value: number): string => `${Math.round(value * 1000) / 1000}`;
const tokens = (count: number): string => `${rounded(count)} ${count === 1 ? "token" : "tokens"}`;
/** A time in UTC. */
export const at = (ms: number): string => (Math.abs(ms) <= 8.64e15 ? new Date(ms).toISOString() : `${ms} ms`);

function limitText({ kind, rate, period, capacity = rate }: Config): string {
  const per = typeof period === "number" ? spanText(period) : period;
  return `${kind}: ${rate} per ${per}, capacity ${capacity}`;
}

function keyText(key: KeyValues | undefined): string {
  if (key === undefined) return "(one limit that all share)";
  return visible(typeof key === "string" ? key : JSON.stringify(key));
}

/** The lines that a person reads. */
export function stateLines(state: KeyState): string[] {
  const { name, key, value, limit, count, ok, retryAt, retryAfter = 0, reason, resetAt, now, config } = state;
  const owed = value < 0 ? `; ${tokens(-value)} owed, for a block, a charge or a reservation` : "";
  const full = resetAt <= now ? "now, as is a key without calls" : `in ${spanText(resetAt - now)}, at ${at(resetAt)}`;
  const call = `a call for ${tokens(count)}`;
  const next = ok
    ? `${call} is granted now`
    : retryAt === undefined
      ? `${call} is never granted: it ${reason}`
      : `${call} is denied for ${spanText(retryAfter)}, until ${at(retryAt)}`;
  return [
    `${name} ${keyText(key)}`,
    `  state  ${rounded(value)} of ${tokens(limit)}${owed}`,
    `  next   ${next}`,
    `  full   ${full}`,
    `  limit  ${limitText(config)}`,
  ];
}
