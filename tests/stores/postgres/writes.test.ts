import { expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { stock, take, withServer } from "./fixture.ts";
import { versionOf } from "./stored.ts";

const fixture = withServer();
const transactions = async (): Promise<unknown> =>
  (await fixture.rows("SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next"))[0]?.["next"];

test("a denial or a check touches no row and begins no writing transaction", async () => {
  const store = fixture.store();
  const limit = stock("free", 10);
  const other = stock("other", 10);
  const sharded = stock("parts", 10, { shards: 4 });
  const window = new Limit("window", { kind: "fixed window", rate: 2, period: 1e9 });
  await store.decide(take(limit, "k", 9));
  await store.decide(take(limit, "l", 9));
  await store.decide(take(sharded, "k", 9));
  await store.decide(take(window, "k", 2));
  const ids = ["free:k", "free:l", "window:k", "parts:k"];
  const versions = async (): Promise<unknown[]> => {
    const all: unknown[] = [];
    for (const id of ids) all.push(await versionOf(fixture.rows, id));
    return all;
  };
  const before = await versions();
  expect(before.every((version) => version !== undefined)).toBe(true);
  const next = await transactions();

  const denied = [
    await store.decide(take(limit, "k", 5)),
    await store.decide(take(window, "k")),
    await store.decide(take(sharded, "k", 5)),
    await store.decide(take(limit, "k", 5, { op: "check" })),
    await store.decide(take(sharded, "k", 5, { op: "check" })),
    ...(await Promise.all(["k", "l", "k", "k"].map((key) => store.decide(take(limit, key, 5))))),
    ...(await Promise.all(["k", "l"].map((key) => store.decide(take(limit, key, 5))))),
    await store.decideAll([take(other, "k", 5), take(limit, "k", 5)]),
    await store.decideAll([take(other, "k", 5), take(sharded, "k", 5)]),
  ];
  expect(denied.map(({ ok }) => ok)).toEqual(denied.map(() => false));
  expect((await store.decide(take(limit, "k", 1, { op: "check" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "k", 0))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 0))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 5, { op: "check" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "none", 5, { op: "give" }))).ok).toBe(true);
  expect((await store.decide(take(limit, "k", 100))).reason).toBe("exceeds capacity");
  await store.getValue(limit, "k");
  await store.getValue(sharded, "k");

  expect(await versions()).toEqual(before);
  expect(await transactions()).toBe(next);
  expect(await fixture.rows("SELECT id FROM tidegate.states WHERE id IN ('free:none', 'other:k')")).toEqual([]);
});
