/** One attempt of a step. */
import type { State } from "../../limit/decision.ts";
import { overdueTimers } from "../../limit/monotonic.ts";
import { KeyError } from "../failure.ts";
import { SLACK, Steps, type Transaction } from "../steps.ts";
import type { Entry, Swappable, Write } from "./database.ts";
import type { RoundTripsByKind } from "./round-trips.ts";
import { firstDeadline, type Until, type Waiting } from "./waiting.ts";

/** How a call ends once its step is written. */
export type End = () => void;

/** One attempt of a step: reads what its calls need, decides on them, and writes that if nothing has changed meanwhile. */
export class Attempt<Version> implements Transaction {
  readonly #database: Swappable<Version>;
  readonly #calls: readonly Waiting[];
  readonly #until: Until;
  readonly #trips: RoundTripsByKind;
  readonly #seen = new Map<string, Entry<Version>>();
  readonly #writes = new Map<string, Write>();
  /** What the calls that write have read. */
  readonly #compared = new Set<string>();
  /** The identities of the call that is decided on. */
  #ids: readonly string[] = [];
  #reads = 0;
  /** Whether its write was sent. */
  isSent: boolean = false;
  /** The error of the read that failed. */
  #lost: { readonly error: unknown } | undefined;

  constructor(database: Swappable<Version>, calls: readonly Waiting[], until: Until, trips: RoundTripsByKind) {
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
    this.#write(id, { state, dropIn: Math.max(fullAt - now, 0) + SLACK });
  }

  delete(id: string): void {
    this.#write(id, { state: null, dropIn: SLACK });
  }

  #write(id: string, write: Write): void {
    this.#writes.set(id, write);
    for (const each of this.#ids) this.#compared.add(each);
  }

  /**
   * Decides on the calls in order, and returns how they end once this is written. If the process is slow, it decides on
   * the first calls alone, so that the rest of their time is left for the write.
   */
  async decide(): Promise<End[]> {
    const { sharding } = this.#database;
    const known = this.#calls.flatMap(({ ids, targets }) =>
      // A limit with shards picks the ones that it reads.
      ids.filter((_, i) => sharding === undefined || targets[i]?.limit.policy.shards === 1),
    );
    const ids = [...new Set(known)];
    if (ids.length > 1) await this.#load(ids);
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

  async #endOf({ ids, body, now = Date.now(), resolve, reject }: Waiting): Promise<End> {
    const { name, sharding } = this.#database;
    this.#ids = ids;
    try {
      const result = await body(new Steps(this, name, now, sharding));
      return () => resolve(result);
    } catch (error) {
      // A failure of the database is every call's; any other is of this call alone.
      if (this.#lost !== undefined) throw this.#lost.error;
      return () => reject(error);
    }
  }

  /** Writes what was decided. Returns why nothing was written, if another attempt may succeed. */
  async write(): Promise<KeyError | undefined> {
    // One entry that was only read is what it was; several, with shards, must have been so at one time.
    if (this.#writes.size === 0 && this.#reads < 2) return undefined;
    const { unanswered, comparesAll, sharding } = this.#database;
    this.#explain(unanswered?.write);
    await overdueTimers(firstDeadline(this.#calls, this.#until));
    const first = firstDeadline(this.#calls, this.#until);
    if (performance.now() >= first) return new KeyError("a deadline passed before the write, which was not sent", true);
    const unread = [...this.#writes.keys()].filter((id) => !this.#seen.has(id));
    if (comparesAll === true && unread.length > 0) await this.#load(unread);
    // Without shards, what a call that is denied has read was so at one time.
    const seen = [...this.#seen.keys()].filter((id) => sharding !== undefined || this.#compared.has(id));
    const ids = new Set([...seen, ...this.#writes.keys()]);
    const changes = [...ids].map((id) => ({ id, seen: this.#seen.get(id), write: this.#writes.get(id) }));
    const sent = performance.now();
    this.isSent = true;
    const isWritten = await this.#database.swap(changes, { until: this.#until.at, first });
    this.#trips.write.add(sent);
    if (isWritten) return undefined;
    return new KeyError(
      "the write was refused: others were faster, its deadline passed, or the server has no room",
      true,
    );
  }

  async #load(ids: readonly string[]): Promise<void> {
    this.#reads += this.#database.sharding === undefined ? 1 : ids.length;
    this.#explain(this.#database.unanswered?.read);
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

  /** Sets why the calls are late if the database does not answer, if nothing else is the reason. */
  #explain(why: Error | undefined): void {
    for (const { deadline } of this.#calls) deadline.why ??= why;
  }
}
