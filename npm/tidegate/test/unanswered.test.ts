/** Failures of a key that are no answer of the store. */
import { expect, test } from "vitest";
import { type AsyncStore, defineLimits, StoreError } from "../src/index.ts";
import { behind } from "./behind.ts";

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
