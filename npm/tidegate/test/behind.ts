import { memory } from "../src/index.ts";
import type { AsyncStore } from "../src/stores/contract.ts";

/** A store in memory whose calls are decided once `sent` resolves. Where that rejects, the store fails. */
export function behind(sent: () => Promise<unknown>, name: string): AsyncStore {
  const held = memory();
  return {
    name,
    sync: false,
    decide: (call, now) => sent().then(() => held.decide(call, now)),
    decideAll: (calls, now) => sent().then(() => held.decideAll(calls, now)),
    reset: (limit, key) => sent().then(() => held.reset(limit, key)),
    getValue: (limit, key, now) => sent().then(() => held.getValue(limit, key, now)),
  };
}
