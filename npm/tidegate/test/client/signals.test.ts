/** Many calls that share a signal: Node.js warns of a leak at the eleventh listener. */
import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { concurrent, createFetch, semaphore } from "../../src/client/index.ts";
import { defineLimits } from "../../src/index.ts";
import { spend } from "../../src/limiter/budget.ts";

const listeners = (signal: AbortSignal): number => getEventListeners(signal, "abort").length;
const never = (): Promise<never> => new Promise(() => {});

/** Makes 20 calls that wait, and aborts them. */
async function aborted(call: (signal: AbortSignal, i: number) => Promise<unknown>): Promise<void> {
  const { signal, abort } = controller();
  const calls = Array.from({ length: 20 }, (_, i) => call(signal, i));
  await new Promise(setImmediate);
  expect(listeners(signal)).toBe(1);
  abort();
  expect(await Promise.allSettled(calls)).toEqual(calls.map(() => ({ status: "rejected", reason: "stop" })));
  expect(listeners(signal)).toBe(0);
}

function controller(): { signal: AbortSignal; abort: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, abort: () => controller.abort("stop") };
}

test("a semaphore", async () => {
  const one = semaphore(1);
  await one.acquire();
  await aborted((signal) => one.acquire({ signal }));
});

test("the queues of several keys", async () => {
  const busy = semaphore(1);
  busy.tryAcquire();
  const call = concurrent(never, busy, { key: String });
  await aborted((signal, i) => call.with({ signal, key: `key ${i}` })());
});

test("a fetch to several hosts", async () => {
  const busy = semaphore(1);
  busy.tryAcquire();
  const fetch = createFetch({ fetch: never, concurrency: busy });
  await aborted((signal, i) => fetch(`http://host-${i}/`, { signal }));
});

test("a budget", async () => {
  const limits = defineLimits({
    tokens: { kind: "token bucket", rate: 1, period: "1h", capacity: 1, maxReserved: 100 },
  });
  limits.limit("tokens");
  await aborted((signal) => spend(limits, { limits: ["tokens"], estimate: 1, wait: "1d", signal }, never));
});

test("a call that ends takes its listener along, and not that of the others", async () => {
  const one = semaphore(1);
  const { signal, abort } = controller();
  const release = await one.acquire();
  const [second, third] = [one.acquire({ signal }), one.acquire({ signal })];
  release();
  const releaseSecond = await second;
  expect(listeners(signal)).toBe(1);
  abort();
  await expect(third).rejects.toBe("stop");
  releaseSecond();
  expect(one.held).toBe(0);
});
