/** Servers that are killed or stand still, and what a limiter on them decides meanwhile and afterwards. */
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import type { AsyncStore } from "tidegate/store";

interface Server {
  signal(signal: NodeJS.Signals): void;
  stop(): Promise<void>;
  /** Starts it again. */
  up(): Promise<void>;
}

const bucket = { kind: "token bucket", rate: 1, period: HOUR, capacity: 1000 } as const;

/** Without the server `onStoreError` decides, with the default timeout and breaker; and the store once the server is back. */
export async function outage(how: string, server: Server, store: AsyncStore): Promise<void> {
  const limiter = defineLimits({ denies: bucket, allows: { ...bucket, onStoreError: "allow" } }, { store });
  const resumes = async (): Promise<void> => {
    while ((await limiter.limit("denies", { key: "k", count: 0 })).degraded) await sleep(50);
  };
  await resumes();
  if (how === "killed") await server.stop();
  else server.signal("SIGSTOP");
  const [denied, allowed] = await Promise.all([
    limiter.limit("denies", { key: "k" }),
    limiter.limit("allows", { key: "k" }),
  ]);
  expect([denied.ok, denied.degraded, allowed.ok, allowed.degraded]).toEqual([false, true, true, true]);
  expect(denied.cause).toMatchObject({ code: "TIDEGATE_STORE", store: store.name, identity: "denies:k" });
  if (how === "killed") await server.up();
  else server.signal("SIGCONT");
  await resumes();
}

/** Calls whose deadline passes while the server stands still take nothing when it continues. */
export async function lateTakesNothing(server: Pick<Server, "signal">, store: AsyncStore): Promise<void> {
  const limiter = (timeout: number) => defineLimits({ late: bucket }, { store, timeout, log: false });
  await limiter(60_000).limit("late");
  server.signal("SIGSTOP");
  const late = await Promise.all([1, 2, 3].map(() => limiter(200).limit("late")));
  expect(late.map(({ degraded }) => degraded)).toEqual([true, true, true]);
  server.signal("SIGCONT");
  // One step later: what was out has been answered.
  await limiter(60_000).check("late");
  expect((await limiter(60_000).getValue("late")).value).toBeCloseTo(999, 1);
}
