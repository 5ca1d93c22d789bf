/** The modules that pages download, which have a part of the engine each. tests/hosts/pure.test.ts runs the vectors on it. */
import { describe, expect, test } from "vitest";
import { Algebra } from "../src/engine/algebra.ts";
import { load, loadAlgebra as inline, loadDistributed } from "../src/engine/host-inline.ts";
import { load as whole, loadAlgebra as pure } from "../src/engine/host-pure.ts";
import type { Config } from "../src/limit/config.ts";
import type { Operation } from "../src/limit/decision.ts";
import { Evaluator } from "../src/limit/evaluator.ts";

const TAKE: Operation = { op: "take", count: 1, reserve: false };

describe.each(Object.entries({ inline, pure }))("%s", (_, load) => {
  const algebra = new Algebra(load);

  test("exports nothing but the algebra", () => {
    expect(Object.keys(algebra.wasm).sort()).toEqual(["evaluate", "memory", "numbers_at"]);
  });

  test("a window begins at the limit's start, and where it has none, at the caller's", () => {
    const window = { kind: "fixed window", rate: 1, period: 1000 } as const;
    const tsOf = (config: Config) =>
      new Evaluator("a", config, algebra).evaluate(null, TAKE, 5000, { start: 600 }).decision.ts;
    expect(tsOf({ ...window, start: 250 })).toBe(4250);
    expect(tsOf(window)).toBe(4600);
  });

  test.each([
    [{ rate: 0 }, "rate"],
    [{ period: 0.5 }, "period"],
    [{ capacity: -1 }, "capacity"],
    [{ maxReserved: 2 ** 41 }, "maxReserved"],
    [{ shards: 0 }, "shards"],
  ])("refuses %j when the limit is defined", (wrong, field) => {
    const config = { kind: "token bucket", rate: 1, period: 1000, ...wrong } as const;
    expect(() => new Evaluator("a", config, algebra)).toThrow(expect.objectContaining({ field }));
  });
});

test("a page's module with the table has all but leases and shards, which are the other's", () => {
  const names = (exports: object): string[] => Object.keys(exports).sort();
  const distributed = ["lease_spend", "memory", "numbers_at", "pool_at", "pool_decide"];
  expect(names(loadDistributed())).toEqual(distributed);
  expect(names(load())).toEqual(
    names(whole()).filter((name) => /memory|numbers_at/.test(name) || !distributed.includes(name)),
  );
});

test("leases and shards return the same in the page's module as in the whole engine", () => {
  const [page, engine] = [new Algebra(loadDistributed), new Algebra(whole)];
  const results = [page, engine].map((algebra) => {
    const { wasm } = algebra;
    const policy = [24, 3_600_000, 24, Number.NaN, 0, 3];
    algebra.numbers.set(policy);
    const spent = wasm.lease_spend(0, 5, 1e6, 2.5, 1e6 + 7, 2);
    const after = [...algebra.numbers];
    const at = wasm.pool_at(3) >>> 0;
    new Float64Array(wasm.memory.buffer, at, 6).set([8, 1e6, 1, 1e6, Number.NaN, 0]);
    algebra.numbers.set(policy);
    const decided = wasm.pool_decide(0, 3, 1e6 + 7, 16, 0);
    return [spent, after, decided, [...algebra.numbers], [...new Float64Array(wasm.memory.buffer, at, 6)]];
  });
  expect(results[0]).toEqual(results[1]);
  expect(results[0]?.[0]).toBeLessThan(256);
});
