/** Throttles on one Redis: a fleet that stays below one quota. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { throttle } from "tidegate/client";
import { defineLimits } from "tidegate";
import { redis } from "tidegate/redis";
import { client, server, withServer } from "./fixture.ts";

withServer();

const root = fileURLToPath(new URL("../../..", import.meta.url));

/**
 * From the beginning on, no more than the capacity and what has come since. Lateness of a busy machine makes it less, never
 * more: so it is a law, and not a measurement.
 */
function within(
  times: readonly number[],
  began: number,
  { rate, period, capacity }: Record<"rate" | "period" | "capacity", number>,
) {
  for (const [i, at] of [...times].sort((a, b) => a - b).entries()) {
    // Timers take integer ms, and two clocks of one machine may be read one ms apart.
    expect(i + 1).toBeLessThanOrEqual(capacity + (rate * (at - began + 2)) / period);
  }
}

test("two clients with queues of their own take turns, and never exceed the policy", async () => {
  const policy = { kind: "token bucket", rate: 200, period: 1000, capacity: 5 } as const;
  const other = server.client();
  const began = Date.now();
  const times: number[] = [];
  const fleet = [client, other].map((own) => {
    const limiter = defineLimits({ fleet: policy }, { store: redis(own), timeout: 60_000 });
    return throttle(() => void times.push(Date.now()), { limiter, name: "fleet" });
  });
  const gone = new AbortController();
  const calls = fleet.flatMap((ask) => Array.from({ length: 60 }, () => ask()));
  const aborted = fleet.flatMap((ask) =>
    Array.from({ length: 20 }, () =>
      ask
        .with({ signal: gone.signal })()
        .catch(() => "aborted"),
    ),
  );
  gone.abort();
  await Promise.all(calls);
  expect(new Set(await Promise.all(aborted))).toEqual(new Set(["aborted"]));
  expect(times).toHaveLength(120);
  within(times, began, policy);
  other.disconnect();
});

test("calls of one client that are aborted give their tokens back to all", async () => {
  const policy = { kind: "token bucket", rate: 1, period: 3_600_000, capacity: 10 } as const;
  const limiter = defineLimits({ returned: policy }, { store: redis(client), timeout: 60_000 });
  const ask = throttle(() => "ran", { limiter, name: "returned" });
  const gone = new AbortController();
  const calls = Array.from({ length: 30 }, () =>
    ask
      .with({ signal: gone.signal })()
      .catch(() => "aborted"),
  );
  while (ask.queued !== 20) await new Promise((resolve) => setImmediate(resolve));
  expect((await limiter.getValue("returned")).value).toBeLessThan(-19);
  gone.abort();
  const ends = await Promise.all(calls);
  expect(ends.filter((end) => end === "ran")).toHaveLength(10);
  // The giving back is on its way: a call after it waits for it.
  let value = -20;
  while (value < -0.5) ({ value } = await limiter.getValue("returned"));
  expect(value).toBeCloseTo(0, 1);
});

test("the example: three processes share a quota, get all their work done, and stay below it", async () => {
  const env = {
    ...process.env,
    REDIS_URL: server.url,
    QUOTA: "200",
    PERIOD_MS: "5000",
    JOBS: "20",
    REPORT: "1",
  };
  const args = ["examples/vendor-quota-fleet/fleet.mjs"];
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, env });
  expect(stdout).toContain("The vendor allows 200 requests in 5 s; the fleet takes 196, and 4 at once.");
  for (const worker of [1, 2, 3]) expect(stdout).toContain(`worker ${worker}: 20 of 20 jobs done`);
  const { began, arrivals, denied } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "");
  expect(arrivals.length - denied).toBe(60);
  within(arrivals, began, { rate: 196, period: 5000, capacity: 4 });
});
