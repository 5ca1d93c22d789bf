/** Failures of a key that are no answer of the store. */
import { expect, test, vi } from "vitest";
import { type AsyncStore, defineLimits, StoreError } from "../src/index.ts";
import { KeyError } from "../src/stores/failure.ts";
import { behind } from "./behind.ts";

test("a key's failure at its deadline does not count as an answer of the store", async () => {
  const details = { store: "rows", operation: "take", identity: "one:locked", scope: "key" } as const;
  const late = Object.assign(new StoreError("locked", details), { answered: false });
  let sent = 0;
  const decide: AsyncStore["decide"] = ({ key }, _, deadline) => {
    sent++;
    if (deadline !== undefined) deadline.why = late;
    return Promise.reject(key === "locked" ? late : new Error("down"));
  };
  const store = { ...behind(() => Promise.reject(new Error("down")), "rows"), decide };
  const limits = defineLimits({ one: { kind: "token bucket", rate: 10, period: 1000 } }, { store, log: false });
  for (let i = 0; i < 20; i++) await limits.limit("one", { key: i % 2 === 0 ? "free" : "locked" });
  expect(sent).toBe(9);
});

/** A store that fails while `isDown`; calls on the key "locked" fail alone, after `ms`, and nothing answers them. */
function locking(ms: number) {
  const details = { store: "rows", operation: "take", identity: "one:locked", scope: "key" } as const;
  const cause = new StoreError("locked", { ...details, cause: new KeyError("locked", false) });
  const found = { isDown: true, sent: 0 };
  const store = behind(() => (found.isDown ? Promise.reject(new Error("down")) : Promise.resolve()), "rows");
  const decide: AsyncStore["decide"] = (call, now, deadline) => {
    found.sent++;
    if (call.key !== "locked") return store.decide(call, now, deadline);
    return new Promise((_, reject) => setTimeout(reject, ms, cause));
  };
  const limits = defineLimits(
    { one: { kind: "token bucket", rate: 1000, period: 1000 } },
    { store: { ...store, decide }, log: false },
  );
  const call = async (key: string) => (await limits.limit("one", { key })).cause;
  return { found, call, cause };
}

test("after a probe whose key fails alone, without an answer, the next call is the probe", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  const { found, call, cause } = locking(1);
  for (let i = 0; i < 5; i++) expect(await call("free")).toMatchObject({ scope: "store" });
  await vi.advanceTimersByTimeAsync(100);
  for (let i = 0; i < 20; i++) {
    const probe = call("locked");
    expect(await call("free")).toMatchObject({ message: expect.stringContaining("failed repeatedly") });
    await vi.advanceTimersByTimeAsync(1);
    expect(await probe).toBe(cause);
  }
  expect([await call("free"), found.sent]).toEqual([expect.objectContaining({ scope: "store" }), 26]);
  // Probes that ended so have not prolonged the time until the next one.
  await vi.advanceTimersByTimeAsync(199);
  expect(await call("free")).toMatchObject({ message: expect.stringContaining("failed repeatedly") });
  found.isDown = false;
  await vi.advanceTimersByTimeAsync(1);
  expect(await call("free")).toBeUndefined();
});

test("calls whose keys fail alone, without an answer, open no place for further probes", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  const { found, call } = locking(50);
  const burst = Array.from({ length: 128 }, () => call("locked"));
  for (let i = 0; i < 5; i++) await call("free");
  await vi.advanceTimersByTimeAsync(50);
  await Promise.all(burst);
  for (let i = 0; i < 128; i++) await call("free");
  expect(found.sent).toBe(128 + 5);
});
