/** Our fetch and our middleware over real sockets, both on one fake clock. */
import { createServer, type ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createFetch, type FetchOptions } from "../../src/client/index.ts";
import type { HeaderFamily } from "../../src/http/index.ts";
import { type Config, defineLimits, SECOND } from "../../src/index.ts";
import { rateLimit } from "../../src/middleware/node.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { listen } from "../middleware/handler.ts";

const START = 1_735_689_600_000;
const bucket = { kind: "token bucket", rate: 2, period: SECOND, capacity: 10 } as const;

/** Sends concurrent requests to a server with this limit; the clock advances while none is in flight. */
async function meet(config: Config, fields: HeaderFamily, requests: number, options: FetchOptions = {}) {
  const clock = fakeClock(START);
  const limits = defineLimits({ api: config }, { now: clock.now });
  const granted: number[] = [];
  let denied = 0;
  const onDecision = (decided: { ok: boolean }): void => {
    if (decided.ok) granted.push(clock.now() - START);
    else denied++;
  };
  const hello = (_: unknown, response: ServerResponse): void => {
    // This field comes from the real clock, not from the clock of the limits.
    response.setHeader("Date", new Date(clock.now()).toUTCString());
    response.end("hello");
  };
  const server = await listen(
    createServer(rateLimit(limits, { name: "api", headers: { fields }, jitter: 0, onDecision }, hello)),
  );
  const fetch = createFetch({ clock, jitter: 0, retries: 10, ...options });
  let over = false;
  const all = Promise.all(Array.from({ length: requests }, async () => (await fetch(server.url)).status)).finally(
    () => {
      over = true;
    },
  );
  all.catch(() => undefined);
  while (!over) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    if (fetch.running === 0) await clock.pass(100);
  }
  return { statuses: await all, granted, denied, took: clock.now() - START };
}

describe.each<HeaderFamily>(["draft-11", "draft-7", "draft-6", "x-ratelimit"])("a server with %s fields", (fields) => {
  test("a client without its own limit reads them, slows down, and completes all requests", async () => {
    const { statuses, denied } = await meet(bucket, fields, 30, { concurrency: 1 });
    expect(statuses).toEqual(Array.from({ length: 30 }, () => 200));
    // Sequential requests: the client reads each response before it sends the next, and is never denied.
    expect(denied).toBe(0);
  });

  test("a concurrent burst is denied once per excess request, and retries after `Retry-After`", async () => {
    const { statuses, granted, denied } = await meet(bucket, fields, 14);
    expect(statuses).toEqual(Array.from({ length: 14 }, () => 200));
    expect([granted.length, denied >= 4]).toEqual([14, true]);
  });
});

test.each([1, 2, Infinity])("the usual retries are enough for a burst, of %s at once", async (concurrency) => {
  const places = concurrency === Infinity ? {} : { concurrency };
  for (const fields of ["draft-11", "x-ratelimit"] as const) {
    const { statuses, took } = await meet(bucket, fields, 60, { retries: 3, ...places });
    expect(new Set(statuses)).toEqual(new Set([200]));
    // Fifty at two per second, and little more.
    expect(took).toBeLessThanOrEqual(35 * SECOND);
  }
});

test("with the server's policy as its own limit, it is never denied and loses no time", async () => {
  const { statuses, denied, took } = await meet(bucket, "draft-11", 30, { limit: bucket, slowBelow: 0 });
  expect([statuses.every((status) => status === 200), denied]).toEqual([true, 0]);
  // Ten in a burst, then twenty at two per second.
  expect(took).toBeGreaterThanOrEqual(10 * SECOND);
  expect(took).toBeLessThanOrEqual(12 * SECOND);
});
