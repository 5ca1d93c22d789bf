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
  /** Ends of those that it waits for. Each is older, or had begun when a call joined: no two wait for each other. */
  readonly before: Set<Promise<void> | undefined>;
  /** Whether calls that join add none to these any more. */
  isFixed: boolean;
  ended?: Promise<void>;
}

/**
 * One step at a time on an identity, within this process. A call joins the batch whose step is still to begin on one of its
 * identities. Where that cannot wait for those on the others, it is in a new one, after all.
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
    const joined = last.find(
      (batch) => !batch.hasBegun && last.every((other) => canFollow(batch, other)) && hasRoom(batch, call),
    );
    const batch = joined ?? newBatch();
    batch.states += statesBeside(batch, call);
    batch.calls.push(call);
    for (const other of last) if (other !== batch) batch.before.add(other.ended);
    for (const id of call.ids) {
      batch.ids.add(id);
      this.#last.set(id, batch);
    }
    if (joined === undefined) batch.ended = this.#run(batch);
  }

  async #run(batch: Batch): Promise<void> {
    // Calls of the same turn join.
    await undefined;
    for (const ended of [...batch.before]) await ended;
    // Calls that joined meanwhile have added to these. Those that join now do not, or it might never begin.
    batch.isFixed = true;
    for (const ended of batch.before) await ended;
    await this.#step(batch.calls, () => {
      batch.hasBegun = true;
    });
    for (const id of batch.ids) if (this.#last.get(id) === batch) this.#last.delete(id);
  }
}

const newBatch = (): Batch => ({
  calls: [],
  ids: new Set(),
  states: 0,
  hasBegun: false,
  before: new Set(),
  isFixed: false,
});

/** Whether it waits for the other one, or may: as this has begun, it does not wait itself. */
const canFollow = (batch: Batch, other: Batch): boolean =>
  other === batch || batch.before.has(other.ended) || (!batch.isFixed && other.hasBegun);

function hasRoom(batch: Batch, call: Waiting): boolean {
  if (batch.calls.length >= MOST_CALLS) return false;
  const more = statesBeside(batch, call);
  return more === 0 || batch.states + more <= MOST_STATES;
}

/** How many states the call is on that the batch is not. */
const statesBeside = ({ ids }: Batch, call: Waiting): number =>
  call.targets.reduce((sum, { limit }, i) => (ids.has(call.ids[i] as string) ? sum : sum + limit.policy.shards), 0);
