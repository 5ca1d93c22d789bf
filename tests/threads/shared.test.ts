import { Worker } from "node:worker_threads";
import { describe, expect, test, vi } from "vitest";

interface Result {
  store: string;
  one: number;
  all: number;
  both: number;
  many: number;
}

const NOW = 1_800_000_000_000;

/** The results of so many concurrent threads. */
async function threads(count: number, data: { calls: number; keys: number; run: string }): Promise<Result[]> {
  const file = new URL("worker.mjs", import.meta.url);
  const one = (): Promise<Result> =>
    new Promise((resolve, reject) => {
      const worker = new Worker(file, { workerData: { ...data, now: NOW } });
      worker.once("message", resolve);
      worker.once("error", reject);
    });
  return Promise.all(Array.from({ length: count }, one));
}

const sum = (results: Result[], of: "one" | "all" | "both" | "many"): number =>
  results.reduce((total, one) => total + one[of], 0);

describe("shared(): one table for all threads of the process", () => {
  test("four threads on the same keys take exactly their tokens, in any order", async () => {
    const results = await threads(4, { calls: 2000, keys: 50, run: "a" });
    expect(results.map(({ store }) => store)).toEqual(Array(4).fill("shared"));
    expect(sum(results, "one")).toBe(1000);
    expect(sum(results, "all")).toBe(500);
    expect(sum(results, "both")).toBe(1000);
    expect(sum(results, "many")).toBe(10 + 4);
  });

  test("a thread that starts later finds the tokens that the others left", async () => {
    const first = await threads(1, { calls: 600, keys: 10, run: "b" });
    const second = await threads(1, { calls: 600, keys: 10, run: "b" });
    expect([first[0]?.one, second[0]?.one]).toEqual([600, 400]);
    expect([first[0]?.all, second[0]?.all]).toEqual([100, 0]);
  });
});

test("shared() looks for the addon once, as a limiter may be made for each request", async () => {
  const { shared } = await import("../../npm/tidegate/src/stores/shared.ts");
  const store = shared();
  const report = vi.spyOn(process.report, "getReport");
  expect(shared()).toBe(store);
  expect(report).not.toHaveBeenCalled();
});

describe("shared() without its addon", () => {
  const broken = (require: (id: string) => unknown) => ({ platform: "linux", arch: "x64", musl: false, require });

  async function fresh() {
    vi.resetModules();
    return import("../../npm/tidegate/src/stores/shared.ts");
  }

  test("is this thread's memory, with one warning that lists every reason", async () => {
    const { shared } = await fresh();
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const source = broken(() => {
      throw new Error("cannot find @tidegate/linux-x64-gnu", { cause: new Error("libc is too old") });
    });
    const store = shared({}, source);
    expect(store.name).toBe("memory");
    expect(shared({}, source)).toBe(store);
    expect(warn).toHaveBeenCalledTimes(1);
    const [text, options] = warn.mock.calls[0] as [string, { code: string; detail: string }];
    expect(text).toContain("cannot find @tidegate/linux-x64-gnu; caused by: libc is too old");
    expect(options.code).toBe("TIDEGATE_ADDON");
    expect(options.detail).toContain("@tidegate/linux-x64-gnu");
  });

  test("does not load another module instead of the addon", async () => {
    const { shared } = await fresh();
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    expect(
      shared(
        {},
        broken(() => ({})),
      ).name,
    ).toBe("memory");
    expect(warn.mock.calls[0]?.[0]).toContain("is not tidegate's addon");
  });

  test("does not load an addon of another version", async () => {
    const { shared } = await fresh();
    const { VERSION } = await import("../../npm/tidegate/src/engine/generated/bounds.ts");
    const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => {});
    const other = { version: () => "0.0.9", decide: () => 0, openShared: () => 0 };
    expect(
      shared(
        {},
        broken(() => other),
      ).name,
    ).toBe("memory");
    expect(warn.mock.calls[0]?.[0]).toContain(
      `@tidegate/linux-x64-gnu is 0.0.9, and tidegate is ${VERSION}: install both at one version`,
    );
  });

  test("uses napi's package names of platforms", async () => {
    const { packageOf } = await import("../../npm/tidegate/src/engine/addon.ts");
    const require = (): unknown => undefined;
    const name = (platform: string, arch: string, musl = false): string => packageOf({ platform, arch, musl, require });
    expect(name("linux", "arm64", true)).toBe("@tidegate/linux-arm64-musl");
    expect(name("darwin", "arm64")).toBe("@tidegate/darwin-arm64");
    expect(name("win32", "x64")).toBe("@tidegate/win32-x64-msvc");
  });

  test("refuses a size out of range, and a size that differs from the table's", async () => {
    const { shared } = await fresh();
    expect(() => shared({ maxKeys: 0 })).toThrow("`maxKeys` must be an integer from 1 to 16777216; got 0");
    const store = shared();
    expect(() => shared({ maxKeys: store.stats().maxKeys + 1 })).toThrow("`maxKeys` must be");
  });
});

test.each(["memory", "shared"])("limitMany of no keys reads no clock: %s", async (name) => {
  const { defineLimits } = await import("../../npm/tidegate/src/index.ts");
  const { shared } = await import("../../npm/tidegate/src/stores/shared.ts");
  const bucket = { kind: "token bucket", rate: 1, period: 1000 } as const;
  const limits = defineLimits({ one: bucket }, { ...(name === "shared" && { store: shared() }), now: () => -1 });
  expect(limits.limitMany("one", [])).toEqual([]);
  expect(() => limits.limitMany("one", ["a"])).toThrow("`now` must be");
});
