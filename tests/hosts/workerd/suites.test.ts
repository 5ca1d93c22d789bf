/** Every vector and the store suite, inside workerd. */
import { describe, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime, replay } from "../runtimes.ts";
import { bundle, start } from "./server.ts";

const SUITES = [
  "memory",
  "an object for each key",
  "an object for each key, which has no binding",
  "one object for all",
  "classic storage, one object for all",
  "D1",
  "Workers KV",
];

await inRuntime("workerd", async (wrangler) => {
  const user = project("workerd");
  bundle(wrangler, user.folder);

  /** With a server per request: the alarms of one suite's objects do not run during the next. */
  async function get(path: string, query: Record<string, string> = {}): Promise<unknown> {
    const worker = await start(user.folder);
    try {
      return await worker.get(path, query);
    } finally {
      await worker.stop();
    }
  }

  for (const name of SUITES) {
    const results = (await get("/suite", { name })) as { name: string; error?: string }[];
    describe(name, () => replay(results));
  }

  const kv = await get("/kv");
  test("Workers KV: writes are batched, a new isolate starts from the written state, and guarantees that KV cannot give are refused", () => {
    expect(kv).toMatchObject({
      granted: 100,
      burst: ["get", "put"],
      early: 98,
      later: 0,
      keys: 1,
      approximate: true,
      all: expect.stringMatching(/^TIDEGATE_INPUT `limitAll` must be absent on Workers KV/),
      reserve: expect.stringMatching(/^TIDEGATE_INPUT `reserve` must be absent on Workers KV/),
      both: [true, true],
    });
  });

  test("Workers KV: what is taken within a second after a write is written after the answer", async () => {
    const worker = await start(user.folder);
    try {
      const key = `burst ${Date.now()}`;
      await worker.get("/kv-burst", { key });
      await expect.poll(() => worker.get("/kv-left", { key }), { timeout: 60_000, interval: 100 }).toBe(95);
    } finally {
      await worker.stop();
    }
  });
});
