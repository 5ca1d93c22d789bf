/**
 * The base of stores whose database compares and swaps: read, decide here, write if nothing has changed meanwhile. If
 * another process was faster, all of it is done again. Calls of this process that have a limit and key in common share a
 * step: those that are made while one is out share the next. It reads once, decides on the calls one after another, and
 * writes once.
 */
import { messageOf } from "../limit/errors.ts";
import { overdueTimers, within } from "../limit/monotonic.ts";
import type { AsyncStore } from "./contract.ts";
import { idsOf, KeyError, LITTLE_TIME, NOT_SENT, whyLate } from "./failure.ts";
import { type Run, storeOf } from "./steps.ts";
import { attempt } from "./swap/attempt.ts";
import { batching } from "./swap/batches.ts";
import type { Swappable } from "./swap/database.ts";
import { RoundTrips, type RoundTripsByKind } from "./swap/round-trips.ts";
import { firstDeadline, inTime, type Until, type Waiting } from "./swap/waiting.ts";

const STEP_TIMEOUT = 10_000;
/**
 * Most steps under way. A client sends in order: without this bound all reads of a burst on many keys come before its first
 * write. Then all of them are late, instead of the last ones.
 */
const MOST_STEPS = 128;
/** Ms by which a timer may fire early. */
const TIMER_EARLY = 1;
const TRIPS = 2.1;
/** Ms of the longest pause between two attempts. */
const PAUSE_MOST = 100;

/** The store on this database. */
export function swapStore<Version>(database: Swappable<Version>): AsyncStore {
  return storeOf(database.name, swapping(database));
}

/** The steps of {@link swapStore}, for a store that adds to them. */
export function swapping<Version>(database: Swappable<Version>): Run {
  const trips: RoundTripsByKind = { read: new RoundTrips(), write: new RoundTrips() };
  const add = batching(place, database.sharding !== undefined);
  let underWay = 0;
  /** Steps that begin when others end. */
  const queued: (() => void)[] = [];

  async function place(batch: readonly Waiting[], begin: () => void): Promise<void> {
    let calls = batch;
    await enter();
    begin();
    for (;;) {
      const overdue = overdueTimers(Math.min(...calls.map(({ deadline }) => deadline.at)));
      if (overdue === undefined) break;
      // In no place: a process that is too busy may make more calls in each turn of its event loop than there are places.
      leave();
      await overdue;
      calls = inTime(calls, performance.now(), NOT_SENT);
      if (calls.length === 0) return;
      await enter();
    }
    await step(calls);
    leave();
  }

  async function enter(): Promise<void> {
    if (underWay < MOST_STEPS) underWay++;
    else await new Promise<void>((resolve) => queued.push(resolve));
  }

  function leave(): void {
    const begin = queued.shift();
    if (begin === undefined) underWay--;
    else begin();
  }

  async function step(batch: readonly Waiting[]): Promise<void> {
    const began = performance.now();
    for (const { deadline, since } of inTime(batch, began, NOT_SENT)) deadline.why = whyLate(deadline, since);
    const limit = began + (database.stepTimeout ?? STEP_TIMEOUT);
    const until: Until = { at: Math.min(limit, Math.max(...batch.map(({ deadline }) => deadline.at))) };
    const late = (): void => {
      const error = new Error(`no answer within ${Math.round(until.at - began)} ms`);
      for (const { deadline, reject } of batch) reject(deadline.why ?? error);
    };
    try {
      await within(until.at - began, attempts(batch, until), late, until);
    } catch (error) {
      if (isLate(error, until)) return late();
      for (const { reject } of batch) reject(error);
    }
  }

  /**
   * The calls that can still be answered; if some have time for a read and a write, or steps wait for a place, those that
   * have it. Rejects the others. The first deadline of a batch is that of its write: with a few calls in each that are nearly
   * late, all of a busy key would fail. So would all calls of a server that gets more than it can carry: the oldest begin
   * first, and their reads would take the time of the others. What ended before these calls were made does not count.
   */
  function worthwhile(calls: readonly Waiting[]): Waiting[] {
    const now = performance.now();
    const left = inTime(calls, now, NOT_SENT);
    const { read, write } = trips;
    const { since } = calls[0] as Waiting;
    // As slow as reads if none has ended: checks and denials have none.
    const writes = (write.ended > since && write.usual) || read.usual;
    const enough = now + ((database.trips ?? TRIPS) / 2) * (read.usual + writes);
    const isLoaded = queued.length > 0 && read.ended > since;
    return isLoaded || left.some(({ deadline }) => deadline.at > enough) ? inTime(left, enough, LITTLE_TIME) : left;
  }

  async function attempts(batch: readonly Waiting[], until: Until): Promise<void> {
    let calls = batch;
    let refusals = 0;
    while (calls.length > 0) {
      await overdueTimers(firstDeadline(calls, until));
      calls = worthwhile(calls);
      // Every caller has been answered: tokens that are taken now would be lost.
      if (calls.length === 0) return;
      const outcome = await attempt(database, calls, until, trips);
      if ("unread" in outcome) return apart(calls, outcome.unread, until);
      if ("refused" in outcome) {
        await pauseAfter(++refusals, outcome.refused, calls, until);
      } else {
        for (const end of outcome.ends) end();
        calls = calls.slice(outcome.ends.length);
        refusals = 0;
      }
    }
  }

  /** After a read that failed, perhaps for the keys of some of these calls: those on the same keys have their own attempts. */
  async function apart(calls: readonly Waiting[], failure: unknown, until: Until): Promise<void> {
    const alike = new Map<string, Waiting[]>();
    for (const call of calls) {
      const ids = call.ids.join("\0");
      const some = alike.get(ids);
      if (some === undefined) alike.set(ids, [call]);
      else some.push(call);
    }
    if (alike.size === 1) throw failure;
    for (const some of alike.values()) {
      try {
        await attempts(some, until);
      } catch (error) {
        if (isLate(error, until)) throw error;
        for (const { reject } of some) reject(error);
      }
    }
  }

  return (targets, now, deadline, body) =>
    new Promise((resolve, reject) => {
      const due = deadline ?? { at: Infinity };
      due.why = NOT_SENT;
      const since = performance.now();
      add({ targets, ids: idsOf(targets), body, now, deadline: due, since, resolve, reject });
    });
}

/**
 * Whether this ended at the deadline, which may have moved since: its client, its server or the store itself ended a request.
 * Why it took so long is the cause then.
 */
const isLate = (error: unknown, until: Until): boolean =>
  (error as { name?: unknown } | undefined)?.name === "AbortError" || performance.now() > until.at - TIMER_EARLY;

/** Sets why the calls are not stored yet, and pauses. Rejects if no time is left for another attempt. */
async function pauseAfter(refusals: number, failure: unknown, calls: readonly Waiting[], until: Until): Promise<void> {
  const times = refusals === 1 ? "1 attempt" : `${refusals} attempts`;
  const message = `not stored in ${times}: ${messageOf(failure)}`;
  const notStored = failure instanceof KeyError ? new KeyError(message, failure.answered) : new Error(message);
  for (const { deadline } of calls) deadline.why = notStored;
  // Longer after each attempt, and random: callers that collided would otherwise collide again.
  const pause = Math.random() * Math.min(PAUSE_MOST, 2 ** refusals);
  if (performance.now() + pause > until.at) throw notStored;
  await new Promise((resolve) => setTimeout(resolve, pause));
}
