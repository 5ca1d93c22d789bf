import { type AsyncStore, transactional } from "../../src/stores/index.ts";

/** A store that answers with promises: the algebra on a Map. */
export function later(): AsyncStore {
  const states = new Map<string, { value: number; ts: number }>();
  let before: Promise<unknown> = Promise.resolve();
  return transactional({
    name: "map",
    transaction: (body) => {
      const run = before.then(() =>
        body({
          get: (id) => states.get(id) ?? null,
          set: (id, state) => void states.set(id, state),
          delete: (id) => void states.delete(id),
        }),
      );
      before = run.catch(() => undefined);
      return run;
    },
  });
}
