/** Requests to PostgreSQL close to their deadline, on a clock that the test moves. */
import { expect, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { Limit } from "../src/limit/limit.ts";
import type { Deadline } from "../src/stores/contract.ts";
import { postgres } from "../src/stores/postgres.ts";
import { PendingRequest } from "../src/stores/postgres/request.ts";
import { stoppingClock } from "./stopping-clock.ts";

const START = 1_000_000;
const clock = stoppingClock(START);
const { pass, stop } = clock;

test("a request that could not be withdrawn before its deadline is not sent", async () => {
  const sent: unknown[][] = [];
  // No connection of this client is free. Withdrawing takes a moment, as where the process is busy.
  const cancel = (): void => {
    clock.now = START + 58.5;
  };
  const client = {
    unsafe(_: string, values?: never[]) {
      sent.push(values ?? []);
      return Object.assign(new Promise<unknown>(() => {}), { state: null, cancel });
    },
  };
  const store = postgres(client);
  const limit = new Limit("api", { kind: "token bucket", rate: 1000, period: 1000 });
  const call = { op: "take", limit, key: "k", count: 1, reserve: false, start: undefined } as const;
  // More than one statement has room for.
  const calls = Array.from({ length: 100 }, () => store.decide(call, undefined, { at: START + 60 }));
  const failed = Promise.allSettled(calls);
  await pass(0);
  expect(sent).toHaveLength(1);
  await pass(54);
  await pass(0);
  expect(sent).toHaveLength(1);
  expect((await failed).map(({ status }) => status)).toEqual(Array(100).fill("rejected"));
});

test("a process that did not run past the deadline, and reads replies before its timers run, sends the calls that wait", async () => {
  const sent: ((error: unknown) => void)[] = [];
  let connects = true;
  const client = {
    unsafe() {
      if (!connects) return new Promise<unknown>((_, reject) => void sent.push(reject));
      connects = false;
      return Promise.resolve([]);
    },
  };
  const limits = defineLimits(
    { api: { kind: "token bucket", rate: 1000, period: 1000 } },
    { store: postgres(client), timeout: 250, log: false },
  );
  const [first, second] = [limits.limit("api", { key: "k" }), limits.limit("api", { key: "other" })];
  await pass(0);
  const waiting = limits.limit("api", { key: "k" });
  await pass(0);
  expect(sent).toHaveLength(1);
  await pass(249);
  stop(5000);
  const answered = Object.assign(new Error("permission denied"), { code: "42501" });
  for (let i = 0; i < 10; i++) {
    sent.shift()?.(answered);
    // The timers that were due come after the reply.
    await vi.advanceTimersByTimeAsync(1);
  }
  await Promise.all([first, second]);
  expect((await waiting).cause).toMatchObject({ message: expect.stringContaining("permission denied") });
});

test("a process that did not run past the deadline sends a statement again that another transaction undid", async () => {
  const sent: ((error: unknown) => void)[] = [];
  const client = { unsafe: () => new Promise<unknown>((_, reject) => void sent.push(reject)) };
  const limit = new Limit("api", { kind: "token bucket", rate: 1000, period: 1000 });
  const call = { op: "take", limit, key: "k", count: 1, reserve: false, start: undefined } as const;
  const deadline = { at: START + 250 };
  const decided = postgres(client).decide(call, undefined, deadline);
  await pass(0);
  await pass(200);
  stop(500);
  // As a limiter does whose timer is late.
  setTimeout(() => (deadline.at = clock.now + 250), 0);
  sent.shift()?.(Object.assign(new Error("could not serialize access"), { code: "40001" }));
  for (let i = 0; i < 10; i++) await vi.advanceTimersByTimeAsync(1);
  expect(sent).toHaveLength(1);
  sent.shift()?.(new Error("gone"));
  await expect(decided).rejects.toThrow("gone");
});

test("a process that did not run past the deadline looks again whether a row is locked, before its calls are late", async () => {
  const sent: { resolve(rows: unknown): void; reject(error: unknown): void }[] = [];
  const client = {
    unsafe: () => new Promise<unknown>((resolve, reject) => void sent.push({ resolve, reject })),
  };
  const limit = new Limit("api", { kind: "token bucket", rate: 1000, period: 1000 });
  const call = (key: string) => ({ op: "take", limit, key, count: 1, reserve: false }) as const;
  const store = postgres(client, { statementTimeout: 60_000 });
  const failed = store.decideAll([call("a"), call("b")]).catch(({ message }) => message);
  await pass(0);
  sent.shift()?.reject(Object.assign(new Error("canceling statement due to lock timeout"), { code: "55P03" }));
  for (let i = 0; i < 2; i++) {
    await pass(0);
    sent.shift()?.resolve([{ reply: "1" }]);
  }
  await pass(0);
  expect(sent).toEqual([]);
  const deadline = { at: START + 250 };
  const later = store.decide(call("a"), undefined, deadline).catch(({ message }) => message);
  stop(500);
  // As a limiter does whose timer is late.
  setTimeout(() => (deadline.at = clock.now + 250), 20);
  await pass(20);
  await pass(1);
  sent.shift()?.resolve([{ reply: "" }]);
  await pass(0);
  sent.shift()?.reject(new Error("gone"));
  expect(await Promise.all([failed, later])).toEqual(Array(2).fill(expect.stringContaining("gone")));
});

test.each([false, true])(
  "the reason that a call is late states whether the server replied to it: before the reason %j",
  (before) => {
    const deadline: NonNullable<Deadline> = { at: Infinity };
    const limit = new Limit("api", { kind: "token bucket", rate: 1, period: 1000 });
    const calls = [{ op: "take", limit, key: "a", count: 1, reserve: false }] as const;
    const pending = new PendingRequest({ operation: "take", calls, now: undefined, deadline }, vi.fn(), vi.fn());
    pending.answered = before;
    pending.failAtDeadline("the row is locked", undefined);
    expect(deadline.why?.answered).toBe(before);
    pending.answered = true;
    expect(deadline.why?.answered).toBe(true);
  },
);

test.each([
  ["by default, for longer than PostgreSQL takes to end a deadlock", {}, 3000],
  ["for its statementTimeout", { statementTimeout: "500ms" }, 500],
] as const)("a store within a transaction waits for an answer %s", async (_, options, waits) => {
  const silent = { query: () => new Promise<never>(() => {}) };
  const limit = new Limit("order", { kind: "token bucket", rate: 1, period: 1000 });
  const ended = vi.fn<(error: Error) => void>();
  const call = { op: "take", limit, key: "k", count: 1, reserve: false } as const;
  postgres(silent, options).within(silent).decide(call).catch(ended);
  await pass(waits - 1);
  expect(ended).not.toHaveBeenCalled();
  await pass(1);
  expect(ended.mock.lastCall?.[0].message).toContain(`no answer within ${waits} ms`);
});
