/** Shards that are stored apart. */
import { describe, expect, test } from "vitest";
import type { State } from "../src/limit/decision.ts";
import { Limit } from "../src/limit/limit.ts";
import { decide, type Shards } from "../src/stores/spread.ts";

const SHARDS = 8;
const limit = new Limit("parts", { kind: "token bucket", rate: 24, period: 3_600_000, shards: SHARDS });
const NOW = 5000;

function apart(values: readonly number[]): Shards {
  const held: State[] = values.map((value) => ({ value, ts: NOW }));
  return {
    async step(request, now = NOW) {
      const before = held[request.shard] as State;
      const { decision, state } = limit.evaluate(before, request, now, { start: request.start, shard: true });
      held[request.shard] = state as State;
      return { before, decision, now };
    },
  };
}

const take = (shards: Shards, count: number) =>
  decide(shards, { op: "take", limit, key: undefined, count, reserve: false }, 0, NOW);

describe("a last token that rounding makes slightly smaller", () => {
  // Fifths of the last token of 24: rounding leaves 0.9999999999999964.
  const last = [0, 0, 0.2, 0.2, 0, 0.2, 0.2, 0.2];

  test("is granted, once", async () => {
    const shards = apart(last);
    expect((await take(shards, 1)).ok).toBe(true);
    expect((await take(shards, 1e-9)).ok).toBe(false);
  });

  test("is no more than that", async () => {
    expect((await take(apart(last), 1 + 1e-12)).ok).toBe(false);
  });

  test("every token of a full limit is granted, and no other, in any order of shards", async () => {
    for (let run = 0; run < 200; run++) {
      const shards = apart(Array.from({ length: SHARDS }, () => 3));
      for (let i = 0; i < 24; i++) expect((await take(shards, 1)).ok, `token ${i + 1}`).toBe(true);
      expect((await take(shards, 1)).ok).toBe(false);
    }
  });
});
