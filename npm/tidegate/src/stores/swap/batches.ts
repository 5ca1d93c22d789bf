/** Which calls share a step. */
import type { Waiting } from "./waiting.ts";

/** Most calls of a step: until it has decided on them, the process does nothing else. */
const MOST_CALLS = 1000;
/** Most states that calls join for, each shard being one: DynamoDB and Deno KV write no more in one step. */
const MOST_STATES = 100;

/** Calls whose step is still to begin, or has not ended. */
interface Batch {
  readonly calls: Waiting[];
  readonly ids: Set<string>;
  states: number;
  hasBegun: boolean;
  /** Ends of those that it waits for, all of them older: no two wait for each other. */
  readonly before: ReadonlySet<Promise<void> | undefined>;
  ended?: Promise<void>;
}

/**
 * One step at a time on an identity, within this process. A call joins a batch on one of its identities whose step is still
 * to begin and waits for those on the others already: the calls in it wait for none on account of this one. Where there is
 * no such batch, it is in a new one, after all.
 */
export class Batches {
  readonly #step: (calls: readonly Waiting[], begin: () => void) => Promise<void>;
  /** The last batch on each identity, until it has ended. */
  readonly #last = new Map<string, Batch>();

  /** `step` does not reject, and calls `begin` once: no call joins from then on. */
  constructor(step: (calls: readonly Waiting[], begin: () => void) => Promise<void>) {
    this.#step = step;
  }

  add(call: Waiting): void {
    const last = [...new Set(call.ids.flatMap((id) => this.#last.get(id) ?? []))];
    const joined = last.find((batch) => !batch.hasBegun && isAfter(batch, last) && hasRoom(batch, call));
    const before = new Set(last.map(({ ended }) => ended));
    const batch = joined ?? { calls: [], ids: new Set(), states: 0, hasBegun: false, before };
    batch.states += statesBeside(batch, call);
    batch.calls.push(call);
    for (const id of call.ids) {
      batch.ids.add(id);
      this.#last.set(id, batch);
    }
    if (joined === undefined) batch.ended = this.#run(batch);
  }

  async #run(batch: Batch): Promise<void> {
    // Calls of the same turn join.
    await undefined;
    await Promise.all(batch.before);
    await this.#step(batch.calls, () => {
      batch.hasBegun = true;
    });
    for (const id of batch.ids) if (this.#last.get(id) === batch) this.#last.delete(id);
  }
}

/** Whether it waits for all of these but itself. */
const isAfter = (batch: Batch, others: readonly Batch[]): boolean =>
  others.every((other) => other === batch || batch.before.has(other.ended));

function hasRoom(batch: Batch, call: Waiting): boolean {
  if (batch.calls.length >= MOST_CALLS) return false;
  const more = statesBeside(batch, call);
  return more === 0 || batch.states + more <= MOST_STATES;
}

/** How many states the call is on that the batch is not. */
const statesBeside = ({ ids }: Batch, call: Waiting): number =>
  call.targets.reduce((sum, { limit }, i) => (ids.has(call.ids[i] as string) ? sum : sum + limit.policy.shards), 0);
