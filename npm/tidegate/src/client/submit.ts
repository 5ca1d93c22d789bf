import type { Entry, Queue } from "./queue.ts";

/**
 * A call in a queue, as a promise of what it returns. It never runs within the call: always as the continuation of a
 * promise that was made there, so in its caller's async context, and in the order in which the queue let them go.
 */
export function submit<R>(queue: Queue, told: Omit<Entry, "start" | "reject">, run: () => R): Promise<Awaited<R>> {
  return new Promise((resolve, reject) => {
    let go: () => void = () => undefined;
    const turn = new Promise<void>((released) => {
      go = released;
    });
    const running = turn.then(run).then(resolve as (value: unknown) => void, reject);
    queue.add({
      ...told,
      reject,
      start() {
        go();
        return running;
      },
    });
  });
}
