/** What calls that share a step do not do to each other. */
import { expect, test } from "vitest";
import { shardingBy } from "../src/limit/shards.ts";
import { call, NOW, parts, table } from "./swap-table.ts";

const turn = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 0));

/** A table whose reads end by `ends`, in order of `begun`. */
function held() {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const made = table();
  const { read } = made.database;
  made.database.read = async (ids, until) => {
    begun.push(ids.join());
    await new Promise<void>((resolve) => ends.push(resolve));
    return read(ids, until);
  };
  return { ...made, begun, ends };
}

test("calls that join a step make it wait for those under way on their keys, but not again and again", async () => {
  const { store, begun, ends } = held();
  const keys = ["k", "slow", "slower"];
  const busy = keys.map((key) => store.decide(call("take", key), NOW));
  await turn();
  const all: Promise<{ ok: boolean }>[] = [store.decide(call(), NOW)];
  await turn();
  all.push(store.decideAll([call(), call("take", "slow")], NOW));
  ends[0]?.();
  await busy[0];
  await turn();
  const last = store.decideAll([call(), call("take", "slower")], NOW);
  await turn();
  expect(begun).toEqual(keys.map((key) => `one:${key}`));
  ends[1]?.();
  await busy[1];
  await turn();
  expect(begun.slice(3)).toEqual(["one:k,one:slow"]);
  ends[3]?.();
  expect((await Promise.all(all)).every(({ ok }) => ok)).toBe(true);
  await turn();
  expect(begun).toHaveLength(4);
  ends[2]?.();
  await busy[2];
  await turn();
  expect(begun.slice(4)).toEqual(["one:k,one:slower"]);
  ends[4]?.();
  expect((await last).decisions.map(({ value }) => value)).toEqual([6, 8]);
});

test("a step that waits for a place is on no key of another that has begun meanwhile", async () => {
  const { store, begun, ends } = held();
  const places = Array.from({ length: 128 }, (_, i) => store.decide(call("take", `${i}`), NOW));
  await turn();
  const next = store.decide(call(), NOW);
  await turn();
  const both = store.decideAll([call(), call("take", "1")], NOW);
  ends[0]?.();
  await places[0];
  await turn();
  expect(begun.slice(128)).toEqual(["one:k"]);
  ends[128]?.();
  await next;
  await turn();
  expect(begun).toHaveLength(129);
  for (const end of ends) end();
  await Promise.all(places);
  await turn();
  ends.at(-1)?.();
  expect((await both).decisions.map(({ value }) => value)).toEqual([8, 8]);
});

test("a call joins a step that waits for the others on its keys already, though these have not begun", async () => {
  const { store, reads } = table();
  const all = [["a", "x"], ["b"], ["a", "b"], ["x", "b"]].map((keys) =>
    store.decideAll(
      keys.map((key) => call("take", key)),
      NOW,
    ),
  );
  expect((await Promise.all(all)).every(({ ok }) => ok)).toBe(true);
  expect(reads.map((ids) => ids.join())).toEqual(["one:a,one:x", "one:b", "one:a,one:b,one:x"]);
});

test("a step writes and compares nothing for the keys of the calls that it denies", async () => {
  const { store, changes } = table();
  const calls = Array.from({ length: 12 }, (_, i) => store.decideAll([call(), call("take", `${i}`)], NOW));
  expect((await Promise.all(calls)).filter(({ ok }) => ok)).toHaveLength(10);
  const own = Array.from({ length: 10 }, (_, i) => `one:${i}`);
  expect(changes.map((some) => some.map(({ id }) => id))).toEqual([["one:k", ...own]]);
});

test("a step reads the rows of its calls at once, with a database that has shards too", async () => {
  const { store, reads, changes } = table({ sharding: shardingBy(() => 0) });
  const calls = Array.from({ length: 3 }, (_, i) => store.decideAll([call(), call("take", `${i}`)], NOW));
  expect((await Promise.all(calls)).every(({ ok }) => ok)).toBe(true);
  expect(reads).toEqual([["one:k", "one:0", "one:1", "one:2"]]);
  expect(changes).toHaveLength(1);
  await store.decideAll([call("check"), call("check", "0")], NOW);
  expect(changes[1]).toMatchObject([{ write: undefined }, { write: undefined }]);
});

test.each([
  ["shares", undefined, 1],
  ["does not share, where each shard is a row,", shardingBy(() => 0), 4],
])("a call on a limit with shards %s a step with calls on other keys", async (_, sharding, steps) => {
  const { store, changes } = table({ sharding });
  const shards = (key: string) => ({ ...call("take", key), limit: parts });
  const own = [call("take", "a"), shards("a"), shards("b"), shards("b"), call("take", "b")];
  const all = await Promise.all(own.map((one) => store.decideAll([call(), one], NOW)));
  expect(all.every(({ ok }) => ok)).toBe(true);
  expect(changes).toHaveLength(steps);
});
