/** Every history of one state, without a store, in the whole engine and in the modules without tables. */
import { describe, expect, test } from "vitest";
import { Algebra } from "../../npm/tidegate/src/engine/algebra.ts";
import { loadAlgebra as inline } from "../../npm/tidegate/src/engine/host-inline.ts";
import { loadAlgebra as pure } from "../../npm/tidegate/src/engine/host-pure.ts";
import { type Config, evaluate, project, type State } from "../../npm/tidegate/src/index.ts";
import { Evaluator } from "../../npm/tidegate/src/limit/evaluator.ts";
import { Limit } from "../../npm/tidegate/src/stores/index.ts";
import { vectors as files } from "../stores/vectors.ts";

/** What a page has that shows limits, with and without WebAssembly. */
const ALGEBRAS = [inline, pure].map((load) => new Algebra(load));

const bits = (state: State | null): string | null =>
  state === null ? null : Buffer.from(new Float64Array([state.value, state.ts]).buffer).toString("hex");

/** Calls on several limits need a store. */
const { "limit-all.json": _, ...ofOneState } = files;

describe.each(Object.entries(ofOneState))("%s", (_file, { vectors }) => {
  test("history by history, to the bit", () => {
    let steps = 0;
    for (const vector of vectors) {
      let config = vector.config as Config;
      let state: State | null = null;
      for (const [index, step] of (vector.steps ?? []).entries()) {
        config = step.config ?? config;
        const about = `${vector.name}, step ${index}`;
        if (step.op === "takeAll") throw new Error(`${about}: of several limits`);
        const limit = new Limit(vector.limit ?? "chat", config);
        const start = limit.start(vector.key);
        const whole: Config = config.kind === "fixed window" ? { ...config, start: config.start ?? start } : config;
        const { reserve = false, now, op } = step;
        const count = step.for ?? step.count ?? 1;
        const before: State | null = state === null ? null : Object.freeze(state);
        if (op === "reset") state = null;
        else if (op === "project") {
          expect({ ...project(before, whole, now) }, about).toEqual(step.expect);
          expect(limit.project(before, now, start), about).toEqual(step.expect);
        } else {
          const own = limit.evaluate(before, { op, count, reserve }, now, { start });
          for (const algebra of ALGEBRAS) {
            const small = new Evaluator(limit.name, config, algebra);
            expect(small.evaluate(before, { op, count, reserve }, now, { start }), about).toEqual(own);
          }
          expect(own.decision, about).toMatchObject(step.expect as object);
          expect(own.decision.retryAt, about).toBe(step.expect?.["retryAt"]);
          if (op === "take") {
            const evaluated = evaluate(before, whole, { now, count, reserve });
            expect({ ...evaluated, decision: { ...evaluated.decision, policy: null } }, about).toEqual({
              ...own,
              decision: { ...own.decision, policy: null },
            });
            // A state that is not written is returned as the same object.
            if (!evaluated.decision.ok || count === 0) expect(evaluated.state, about).toBe(before);
          }
          if (op === "check") expect(own.state, about).toBe(before);
          state = own.state;
        }
        expect(bits(state), about).toBe((step.state as { bits: string } | null | undefined)?.bits ?? null);
        steps++;
      }
    }
    expect(steps).toBeGreaterThan(0);
  });
});
