/** Which calls share a step. */
import type { Waiting } from "./waiting.ts";

/** Most calls of a step: until it has decided on them, the process does nothing else. */
const MOST_CALLS = 1000;
/** Most identities of a step that calls share: DynamoDB and Deno KV write no more in one step. */
const MOST_IDS = 100;

/** Calls whose step is still to begin, or has not ended. */
interface Batch {
  readonly calls: Waiting[];
  readonly ids: Set<string>;
  hasBegun: boolean;
  /** Ends of those that it waits for. Each is older, or had begun when a call joined: no two wait for each other. */
  readonly before: Set<Promise<void> | undefined>;
  /** Whether calls that join add none to these any more. */
  isFixed: boolean;
  ended?: Promise<void>;
}

/**
 * One step at a time on an identity, within this process: returns the function that adds a call. It joins the batch whose step is
 * still to begin on one of its identities. If that cannot wait for those on the others, it is in a new one, after all.
 *
 * `step` does not reject, and calls `begin` once: no call joins from then on. `hasShards`: whether each shard of a limit is its
 * own row.
 */
export function batching(
  step: (calls: readonly Waiting[], begin: () => void) => Promise<void>,
  hasShards: boolean,
): (call: Waiting) => void {
  /** The last batch on each identity, until it has ended. */
  const lastOn = new Map<string, Batch>();

  async function run(batch: Batch): Promise<void> {
    // Calls of the same turn join.
    await undefined;
    for (const ended of [...batch.before]) await ended;
    // Calls that joined meanwhile have added to these. Those that join now do not, or it might never begin.
    batch.isFixed = true;
    for (const ended of batch.before) await ended;
    await step(batch.calls, () => {
      batch.hasBegun = true;
    });
    for (const id of batch.ids) if (lastOn.get(id) === batch) lastOn.delete(id);
  }

  const isSpread = ({ targets }: Waiting): boolean => hasShards && targets.some(({ limit }) => limit.policy.shards > 1);

  function hasRoom({ calls, ids }: Batch, call: Waiting): boolean {
    if (calls.length >= MOST_CALLS) return false;
    const more = call.ids.filter((id) => !ids.has(id)).length;
    if (more === 0) return true;
    // Shards are for fewer conflicts between processes: with rows of other calls in their steps there would be more.
    return ids.size + more <= MOST_IDS && !isSpread(call) && !isSpread(calls[0] as Waiting);
  }

  return (call) => {
    const last = [...new Set(call.ids.flatMap((id) => lastOn.get(id) ?? []))];
    const joined = last.find(
      (batch) => !batch.hasBegun && last.every((other) => canFollow(batch, other)) && hasRoom(batch, call),
    );
    const batch = joined ?? newBatch();
    batch.calls.push(call);
    for (const other of last) if (other !== batch) batch.before.add(other.ended);
    for (const id of call.ids) {
      batch.ids.add(id);
      lastOn.set(id, batch);
    }
    if (joined === undefined) batch.ended = run(batch);
  };
}

const newBatch = (): Batch => ({
  calls: [],
  ids: new Set(),
  hasBegun: false,
  before: new Set(),
  isFixed: false,
});

/** Whether it waits for the other one, or may: as this has begun, it does not wait itself. */
const canFollow = (batch: Batch, other: Batch): boolean =>
  other === batch || batch.before.has(other.ended) || (!batch.isFixed && other.hasBegun);
