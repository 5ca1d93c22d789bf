/** Calls whose tokens fell due while none could run, and calls after a pause. */
import { expect, test } from "vitest";
import { throttle } from "../../src/client/index.ts";
import { defineLimits, SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";

test("after a standstill the capacity and one call run at once, also where that call is larger than those before", async () => {
  const clock = fakeClock();
  const started = clock.now();
  const ran: [string, number][] = [];
  let end: () => void = () => undefined;
  const hanging = new Promise<void>((ended) => (end = ended));
  const work = (name: string): Promise<void> | undefined => {
    ran.push([name, clock.now() - started]);
    return name === "hangs" ? hanging : undefined;
  };
  const policy = { kind: "token bucket", rate: 1, period: SECOND, capacity: 3 } as const;
  const throttled = throttle(work, policy, { clock, concurrency: 1 });
  for (const name of ["hangs", "a", "b", "c"]) void throttled(name);
  for (const name of ["three", "later"]) void throttled.with({ count: 3 })(name);
  await clock.pass(60 * SECOND);
  end();
  await clock.pass(3 * SECOND);
  expect(ran).toEqual([
    ["hangs", 0],
    ...["a", "b", "c", "three"].map((name) => [name, 60 * SECOND]),
    ["later", 63 * SECOND],
  ]);
});

test("tokens that no call needs, and that cannot return, are lost once they are due", async () => {
  const clock = fakeClock();
  const api = { kind: "token bucket", rate: 10, period: SECOND, capacity: 5 } as const;
  const limiter = defineLimits({ api }, { now: clock.now });
  const throttled = throttle(() => undefined, { limiter, name: "api" }, { clock });
  const gone = new AbortController();
  void throttled.with({ count: 5 })();
  const aborted = throttled.with({ count: 5, signal: gone.signal })();
  // They are not the latest that anyone took.
  limiter.charge("api");
  gone.abort(new Error("no longer needed"));
  await expect(aborted).rejects.toThrow("no longer needed");
  expect(limiter.getValue("api").value).toBe(-6);
  await clock.pass(10 * SECOND);
  await throttled();
  expect(limiter.getValue("api").value).toBe(4);
});

test("after a pause calls move up to a window of their own, where windows begin with a first request", async () => {
  const clock = fakeClock();
  let started = clock.now();
  const ran: [string, number][] = [];
  const work = (name: string): void => void ran.push([name, clock.now() - started]);
  const api = { kind: "fixed window", rate: 2, period: SECOND, start: "first request" } as const;
  const throttled = throttle(work, { limiter: defineLimits({ api }, { now: clock.now }), name: "api" }, { clock });
  void throttled("earlier");
  await clock.pass(10_300);
  started = clock.now();
  const gone = new AbortController();
  void throttled.with({ count: 2 })("first");
  const aborted = throttled.with({ count: 2, signal: gone.signal })("gone");
  void throttled("last");
  await clock.pass(100);
  gone.abort(new Error("no longer needed"));
  await expect(aborted).rejects.toThrow("no longer needed");
  await clock.pass(3 * SECOND);
  expect(ran.slice(1)).toEqual([
    ["first", 0],
    ["last", SECOND],
  ]);
});
