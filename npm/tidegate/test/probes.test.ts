/** Which calls are probes of a node that has failed. */
import { expect, test, vi } from "vitest";
import { type AsyncStore, defineLimits, StoreError } from "../src/index.ts";
import { KeyError } from "../src/stores/failure.ts";
import { behind } from "./behind.ts";

test("a probe on a key that fails alone, unanswered, is none: the next call is one", async () => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  let isDown = true;
  const store = behind(() => (isDown ? Promise.reject(new Error("down")) : Promise.resolve()), "rows");
  const details = { store: "rows", operation: "take", identity: "one:locked", scope: "key" } as const;
  const locked = new StoreError("locked", { ...details, cause: new KeyError("locked", false) });
  const decide: AsyncStore["decide"] = (call, now, deadline) =>
    call.key === "locked" ? Promise.reject(locked) : store.decide(call, now, deadline);
  const limits = defineLimits(
    { one: { kind: "token bucket", rate: 10, period: 1000 } },
    { store: { ...store, decide }, log: false },
  );
  const call = async (key: string) => (await limits.limit("one", { key })).cause;
  for (let i = 0; i < 5; i++) expect(await call("free")).toMatchObject({ scope: "store" });
  isDown = false;
  await vi.advanceTimersByTimeAsync(100);
  expect(await call("locked")).toBe(locked);
  expect(await call("free")).toBeUndefined();
});

test("a key's failure at its deadline, with the reason that its store has set for that, is no answer", async () => {
  const late = new StoreError("locked", { store: "rows", operation: "take", identity: "one:locked", scope: "key" });
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
