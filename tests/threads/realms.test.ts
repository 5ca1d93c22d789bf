/** The package in a realm of its own, as in Jest's sandbox: its stores and limiters work with those of this realm. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Context, createContext, Script } from "node:vm";
import { describe, expect, test } from "vitest";

const DIST = fileURLToPath(new URL("../../npm/tidegate/dist", import.meta.url));
const outer = createRequire(join(DIST, "index.cjs"));

type Package = typeof import("tidegate") &
  typeof import("tidegate/file") &
  typeof import("tidegate/shared") &
  typeof import("tidegate/store") &
  typeof import("tidegate/observe") &
  typeof import("tidegate/fetch");

/** Loads CommonJS files in a context, as Jest does; modules of Node.js are this realm's. */
function loader(context: Context): (file: string) => Package {
  const modules = new Map<string, { exports: object }>();
  const load = (file: string): object => {
    const loaded = modules.get(file);
    if (loaded !== undefined) return loaded.exports;
    const module = { exports: {} };
    modules.set(file, module);
    const resolve = createRequire(file);
    const require = (id: string): unknown => (id.startsWith(".") ? load(join(dirname(file), id)) : resolve(id));
    const text = `(function (exports, require, module, __filename, __dirname) {${readFileSync(file, "utf8")}\n})`;
    const run = new Script(text, { filename: file }).runInContext(context) as (...names: unknown[]) => void;
    run(module.exports, Object.assign(require, { resolve: resolve.resolve }), module, file, dirname(file));
    return module.exports;
  };
  return (file) => load(join(DIST, file)) as Package;
}

/** A realm with what Jest's environment for Node.js passes in. */
function realm(options: { wasm?: boolean } = {}): (file: string) => Package {
  const { Buffer, TextEncoder, TextDecoder, URL, crypto, console, performance, setTimeout, clearTimeout, process } =
    globalThis;
  const given = {
    Buffer,
    TextEncoder,
    TextDecoder,
    URL,
    crypto,
    console,
    performance,
    setTimeout,
    clearTimeout,
    process,
  };
  return loader(createContext(given, { codeGeneration: { strings: true, wasm: options.wasm ?? true } }));
}

const here = (file: string): Package => outer(`./${file}`) as Package;
const NOW = 1_800_000_000_000;

describe("a store of one realm and a limiter of another", () => {
  const inside = realm();
  for (const [name, storeOf, limiterOf] of [
    ["ours, used there", here, inside],
    ["theirs, used here", inside, here],
  ] as const) {
    test(`memory: ${name}`, () => {
      const store = storeOf("index.cjs").memory();
      const { defineLimits } = limiterOf("index.cjs");
      const limits = defineLimits(
        {
          api: { kind: "token bucket", rate: 2, period: 60_000 },
          day: { kind: "fixed window", rate: 2, period: 60_000 },
        },
        { store, now: () => NOW },
      );
      for (const limit of ["api", "day"] as const) {
        const left = [1, 2, 3]
          .map(() => limits.limit(limit, { key: "ann" }))
          .map(({ ok, remaining }) => [ok, remaining]);
        expect(left, limit).toEqual([
          [true, 1],
          [true, 0],
          [false, 0],
        ]);
        const own = defineLimits({}, { now: () => NOW });
        const config = { kind: limit === "api" ? "token bucket" : "fixed window", rate: 2, period: 60_000 } as const;
        const { resetAt } = own.limit(limit, { key: "ann", count: 2, config });
        expect(limits.check(limit, { key: "ann" }).resetAt, limit).toBe(resetAt);
      }
      const all = limits.limitAll([
        { name: "api", key: "bob" },
        { name: "day", key: "bob" },
      ]);
      expect([all.ok, all.decisions.map(({ remaining }) => remaining)]).toEqual([true, [1, 1]]);
      limits.reset("api", { key: "ann" });
      expect(limits.getValue("api", { key: "ann" }).value).toBe(2);
      expect(() => limits.limit("api", { count: -1 })).toThrow("`count` must be a finite number of tokens");
    });

    test(`shared(): ${name}`, () => {
      const store = storeOf("stores/shared.cjs").shared();
      const { defineLimits } = limiterOf("index.cjs");
      const limits = defineLimits(
        { realms: { kind: "token bucket", rate: 2, period: 60_000 } },
        { store, now: () => NOW },
      );
      const key = name;
      expect([1, 2, 3].map(() => limits.limit("realms", { key }).ok)).toEqual([true, true, false]);
    });
  }

  test.each([{ within: undefined }, { within: {} }])(
    "a limiter with promises, observed and in a middleware: %j",
    async (own) => {
      const states = new Map<string, { value: number; ts: number }>();
      const rows = {
        get: async (id: string) => states.get(id) ?? null,
        set: async (id: string, state: { value: number; ts: number }) => void states.set(id, state),
        delete: async (id: string) => void states.delete(id),
      };
      const store = inside("stores.cjs").transactional({ name: "map", transaction: (run) => run(rows), ...own });
      const config = { kind: "token bucket", rate: 1, period: 60_000 } as const;
      for (const [key, { defineLimits }] of Object.entries({ ours: here("index.cjs"), theirs: inside("index.cjs") })) {
        const limits = defineLimits({ api: config }, { store, now: () => NOW });
        const events: unknown[] = [];
        const observed = here("observe.cjs").observe(limits, ({ decision }) => events.push(decision.ok));
        const { rateLimit } = here("middleware/fetch.cjs");
        const handler = rateLimit(observed, { name: "api", key }, () => new Response());
        const statuses = [];
        for (let i = 0; i < 2; i++) statuses.push((await handler(new Request("http://a/"))).status);
        expect([statuses, events]).toEqual([
          [200, 429],
          [true, false],
        ]);
        expect((await limits.getValue("api", { key })).value).toBe(0);
        await expect(limits.limit("api", { key, throws: true })).rejects.toThrow("rate limited");
        const twice = { name: "api", key } as const;
        expect((await limits.limitAll([twice, twice])).decisions).toHaveLength(2);
      }
    },
  );

  test("a dump of one realm restores in the other", () => {
    const config = { kind: "token bucket", rate: 2, period: 60_000 } as const;
    const { memory } = inside("index.cjs");
    const store = memory();
    inside("index.cjs")
      .defineLimits({ api: config }, { store, now: () => NOW })
      .limit("api", { key: "ann" });
    const restored = here("index.cjs").memory({ restore: store.dump() });
    const limits = here("index.cjs").defineLimits({ api: config }, { store: restored, now: () => NOW });
    expect(limits.limit("api", { key: "ann" }).remaining).toBe(0);
  });
});

test("the error of an addon that this realm could not load keeps its remedy in the other", () => {
  const require = (): never => {
    throw Object.assign(new Error("addons are disabled"), { code: "ERR_DLOPEN_DISABLED" });
  };
  const source = { platform: "linux", arch: "x64", musl: false, require };
  const { file } = realm()("stores/file.cjs");
  expect(() => file("limits", {}, source)).toThrow(/addons are disabled; start Node\.js with --allow-addons/);
});

test("where WebAssembly may not be compiled, the error names the setting and the remedy", () => {
  const { defineLimits } = realm({ wasm: false })("index.cjs");
  expect(() => defineLimits({ api: { kind: "token bucket", rate: 1, period: 60_000 } })).toThrow(
    /WebAssembly is not allowed here: import tidegate\/pure first, .*codeGeneration: \{ wasm: true \}/,
  );
});
