/**
 * The base of stores whose database compares and swaps: read, decide here, write if nothing has changed meanwhile. Where
 * another process was faster, all of it is done again. Calls of this process on one limit and key that are made while a
 * step is out share the next one. That reads once, decides on the calls one after another, and writes once.
 */
import type { State } from "../limit/decision.ts";
import { messageOf, readable } from "../limit/errors.ts";
import type { Sharding } from "../limit/shards.ts";
import type { AsyncStore, Deadline } from "./contract.ts";
import { idsOf, KeyError } from "./failure.ts";
import { type Run, SLACK, Steps, storeOf, type Transaction } from "./steps.ts";
import { overdueTimers } from "../limit/steady.ts";
import { LITTLE_TIME, NOT_SENT, Turns, whyLate, within } from "./turns.ts";

/** What is stored under an identity; `value` is `undefined` where nothing is. */
export interface Entry<Version> {
  readonly value: unknown;
  /** What the write compares. */
  readonly version: Version;
}

/** What to store under an identity; `state` is `null` to delete it. */
export interface Write {
  readonly state: State | null;
  /** Ms until the database may drop the entry. */
  readonly dropIn: number;
}

/** One identity of a step. */
export interface Change<Version> {
  readonly id: string;
  /** What the step has read; `undefined` where it has read nothing. */
  readonly seen: Entry<Version> | undefined;
  /** What it writes; `undefined` where it only reads, and what it has read must be unchanged. */
  readonly write: Write | undefined;
}

/** Entries that others write, or that are used too often, fail alone: calls on others go on. */
export type Busy = "entries" | "database";

/** The database, as this base uses it. */
export interface Swappable<Version> {
  readonly name: string;
  /** What is stored under these identities, all at one time, in their order. No result is waited for after `until`. */
  read(ids: readonly string[], until: number): Promise<readonly Entry<Version>[]>;
  /** Reads a stored value, or throws a `NotAState`. */
  decode(value: unknown): State;
  /**
   * Writes all of it if everything that was seen is unchanged, in one atomic step, before `until`; otherwise `false`. Where
   * the server can refuse a write that is late, it does from `first` on, the first deadline of the step's calls: what is
   * taken after it is lost to that call.
   */
  swap(
    changes: readonly Change<Version>[],
    times: { readonly until: number; readonly first: number },
  ): Promise<boolean>;
  /** Whether `swap` compares every entry: what a step has not read (a reset reads nothing) is then read before it. */
  readonly comparesAll?: boolean;
  /**
   * What is busy where an error means that nothing was done and another attempt may succeed: entries of the step, or the
   * whole database. `undefined`: the error means anything else.
   */
  busy?(error: unknown): Busy | undefined;
  /** Why a read or a write may have no reply while the server works, such as a lock that a write waits for. */
  readonly unanswered?: { readonly read?: Error; readonly write: Error } | undefined;
  /** Round trips of a step, for which the time of its calls must suffice; default 2.1: a read, a write and a little more. */
  readonly trips?: number | undefined;
  /** Most ms of one step, its attempts included; default 10,000. How long a caller waits is its deadline. */
  readonly stepTimeout?: number;
  /** Without it, a limit with `shards` is one row. */
  readonly sharding?: Sharding | undefined;
}

interface Waiting {
  readonly body: (steps: Steps) => Promise<unknown>;
  readonly now: number | undefined;
  readonly deadline: NonNullable<Deadline>;
  /** When it was made (`performance.now()`, ms). */
  readonly since: number;
  resolve(result: unknown): void;
  reject(error: unknown): void;
}

/** When a step is no longer waited for (`performance.now()`, ms): later where this process did not run at that time. */
interface Until {
  at: number;
}

/** When the first of these calls is no longer waited for, `until` at the latest. */
const firstDeadline = (calls: readonly Waiting[], until: Until): number =>
  Math.min(until.at, ...calls.map(({ deadline }) => deadline.at));

/** How a call ends once its step is written. */
type End = () => void;

const STEP_TIMEOUT = 10_000;
/** Most calls of a step: until it has decided on them, the process does nothing else. */
const MOST_CALLS = 1000;
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

/** The calls whose deadline is later than `by` (`performance.now()`, ms); rejects the others. */
function inTime(calls: readonly Waiting[], by: number, reason: Error): Waiting[] {
  return calls.filter(({ deadline, reject }) => {
    if (deadline.at > by) return true;
    reject(deadline.why ?? reason);
    return false;
  });
}

/** The store on this database. */
export function swapStore<Version>(database: Swappable<Version>): AsyncStore {
  return storeOf(database.name, swapping(database));
}

/** The steps of {@link swapStore}, for a store that adds to them. */
export function swapping<Version>(database: Swappable<Version>): Run {
  return new Swaps(database).run;
}

class Swaps<Version> {
  readonly #database: Swappable<Version>;
  readonly #turns = new Turns();
  /** Batches whose step is still to begin, by identity. */
  readonly #open = new Map<string, Waiting[]>();
  readonly #trips: TripsByKind = { read: new Trips(), write: new Trips() };
  #underWay = 0;
  /** Steps that begin when others end. */
  readonly #next: (() => void)[] = [];

  constructor(database: Swappable<Version>) {
    this.#database = database;
  }

  readonly run: Run = (targets, now, deadline, body) =>
    new Promise((resolve, reject) => {
      const ids = idsOf(targets);
      const due = deadline ?? { at: Infinity };
      due.why = NOT_SENT;
      const since = performance.now();
      const call = { body, now, deadline: due, since, resolve, reject };
      const [id] = ids;
      const open = ids.length === 1 ? this.#open.get(id as string) : undefined;
      if (open !== undefined && open.length < MOST_CALLS) return void open.push(call);
      const batch = [call];
      if (ids.length === 1) this.#open.set(id as string, batch);
      void this.#turns.run(ids, () => this.#place(() => this.#step(ids, batch)));
    });

  async #place(step: () => Promise<void>): Promise<void> {
    if (this.#underWay < MOST_STEPS) this.#underWay++;
    else await new Promise<void>((resolve) => this.#next.push(resolve));
    await step();
    const next = this.#next.shift();
    if (next === undefined) this.#underWay--;
    else next();
  }

  async #step(ids: readonly string[], batch: readonly Waiting[]): Promise<void> {
    // Calls of the same turn join.
    await undefined;
    if (this.#open.get(ids[0] as string) === batch) this.#open.delete(ids[0] as string);
    await overdueTimers(Math.min(...batch.map(({ deadline }) => deadline.at)));
    const began = performance.now();
    for (const { deadline, since } of inTime(batch, began, NOT_SENT)) deadline.why = whyLate(deadline, since);
    const limit = began + (this.#database.stepTimeout ?? STEP_TIMEOUT);
    const until: Until = { at: Math.min(limit, Math.max(...batch.map(({ deadline }) => deadline.at))) };
    const late = (): void => {
      const error = new Error(`no answer within ${Math.round(until.at - began)} ms`);
      for (const { deadline, reject } of batch) reject(deadline.why ?? error);
    };
    try {
      await within(until.at - began, this.#attempts(ids, batch, until), late, until);
    } catch (error) {
      // Its client, its server or the store itself ended a request at the deadline, which may have moved since. Why it took
      // so long is the cause.
      const isAborted = (error as { name?: unknown } | undefined)?.name === "AbortError";
      if (isAborted || performance.now() > until.at - TIMER_EARLY) return late();
      for (const { reject } of batch) reject(error);
    }
  }

  /**
   * The calls that can still be answered; where some have time for a read and a write, or steps wait for a place, those that
   * have it. Rejects the others. The first deadline of a batch is that of its write: with a few calls in each that are nearly
   * late, all of a busy key would fail. So would all calls of a server that gets more than it can carry: the oldest begin
   * first, and their reads would take the time of the others. What ended before these calls were made does not count.
   */
  #worthwhile(calls: readonly Waiting[]): Waiting[] {
    const now = performance.now();
    const left = inTime(calls, now, NOT_SENT);
    const { read, write } = this.#trips;
    const { since } = calls[0] as Waiting;
    // As slow as reads where none has ended: checks and denials have none.
    const writes = (write.ended > since && write.usual) || read.usual;
    const enough = now + ((this.#database.trips ?? TRIPS) / 2) * (read.usual + writes);
    const isLoaded = this.#next.length > 0 && read.ended > since;
    return isLoaded || left.some(({ deadline }) => deadline.at > enough) ? inTime(left, enough, LITTLE_TIME) : left;
  }

  async #attempts(ids: readonly string[], batch: readonly Waiting[], until: Until): Promise<void> {
    let calls = batch;
    let refusals = 0;
    for (;;) {
      await overdueTimers(firstDeadline(calls, until));
      calls = this.#worthwhile(calls);
      // Every caller has been answered: what is taken now would be lost.
      if (calls.length === 0) return;
      const outcome = await this.#attempt(ids, calls, until);
      if ("refused" in outcome) {
        await pauseAfter(++refusals, outcome.refused, calls, until);
      } else {
        for (const end of outcome.ends) end();
        calls = calls.slice(outcome.ends.length);
        refusals = 0;
      }
    }
  }

  /** Rejects where another attempt would fail, too. */
  async #attempt(ids: readonly string[], calls: readonly Waiting[], until: Until): Promise<Outcome> {
    try {
      const attempt = new Attempt(this.#database, calls, until, this.#trips);
      const ends = await attempt.decide(ids);
      const refused = await attempt.write();
      return refused === undefined ? { ends } : { refused };
    } catch (thrown) {
      const error = readable(thrown);
      const busy = this.#database.busy?.(error);
      if (busy === undefined) throw error;
      return {
        refused: busy === "entries" && !(error instanceof KeyError) ? new KeyError(messageOf(error), true) : error,
      };
    }
  }
}

/** What an attempt came to: how the calls that it decided on end, or why nothing was written, though another may succeed. */
type Outcome = { readonly ends: readonly End[] } | { readonly refused: unknown };

/** Sets why the calls are not stored yet, and pauses. Rejects where no time is left for another attempt. */
async function pauseAfter(refusals: number, failure: unknown, calls: readonly Waiting[], until: Until): Promise<void> {
  const times = refusals === 1 ? "1 attempt" : `${refusals} attempts`;
  const message = `not stored in ${times}: ${messageOf(failure)}`;
  const notStored = failure instanceof KeyError ? new KeyError(message, failure.answered) : new Error(message);
  for (const { deadline } of calls) deadline.why = notStored;
  // Longer each time and never the same, so that callers that met once do not meet again.
  const pause = Math.random() * Math.min(PAUSE_MOST, 2 ** refusals);
  if (performance.now() + pause > until.at) throw notStored;
  await new Promise((resolve) => setTimeout(resolve, pause));
}

type TripsByKind = Readonly<Record<"read" | "write", Trips>>;

/** How long trips of one kind to the database take. */
class Trips {
  /** Ms of the last one, and of one before it that was not out when none ended. */
  #times: readonly [number, number] = [0, 0];
  /** When the last one ended, and when one did after none had for half of its time (`performance.now()`, ms). */
  ended = -Infinity;
  #resumed = -Infinity;
  /** When the one that ended last was sent. */
  #sent = -Infinity;

  /** Ms. All that are out while none ends may wait for a connection, or for this process. */
  get usual(): number {
    return Math.min(...this.#times);
  }

  /** One that was sent then has ended. */
  add(sent: number): void {
    const now = performance.now();
    const ms = now - sent;
    const [last, before] = this.#times;
    // Overtaken in less than half of its time: it waited for something of its own, as a write does for a lock.
    if (sent < this.#sent && ms > 2 * last) return;
    this.#sent = sent;
    if (now - this.ended > ms / 2) {
      this.#resumed = now;
      this.#times = [ms, last];
    } else this.#times = [ms, sent < this.#resumed ? before : ms];
    this.ended = now;
  }
}

/** One attempt of a step: reads what its calls need, decides on them, and writes that if nothing has changed meanwhile. */
class Attempt<Version> implements Transaction {
  readonly #database: Swappable<Version>;
  readonly #calls: readonly Waiting[];
  readonly #until: Until;
  readonly #trips: TripsByKind;
  readonly #seen = new Map<string, Entry<Version>>();
  readonly #writes = new Map<string, Write>();
  #reads = 0;
  /** The error of the read that failed. */
  #lost: { readonly error: unknown } | undefined;

  constructor(database: Swappable<Version>, calls: readonly Waiting[], until: Until, trips: TripsByKind) {
    this.#database = database;
    this.#calls = calls;
    this.#until = until;
    this.#trips = trips;
  }

  async get(id: string): Promise<State | null> {
    if (!this.#seen.has(id)) await this.#load([id]);
    const written = this.#writes.get(id);
    if (written !== undefined) return written.state;
    const { value } = this.#seen.get(id) as Entry<Version>;
    return value === undefined ? null : this.#database.decode(value);
  }

  set(id: string, state: State, fullAt: number, now: number): void {
    this.#writes.set(id, { state, dropIn: Math.max(fullAt - now, 0) + SLACK });
  }

  delete(id: string): void {
    this.#writes.set(id, { state: null, dropIn: SLACK });
  }

  /**
   * Decides on the calls in order, and returns how they end once this is written. Where the process is slow, it decides on
   * the first calls alone, so that the rest of their time is left for the write.
   */
  async decide(ids: readonly string[]): Promise<End[]> {
    if (ids.length > 1 && this.#database.sharding === undefined) await this.#load(ids);
    const ends: End[] = [];
    /** When it stops deciding: half of the time that is left after the first call, whose step reads. */
    let enough = Infinity;
    for (const call of this.#calls) {
      if (performance.now() > enough) break;
      ends.push(await this.#endOf(call));
      if (ends.length === 1) enough = (performance.now() + firstDeadline(this.#calls, this.#until)) / 2;
    }
    return ends;
  }

  async #endOf({ body, now = Date.now(), resolve, reject }: Waiting): Promise<End> {
    const { name, sharding } = this.#database;
    try {
      const result = await body(new Steps(this, name, now, sharding));
      return () => resolve(result);
    } catch (error) {
      // A failure of the database is every call's; any other is of this call alone.
      if (this.#lost !== undefined) throw this.#lost.error;
      return () => reject(error);
    }
  }

  /** Writes what was decided. Returns why nothing was written, where another attempt may succeed. */
  async write(): Promise<KeyError | undefined> {
    // One entry that was only read is what it was; several, read one by one, must have been so at one time.
    if (this.#writes.size === 0 && this.#reads < 2) return undefined;
    const { unanswered, comparesAll } = this.#database;
    if (unanswered !== undefined) this.#explain(unanswered.write);
    await overdueTimers(firstDeadline(this.#calls, this.#until));
    const first = firstDeadline(this.#calls, this.#until);
    if (performance.now() >= first) return new KeyError("a deadline passed before the write, which was not sent", true);
    const unread = [...this.#writes.keys()].filter((id) => !this.#seen.has(id));
    if (comparesAll === true && unread.length > 0) await this.#load(unread);
    const ids = new Set([...this.#seen.keys(), ...this.#writes.keys()]);
    const changes = [...ids].map((id) => ({ id, seen: this.#seen.get(id), write: this.#writes.get(id) }));
    const sent = performance.now();
    const isWritten = await this.#database.swap(changes, { until: this.#until.at, first });
    this.#trips.write.add(sent);
    if (isWritten) return undefined;
    return new KeyError(
      "the write was refused: others were faster, its deadline passed, or the server has no room",
      true,
    );
  }

  async #load(ids: readonly string[]): Promise<void> {
    this.#reads++;
    const { unanswered } = this.#database;
    if (unanswered?.read !== undefined) this.#explain(unanswered.read);
    const sent = performance.now();
    try {
      const entries = await this.#database.read(ids, this.#until.at);
      this.#trips.read.add(sent);
      for (const [i, id] of ids.entries()) this.#seen.set(id, entries[i] as Entry<Version>);
    } catch (error) {
      this.#lost = { error };
      throw error;
    }
  }

  /** Sets why the calls are late if the database does not answer. */
  #explain(why: Error): void {
    for (const { deadline } of this.#calls) deadline.why ??= why;
  }
}
