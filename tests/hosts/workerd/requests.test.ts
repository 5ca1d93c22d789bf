/** Limits and queues that all requests of an isolate share: one that ends does not end what others wait for. In workerd. */
import { afterAll, expect, test } from "vitest";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { bundle, start } from "./server.ts";

const GRANTED = { ok: true };

await inRuntime("workerd", async (wrangler) => {
  const user = project("workerd");
  bundle(wrangler, user.folder);
  const worker = await start(user.folder);
  afterAll(() => worker.stop());

  const call = (request: Record<string, string | number>) => worker.get("/shared", request);

  test("D1: a request that ended before its statement did does not hold up later calls on the key", async () => {
    const request = { store: "d1", key: "slow" };
    expect(await call(request)).toEqual(GRANTED);
    expect(await call({ ...request, wait: 4000 })).toMatchObject({ ok: false });
    expect(await call(request)).toEqual(GRANTED);
  });

  test("D1: a request that did not wait for its call does not hold up later calls on the key", async () => {
    const request = { store: "d1", key: "forgotten" };
    expect(await call({ ...request, wait: 200, forgotten: 1 })).toBeNull();
    expect(await call(request)).toEqual(GRANTED);
  });

  test.each(["redis", "postgres", "dynamodb"])(
    "%s, by HTTP: a request that did not wait for its call does not keep later calls from the server",
    async (store) => {
      const request = { store, key: "k" };
      const cause = expect.stringMatching(/failed: the server was called$/);
      expect(await call(request)).toEqual({ ok: false, cause });
      expect(await call({ ...request, wait: 200, forgotten: 1 })).toBeNull();
      expect(await call(request)).toEqual({ ok: false, cause });
      expect(await call({ store, key: "another" })).toEqual({ ok: false, cause });
    },
  );

  test.each([
    ["throttle", "memory"],
    ["throttle", "objects"],
    ["createFetch", "memory"],
    ["createFetch", "objects"],
  ])("%s on %s, made by each request: calls of six concurrent requests are spaced as one", async (by, store) => {
    const began = Date.now();
    const calls = Array.from({ length: 6 }, () => worker.get("/paced", { by, store }));
    const at = ((await Promise.all(calls)) as number[]).sort((a, b) => a - b);
    // A busy machine runs a call late, and never early; of workerd's clock and ours one may be a ms ahead.
    for (const [turn, ran] of at.entries()) expect(ran - began).toBeGreaterThan(turn * 100 - 5);
  });
});
