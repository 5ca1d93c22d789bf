/** Limits in D1 that all requests of an isolate share. In workerd. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Installed } from "../../packaging/installed.ts";
import { project } from "../project.ts";
import { inRuntime } from "../runtimes.ts";
import { dev, type Worker } from "./server.ts";

const GRANTED = { ok: true, degraded: false };

await inRuntime("workerd", (wrangler) => {
  let user: Installed;
  let worker: Worker;
  beforeAll(async () => {
    user = project("workerd");
    worker = await dev(wrangler, user.folder);
  });
  afterAll(async () => {
    await worker.running.stop();
    user.remove();
  });

  test("a request that ended before its statement did does not hold up later calls on the key", async () => {
    expect(await worker.get("/d1", { key: "slow" })).toEqual(GRANTED);
    expect(await worker.get("/d1", { key: "slow", wait: 4000 })).toEqual({ ok: false, degraded: true });
    expect(await worker.get("/d1", { key: "slow" })).toEqual(GRANTED);
  });

  test("nor does a request that did not wait for its call", async () => {
    expect(await worker.get("/d1", { key: "forgotten", wait: 200, forgotten: 1 })).toBeNull();
    expect(await worker.get("/d1", { key: "forgotten" })).toEqual(GRANTED);
  });
});
