/** Invalid input on the wasm host: the same message as on every host, and nothing read or written before. */
import { describe, expect, test } from "vitest";
import { type Config, defineLimits, evaluate, memory, project } from "../../npm/tidegate/src/index.ts";
import type { SyncStore } from "../../npm/tidegate/src/stores/contract.ts";
import { invalidVectors } from "./invalid.ts";

const invalid = invalidVectors();
const good: Config = { kind: "token bucket", rate: 10, period: 1000 };

/** A memory store that records its calls. */
function watched(): { store: SyncStore; calls: string[] } {
  const store = memory();
  const calls: string[] = [];
  const watch =
    (name: "decide" | "decideAll" | "reset" | "getValue") =>
    (...args: never[]) => {
      calls.push(name);
      return (store[name] as (...args: never[]) => never)(...args);
    };
  return {
    store: {
      name: "watched",
      sync: true,
      decide: watch("decide"),
      decideAll: watch("decideAll"),
      reset: watch("reset"),
      getValue: watch("getValue"),
    },
    calls,
  };
}

function thrown(body: () => unknown): { code?: string; field?: string; message?: string } {
  try {
    body();
  } catch (error) {
    return error as Error;
  }
  return { message: "nothing was thrown" };
}

describe.each(invalid)("$name", ({ config, call = {}, field, error }) => {
  const expected = { code: "TIDEGATE_INPUT", field, message: error };

  test("is refused where limits are defined or called", () => {
    const { store, calls } = watched();
    const now = "now" in call ? () => call["now"] as number : () => 1000;
    if (!("count" in call || "now" in call)) {
      expect(thrown(() => defineLimits({ chat: config as Config }, { store }))).toMatchObject({
        ...expected,
        message: `${error} (in the limit "chat")`,
      });
    }
    for (const limits of [defineLimits({ chat: good }, { store, now }), defineLimits({ chat: good }, { now })]) {
      const options = { ...("count" in call ? { count: call["count"] as number } : {}), config: config as Config };
      for (const op of ["limit", "check", "give", "charge"] as const) {
        expect(
          thrown(() => limits[op]("chat", options)),
          op,
        ).toMatchObject(expected);
      }
      const { config: inline, ...rest } = options;
      expect(
        thrown(() => limits.limitAll([{ name: "chat" }, { name: "chat", config: inline, ...rest }])),
      ).toMatchObject(expected);
      if (!("count" in call)) {
        expect(thrown(() => limits.getValue("chat", { config: inline }))).toMatchObject(expected);
        if (!("now" in call)) expect(thrown(() => limits.reset("chat", { config: inline }))).toMatchObject(expected);
      }
    }
    expect(calls).toEqual([]);
  });

  test("is refused by evaluate and project", () => {
    const options = { now: 1000, ...call } as { now: number };
    expect(thrown(() => evaluate(null, config as Config, options))).toMatchObject(expected);
    if (!("count" in call)) expect(thrown(() => project(null, config as Config, options.now))).toMatchObject(expected);
  });
});

test("a denied or refused call leaves the memory store unchanged", () => {
  const store = memory();
  let time: unknown = 1_000_000;
  const limits = defineLimits({ chat: good }, { store, now: () => time as number });
  limits.limit("chat", { count: 3.25 });
  const before = limits.getValue("chat");
  for (const { config, call = {} } of invalid) {
    time = "now" in call ? call["now"] : 1_000_000;
    const count = "count" in call ? { count: call["count"] as number } : {};
    expect(thrown(() => limits.limit("chat", { ...count, config: config as Config })).code).toBe("TIDEGATE_INPUT");
  }
  time = 1_000_000;
  expect(limits.getValue("chat")).toEqual(before);
  expect(store.stats().keys).toBe(1);
});
