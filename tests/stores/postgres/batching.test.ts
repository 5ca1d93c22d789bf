import { expect, test } from "vitest";
import { Limit } from "tidegate/store";
import { postgres, type PostgresOptions, type PostgresStore } from "tidegate/postgres";
import { granted, PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();

/** A store whose statements are counted. */
function counted(options: PostgresOptions = {}): { store: PostgresStore; statements: string[] } {
  const pool = fixture.pool();
  const statements: string[] = [];
  const store = postgres(
    {
      query(text: string, values?: unknown[]) {
        const name = /"tidegate"\.(?!in_time)(\w+)\(/.exec(text)?.[1] ?? text;
        // One in 128 calls that make a row cleans up.
        if (name !== "purge") statements.push(name);
        return pool.query(text, values);
      },
    },
    { ...PATIENT, ...options },
  );
  return { store, statements };
}

test("every call is one statement; one that can never be granted sends none", async () => {
  const { store, statements } = counted();
  const limit = stock("each", 10);
  const sharded = stock("eachs", 10, { shards: 5 });
  const once = async (of: Promise<unknown>, name: string | undefined): Promise<void> => {
    await of;
    expect(statements.splice(0)).toEqual(name === undefined ? [] : [name]);
  };
  await once(store.decide(take(limit, "k")), "take_row");
  await once(store.decide(take(limit, "k")), "take_row");
  await once(store.decide(take(limit, "k", 10)), "take_row");
  await once(store.decide(take(limit, "k", 1, { op: "check" })), "read_rows");
  await once(store.decide(take(limit, "k", 1, { op: "give" })), "call_rows");
  await once(store.decide(take(limit, "k", 1, { op: "charge" })), "call_rows");
  await once(store.decide(take(limit, "k", 20, { reserve: true })), "call_rows");
  await once(store.decideAll([take(limit, "k"), take(limit, "l"), take(sharded, "k")]), "call_rows");
  await once(store.decide(take(sharded, "k", 7)), "take_row");
  await once(store.getValue(sharded, "k"), "read_rows");
  await once(store.reset(sharded, "k"), "call_rows");
  await once(store.decide(take(limit, "k", 11)), undefined);
});

test("calls of one turn share one statement, and each resolves with its own decision", async () => {
  const { store, statements } = counted();
  const bucket = stock("turn", 100);
  const window = new Limit("turnw", { kind: "fixed window", rate: 50, period: 1e9 });
  const takeAll = () =>
    Promise.all(
      Array.from({ length: 64 }, (_, i) => store.decide(take(i % 2 === 0 ? bucket : window, `k${i}`, 1 + (i % 3)))),
    );
  for (const turn of [1, 2]) {
    const answers = await takeAll();
    expect(statements.splice(0)).toEqual(["call_rows"]);
    for (const [i, answer] of answers.entries()) {
      expect(answer.ok).toBe(true);
      expect(answer.limit).toBe(i % 2 === 0 ? 100 : 50);
      expect(answer.value).toBeCloseTo((i % 2 === 0 ? 100 : 50) - turn * (1 + (i % 3)), 6);
    }
  }
  // Some denied, some new, some granted: still one statement.
  const mixed = await Promise.all(
    Array.from({ length: 64 }, (_, i) =>
      store.decide(take(bucket, i % 4 === 1 ? `new${i}` : `k${i - (i % 2)}`, i % 4 === 1 ? 1 : 0.5)),
    ),
  );
  expect(granted(mixed)).toBe(64);
  expect(statements.splice(0).length).toBeLessThanOrEqual(2);
  const checks = await Promise.all(
    Array.from({ length: 64 }, (_, i) => store.decide(take(bucket, `k${i}`, 1, { op: "check" }))),
  );
  expect(checks.length).toBe(64);
  expect(statements.splice(0)).toEqual(["read_rows"]);
});

test("calls on one key are decided in the order they were made, in one statement", async () => {
  const { store, statements } = counted();
  const limit = stock("hot", 40);
  const answers = await Promise.all(Array.from({ length: 64 }, () => store.decide(take(limit, "k"))));
  expect(statements.splice(0)).toEqual(["call_rows"]);
  expect(answers.map(({ ok }) => ok)).toEqual(Array.from({ length: 64 }, (_, i) => i < 40));
  for (const [i, answer] of answers.entries()) expect(answer.value).toBeCloseTo(Math.max(0, 39 - i), 6);
});

test("calls made while a statement is out share the next one, in order", async () => {
  const { store, statements } = counted({ statements: 1 });
  const limit = stock("later", 1000);
  const first = store.decide(take(limit, "first"));
  while (statements.length === 0) await undefined;
  const order: string[] = [];
  const rest = Array.from({ length: 100 }, (_, i) =>
    store.decide(take(limit, `k${i}`)).then(() => order.push(`k${i}`)),
  );
  const given = store.decide(take(limit, "k5", 3, { op: "give" })).then((answer) => {
    order.push("give");
    expect(answer.value).toBe(1000);
  });
  const gone = store.reset(limit, "k5").then(() => order.push("reset"));
  const after = store.decide(take(limit, "k5", 5)).then((answer) => {
    order.push("after");
    expect(answer.value).toBeCloseTo(995, 6);
  });
  await Promise.all([first, ...rest, given, gone, after]);
  expect(statements.splice(0)).toEqual(["take_row", "call_rows"]);
  expect(order.filter((what) => !/^k(?!5$)/.test(what))).toEqual(["k5", "give", "reset", "after"]);
});

test("a statement has at most `batch` calls", async () => {
  const { store, statements } = counted({ batch: 10, statements: 1 });
  const limit = stock("batch", 1000);
  const answers = await Promise.all(Array.from({ length: 95 }, (_, i) => store.decide(take(limit, `k${i}`))));
  expect(granted(answers)).toBe(95);
  expect(statements.length).toBe(10);
});

test("one row that PostgreSQL cannot compute with fails its own call only", async () => {
  const { store } = counted();
  const limit = new Limit("broken", { kind: "token bucket", rate: 2 ** 40, period: 1 });
  await fixture.rows("INSERT INTO tidegate.states VALUES ('broken:bad', 1, -1e300)");
  const answers = await Promise.allSettled(["a", "bad", "c"].map((key) => store.decide(take(limit, key))));
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(answers[1]).toMatchObject({ reason: { code: "TIDEGATE_STORE", identity: "broken:bad", operation: "take" } });
});
