/**
 * Runs one call at a time on each identity, within this process. A call on several identities waits for the earlier calls on all
 * of them, and later calls on any of them wait for it. Calls join all their queues synchronously, so no two wait for each other.
 */
import type { Deadline } from "./contract.ts";
import { NOT_SENT, whyLate } from "./failure.ts";
import { overdueTimers, monotonicNow, within } from "../limit/monotonic.ts";

export class KeyedQueue {
  readonly #last = new Map<string, Entry>();

  /**
   * Runs `body` after the earlier calls on these identities. Rejects without running it if `deadline` has passed by then. It does
   * not wait for an earlier call beyond that call's deadline: the call may never end, and its caller has been answered.
   */
  run<T>(ids: readonly string[], body: () => Promise<T>, deadline?: Deadline): Promise<T> {
    const before = new Set<Entry>();
    for (const id of ids) {
      const entry = this.#last.get(id);
      if (entry !== undefined) before.add(entry);
    }
    const answer = before.size === 0 ? body() : runAfter(before, body, deadline ?? { at: Infinity });
    const entry = { ended: answer.then(ignore, ignore), deadline };
    for (const id of ids) this.#last.set(id, entry);
    void entry.ended.then(() => {
      for (const id of ids) if (this.#last.get(id) === entry) this.#last.delete(id);
    });
    return answer;
  }
}

interface Entry {
  readonly ended: Promise<void>;
  readonly deadline: Deadline;
}

const ignore = (): void => {};

/** Runs `body` after these, or rejects if the deadline has passed by then. */
async function runAfter<T>(before: Set<Entry>, body: () => Promise<T>, deadline: NonNullable<Deadline>): Promise<T> {
  const since = monotonicNow();
  deadline.why = NOT_SENT;
  await Promise.all([...before].map(over));
  await overdueTimers(deadline.at);
  // No answer arrives in less than a ms, and calls that were made together would all be sent at their deadlines.
  if (monotonicNow() > deadline.at - 1) throw NOT_SENT;
  deadline.why = whyLate(deadline, since);
  return body();
}

/** Resolves when the call has ended, or at its deadline. */
function over({ ended, deadline }: Entry): Promise<void> {
  return deadline === undefined ? ended : within(deadline.at - monotonicNow(), ended, ignore);
}

const byHandle = new WeakMap<object, KeyedQueue>();

/** The queues that all stores on this handle of a host's transaction share. */
export function queueOf(handle: object): KeyedQueue {
  let queue = byHandle.get(handle);
  if (queue === undefined) {
    queue = new KeyedQueue();
    byHandle.set(handle, queue);
  }
  return queue;
}
