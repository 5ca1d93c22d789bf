/** The module without tables, which pages download. tests/hosts/pure.test.ts runs the vectors on it. */
import { describe, expect, test } from "vitest";
import { Algebra } from "../src/engine/algebra.ts";
import { loadAlgebra as inline } from "../src/engine/host-inline.ts";
import { loadAlgebra as pure } from "../src/engine/host-pure.ts";
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
