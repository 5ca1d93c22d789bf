// Every vector, to the bit, through the calls on a caller's own state: a store over a Map, one transaction after another.
import { transactional } from "tidegate/store";
import { report } from "./report.js";
import vectors from "./vectors.js";

const kept = new WeakMap();

function create() {
  const rows = new Map();
  let last = Promise.resolve();
  const transaction = (body) => {
    const writes = new Map();
    const run = last.then(async () => {
      const get = (id) => (writes.has(id) ? writes.get(id) : rows.get(id)) ?? null;
      const result = await body({
        get,
        set: (id, state) => writes.set(id, state),
        delete: (id) => writes.set(id, null),
      });
      for (const [id, state] of writes) {
        if (state === null) rows.delete(id);
        else rows.set(id, state);
      }
      return result;
    });
    last = run.catch(() => {});
    return run;
  };
  const store = transactional({ name: "rows", transaction });
  kept.set(store, rows);
  return store;
}

export const onRows = () =>
  report({
    vectors,
    shardsApart: "each shard has a row of its own",
    create,
    stored: (store) => (id) => kept.get(store).get(id) ?? null,
    corrupt: (store) => (id) => kept.get(store).set(id, { value: Number.NaN, ts: 0 }),
  });
