/** The alarm of an object among calls on it: it deletes what is full, and nothing that was written meanwhile. */
import { runDurableObjectAlarm } from "cloudflare:test";
import { env } from "cloudflare:workers";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { durableObject } from "tidegate/durable-object";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";

// More states than the alarm reads at a time.
const KEYS = 300;
const configs = { brief: { kind: "token bucket", rate: 10, period: SECOND } } as const;
const keys = Array.from({ length: KEYS }, (_, i) => `${i}`.padStart(3, "0"));

describe.each(["LIMITS", "LATE", "CLASSIC"] as const)("%s", (binding) => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.UTC(2030, 0) });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test.each([
    ["the first", keys.slice(0, 3)],
    ["the last", keys.slice(-3)],
    ["all", keys],
  ])("full states of which %s are taken from while they are deleted", async (which, taken) => {
    const limits = defineLimits(configs, {
      store: durableObject(env[binding], { object: () => which }),
      timeout: MINUTE,
    });
    const stub = env[binding].getByName(which);
    const take = (some: readonly string[], count = 1) =>
      Promise.all(some.map((key) => limits.limit("brief", { key, count })));
    await take(keys);
    vi.setSystemTime(Date.now() + MINUTE);
    const [ran, answers] = await Promise.all([runDurableObjectAlarm(stub), take(taken, 7)]);
    expect(ran).toBe(true);
    expect(answers.every(({ ok }) => ok)).toBe(true);
    const left = await Promise.all(taken.map((key) => limits.getValue("brief", { key })));
    expect(left.map(({ value }) => value)).toEqual(taken.map(() => 3));
    vi.setSystemTime(Date.now() + MINUTE);
    // The states that were written have an alarm, and then nothing is left.
    expect(await runDurableObjectAlarm(stub)).toBe(true);
    expect(await runDurableObjectAlarm(stub)).toBe(false);
  });
});
