/** Where there is no IndexedDB: Node.js has none. With one, tests/platforms runs the store in browsers. */
import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { defineLimits } from "../src/index.ts";
import { webStorage } from "../src/stores/web-storage.ts";
import { there } from "./realm.ts";

const configs = { save: { kind: "token bucket", rate: 1, period: 60_000 } } as const;

test.each([
  ["returns", () => undefined],
  ["throws", there<() => void>("() => { throw new Error('reported'); }")],
  ["rejects", () => Promise.reject(new Error("reported"))],
])("limits are in memory, and `onFallback` is called once, where it %s", async (_, onFallback) => {
  const unhandled = vi.fn();
  process.on("unhandledRejection", unhandled);
  const called = vi.fn(onFallback);
  const limits = defineLimits(configs, { store: webStorage({ onFallback: called }) });
  const decided = [await limits.limit("save"), await limits.limit("save")];
  await turn();
  process.off("unhandledRejection", unhandled);
  expect(decided.map(({ ok, degraded }) => [ok, degraded])).toEqual([
    [true, undefined],
    [false, undefined],
  ]);
  expect(called.mock.calls).toEqual([
    [expect.objectContaining({ message: "tidegate: limits are this tab's own, in memory: there is no IndexedDB" })],
  ]);
  expect(unhandled).not.toHaveBeenCalled();
});

test("the first call waits for a database that takes longer to open than the call's deadline", async () => {
  vi.useFakeTimers();
  const open = () => {
    const request = { error: new Error("refused"), onerror: () => {} };
    setTimeout(() => request.onerror(), 1000);
    return request;
  };
  Object.assign(globalThis, { indexedDB: { open } });
  try {
    const limits = defineLimits(configs, { store: webStorage({ onFallback: () => {} }), log: false });
    const decision = limits.limit("save");
    await vi.advanceTimersByTimeAsync(1000);
    const { ok, degraded } = await decision;
    expect([ok, degraded]).toEqual([true, undefined]);
  } finally {
    Reflect.deleteProperty(globalThis, "indexedDB");
  }
});

test("the error of a call that gets no answer names what holds up a database of the browser, and not sockets", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  onTestFinished(() => void Reflect.deleteProperty(globalThis, "indexedDB"));
  Object.assign(globalThis, { indexedDB: { open: () => ({}) } });
  const lines: string[] = [];
  const log = { error: (line: string) => lines.push(line), info: () => {} };
  const limits = defineLimits(configs, { store: webStorage(), log });
  const calls = [limits.limit("save"), limits.limitAll([{ name: "save" }])];
  // What the first calls wait for a database to open, and their own deadline.
  await vi.advanceTimersByTimeAsync(2250);
  const late = "no answer in time: another tab may hold up the database, by a long transaction or while it deletes it";
  for (const { cause } of await Promise.all(calls))
    expect(cause).toMatchObject({ message: expect.stringContaining(late) });
  expect(lines).toEqual([
    expect.stringMatching(
      /deletes it; until web-storage answers again, its calls are denied \(onStoreError: "deny"\)$/,
    ),
  ]);
  const failed = expect(limits.getValue("save")).rejects.toThrow(late);
  await vi.advanceTimersByTimeAsync(250);
  await failed;
});
