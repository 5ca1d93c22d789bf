/** One second, in ms. */
export const SECOND = 1000;
/** One minute, in ms. */
export const MINUTE: number = 60 * SECOND;
/** One hour, in ms. */
export const HOUR: number = 60 * MINUTE;
/** One day of 24 hours, in ms. */
export const DAY: number = 24 * HOUR;
/** One week of 7 days, in ms. */
export const WEEK: number = 7 * DAY;

/** The longest delay of a host's timer, ms: a timer with a longer delay fires immediately. */
export const LONGEST_TIMER: number = 2 ** 31 - 1;

/**
 * The delay of a timer for what is due in so many ms. The timer is then set again: a host's timers stand still while the machine
 * sleeps, or a function of AWS Lambda is frozen. What fell due meanwhile is late by a minute, or a sixtieth of the wait, at most;
 * a wait of a year takes some 600 timers.
 */
export const delayFor = (ms: number): number => Math.min(ms, Math.max(MINUTE, Math.ceil(ms / 60)), LONGEST_TIMER);

/** A length of time: ms, or a string with a unit, such as `"500ms"`, `"30s"`, `"15m"`, `"1h"`, `"1d"` or `"1w"`. */
export type Duration = number | `${number}${"ms" | "s" | "m" | "h" | "d" | "w"}`;

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: SECOND, m: MINUTE, h: HOUR, d: DAY, w: WEEK };

/** The ms of a duration; returns anything else unchanged, so that the check of the number rejects it. */
export function inMs(duration: unknown): unknown {
  const [, amount, unit = ""] =
    (typeof duration === "string" && /^(\d+(?:\.\d+)?)(ms|s|m|h|d|w)$/.exec(duration)) || [];
  if (amount === undefined) return duration;
  const ms = Number(amount) * (UNITS[unit] as number);
  const whole = Math.round(ms);
  // A decimal fraction has no exact double: 1.005 * 1000 is 1004.9999999999999.
  return Math.abs(ms - whole) <= ms * Number.EPSILON ? whole : ms;
}
