/** What is stored, and calls on a table that is corrupt, throttled, stopped or missing. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { Readable } from "node:stream";
import type { DynamoDB } from "@aws-sdk/client-dynamodb";
import { describe, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { dynamodb } from "tidegate/dynamodb";
import { lateTakesNothing } from "../outages.ts";
import { running } from "../running.ts";
import { DynamoDbServer } from "./server.ts";

const fixture = running(() => DynamoDbServer.start());

const configs = {
  login: { kind: "token bucket", rate: 2, period: HOUR },
  parts: { kind: "token bucket", rate: 4, period: HOUR, shards: 4 },
} as const;
const limitsOn = (table: string, client: DynamoDB = fixture.server.client, timeout = 60_000) =>
  defineLimits(configs, { store: dynamodb(client, { table }), timeout, log: false });
const items = async (TableName: string) =>
  ((await fixture.server.client.scan({ TableName })).Items ?? []).sort((a, b) =>
    `${a["id"]?.S}`.localeCompare(`${b["id"]?.S}`),
  );

/** Keeps this process from running for so many ms, as work does, and the machine free. */
const work = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

test("a grant is one item of 16 bytes and a TTL, with shards too; a denial and a check write nothing", async () => {
  const table = await fixture.server.createTable("items");
  const limits = limitsOn(table);
  const began = Date.now();
  await limits.limit("login", { key: "k", count: 1.5 });
  await limits.limit("parts", { count: 3 });
  const before = await items(table);
  expect(before.map(({ id, state }) => [id?.S, state?.B?.length])).toEqual([
    ["login:k", 16],
    ["parts", 16],
  ]);
  // 1.5 of 2 tokens come back in 45 minutes; a minute more for other clocks.
  const dropAt = Number(before[0]?.["dropAt"]?.N) * 1000 - began;
  expect(dropAt).toBeGreaterThanOrEqual(0.75 * HOUR + 60_000);
  expect(dropAt).toBeLessThan(HOUR);
  expect((await limits.limit("login", { key: "k" })).ok).toBe(false);
  await limits.check("login", { key: "k", count: 0.25 });
  expect((await limits.limitAll([{ name: "login", key: "k" }, { name: "parts" }])).ok).toBe(false);
  expect(await items(table)).toEqual(before);
  await limits.reset("login", { key: "k" });
  expect(await items(table)).toHaveLength(1);
});

test("reads are strongly consistent, or transactions; a reset is a deletion", async () => {
  const table = await fixture.server.createTable("consistent");
  const inputs: object[] = [];
  const client = fixture.server.connect();
  // The emulator's reads are consistent whatever is sent.
  client.middlewareStack.add(
    (next) => (args) => {
      inputs.push(args.input);
      return next(args);
    },
    { step: "initialize" },
  );
  const limits = limitsOn(table, client);
  // The first call connects, by a read of no item.
  await limits.check("login", { key: "k" });
  inputs.length = 0;
  await limits.check("login", { key: "k" });
  await limits.checkAll([{ name: "login", key: "k" }, { name: "parts" }]);
  await limits.reset("login", { key: "k" });
  const key = (id: string) => ({ Key: { id: { S: id } }, TableName: table });
  expect(inputs).toEqual([
    { ...key("login:k"), ConsistentRead: true },
    { TransactItems: [{ Get: key("login:k") }, { Get: key("parts") }] },
    key("login:k"),
  ]);
  client.destroy();
});

test.each([
  ["text", { state: { S: "garbage" } }],
  ["15 bytes", { state: { B: new Uint8Array(15) } }],
  ["no state", {}],
])("a corrupt item (%s) fails the calls on its key alone, until reset", async (kind, attributes) => {
  const table = await fixture.server.createTable(`corrupt-${kind.replaceAll(" ", "-")}`);
  const limits = limitsOn(table);
  const Item = { id: { S: "login:bad" }, ...attributes };
  await fixture.server.client.putItem({ TableName: table, Item });
  const { cause } = await limits.limit("login", { key: "bad" });
  expect(cause).toMatchObject({
    scope: "key",
    message: expect.stringContaining('dynamodb: read of "login:bad" failed'),
  });
  expect((await fixture.server.client.getItem({ TableName: table, Key: { id: Item.id } })).Item).toEqual(Item);
  await limits.reset("login", { key: "bad" });
  expect(await limits.limit("login", { key: "bad" })).toMatchObject({ ok: true });
});

/** A client, with its own attempts, whose first requests of these kinds are answered with this error, as DynamoDB sends it. */
function failing(
  times: number,
  operation: string,
  body: object,
  statusCode = 400,
): { client: DynamoDB; left: () => number } {
  const client = fixture.server.connect();
  let left = times;
  const { requestHandler } = client.config;
  const { handle } = requestHandler;
  requestHandler.handle = async (request, options) => {
    if (left === 0 || !request.headers["x-amz-target"]?.endsWith(operation)) {
      return handle.call(requestHandler, request, options);
    }
    left--;
    const headers = { "content-type": "application/x-amz-json-1.0" };
    return { response: { statusCode, headers, body: Readable.from([JSON.stringify(body)]) } } as never;
  };
  return { client, left: () => left };
}
const error = (name: string, more = {}) => ({
  __type: `com.amazonaws.dynamodb.v20120810#${name}`,
  message: name,
  ...more,
});
const cancelled = (...codes: string[]) =>
  error("TransactionCanceledException", { CancellationReasons: codes.map((Code) => ({ Code })) });
let tables = 0;
const pair = [{ name: "login", key: "k" }, { name: "parts" }] as const;

describe("an error that means that nothing was done is repeated, and the call takes its tokens once", () => {
  test.each([
    ["PutItem", error("ProvisionedThroughputExceededException")],
    ["PutItem", error("ThrottlingException")],
    ["PutItem", error("TransactionConflictException")],
    // Another region writes the item, in a global table that is strongly consistent.
    ["PutItem", error("ReplicatedWriteConflictException")],
    ["GetItem", error("RequestLimitExceeded")],
    ["TransactWriteItems", cancelled("None", "TransactionConflict")],
    ["TransactWriteItems", cancelled("ThrottlingError", "None")],
    ["TransactGetItems", cancelled("TransactionConflict", "None")],
  ])("%s, %o", async (operation, body) => {
    const table = await fixture.server.createTable(`busy${++tables}`);
    const { client, left } = failing(3, operation, body);
    const limits = limitsOn(table, client);
    const decision = operation.startsWith("Transact")
      ? await limits.limitAll(pair)
      : await limits.limit("login", { key: "k" });
    expect(decision).toMatchObject({ ok: true });
    expect(left()).toBe(0);
    expect((await limits.getValue("login", { key: "k" })).value).toBeCloseTo(1, 1);
    client.destroy();
  });
});

/** From here on the deadlines of calls pass only where the test says so, however slow the server is. */
const stopClock = () => vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
/** A call whose deadline, in `ms`, passes once a write of its has failed; `left` is that of the client. */
async function lateAfterWrite(limits: ReturnType<typeof limitsOn>, left: () => number, ms: number) {
  const before = left();
  const call = limits.limit("login", { key: "hot" });
  while (left() === before) await new Promise((resolve) => setImmediate(resolve));
  await vi.advanceTimersByTimeAsync(ms);
  return call;
}

test("throttled until its deadline: the call is degraded, and takes nothing", async () => {
  const table = await fixture.server.createTable("throttled");
  const { client } = failing(1e6, "PutItem", error("ThrottlingException"));
  const decision = await limitsOn(table, client, 300).limit("login", { key: "k" });
  expect(decision).toMatchObject({ ok: false, degraded: true });
  expect(await items(table)).toEqual([]);
  client.destroy();
});

test("one key that is throttled, or that others write, does not keep calls from other keys", async () => {
  const table = await fixture.server.createTable("hot");
  stopClock();
  for (const name of ["ProvisionedThroughputExceededException", "ConditionalCheckFailedException"]) {
    const { client, left } = failing(1e6, "PutItem", error(name));
    const limits = limitsOn(table, client, 500);
    for (let i = 0; i < 6; i++) {
      expect((await lateAfterWrite(limits, left, 500)).cause).toMatchObject({ scope: "key" });
    }
    expect((await limits.check("login", { key: "other" })).degraded).toBeUndefined();
    client.destroy();
  }
});

/** A client whose first request of this kind has no answer, since its connection is reset once the server has carried it out. */
function cutOff(operation: string): { client: DynamoDB; sent: () => number } {
  const client = fixture.server.connect();
  let sent = 0;
  const { requestHandler } = client.config;
  const { handle } = requestHandler;
  requestHandler.handle = async (request, options) => {
    const answer = await handle.call(requestHandler, request, options);
    if (!request.headers["x-amz-target"]?.endsWith(operation) || sent++ > 0) return answer;
    throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
  };
  return { client, sent: () => sent };
}

test("a write without an answer is not sent again, which would take its tokens twice", async () => {
  const table = await fixture.server.createTable("unanswered");
  const { client, sent } = cutOff("PutItem");
  const limits = limitsOn(table, client);
  expect(await limits.limit("login", { key: "k" })).toMatchObject({ degraded: true });
  expect(sent()).toBe(1);
  expect((await limits.getValue("login", { key: "k" })).value).toBeCloseTo(1, 1);
  client.destroy();
});

test("a read whose connection is reset, as those of a function that was frozen are, is sent again", async () => {
  const table = await fixture.server.createTable("thawed");
  const { client } = cutOff("GetItem");
  const limits = limitsOn(table, client);
  // The first request only connects.
  expect(await limits.limit("login", { key: "k" })).toMatchObject({ ok: true });
  const again = cutOff("TransactGetItems");
  expect(await limitsOn(table, again.client).limitAll(pair)).toMatchObject({ ok: true });
  expect(again.sent()).toBe(2);
  client.destroy();
  again.client.destroy();
});

test.each([
  ["GetItem", "InternalServerError", 500, 2],
  ["TransactGetItems", "ServiceUnavailable", 503, 2],
  ["PutItem", "InternalServerError", 500, 1],
] as const)(
  "%s that DynamoDB fails to process (%s, %i) is sent %i times: a write is not sent again",
  async (...fault) => {
    const [operation, name, status, attempts] = fault;
    const table = await fixture.server.createTable(`unprocessed${++tables}`);
    for (const times of [attempts - 1, attempts]) {
      // The first request, a GetItem, only connects.
      const { client, left } = failing(times + (operation === "GetItem" ? 1 : 0), operation, error(name), status);
      const limits = limitsOn(table, client);
      const many = operation.startsWith("Transact");
      const { degraded } = await (many ? limits.limitAll(pair) : limits.limit("login", { key: "k" }));
      expect({ times, degraded, left: left() }).toEqual({ times, degraded: times === attempts || undefined, left: 0 });
      client.destroy();
    }
  },
);

test.each([
  ["its content", cancelled("ValidationError", "None")],
  // The client has sent it before, and lost the reply: it may still be carried out.
  ["an attempt that is under way", error("TransactionInProgressException")],
])("an error that is not repeated: the transaction is refused for %s", async (_, body) => {
  const table = await fixture.server.createTable(`refused${++tables}`);
  const { client, left } = failing(2, "TransactWriteItems", body);
  expect(await limitsOn(table, client).limitAll(pair)).toMatchObject({ degraded: true });
  expect(left()).toBe(1);
  client.destroy();
});

test("a reply that arrives while this process is busy past the deadline is the decision", async () => {
  const table = await fixture.server.createTable("stalled");
  const client = fixture.server.connect();
  const limits = limitsOn(table, client, 5000);
  await limits.check("login", { key: "k" });
  // Once the request has left: the server has its own process, and replies meanwhile, however slow it is.
  const stall = () => setImmediate(() => setImmediate(work, 6000));
  subscribe("http.client.request.start", stall);
  const { ok, degraded } = await limits.check("login", { key: "k" });
  unsubscribe("http.client.request.start", stall);
  expect({ ok, degraded }).toEqual({ ok: true, degraded: undefined });
  client.destroy();
});

test("a server that stops: calls past their deadline take nothing when it continues", async () => {
  await lateTakesNothing(
    fixture.server,
    dynamodb(fixture.server.client, { table: await fixture.server.createTable("stopped") }),
  );
});

test("a table that does not exist: the error names it, and how to create it", async () => {
  const { cause } = await limitsOn("absent").limit("login");
  expect(String(cause)).toContain('there is no table "absent", or it is not active');
  expect(String(cause)).toContain("create it with the partition key `id`, a string");
});

test.each(["pk", "pk sk", "id sk"])("a table with the key %s: the error names the key that it needs", async (key) => {
  const [hash = "", range] = key.split(" ");
  const names = range === undefined ? [hash] : [hash, range];
  const TableName = `other-${names.join("-")}`;
  await fixture.server.client.createTable({
    TableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: names.map((AttributeName) => ({ AttributeName, AttributeType: "S" })),
    KeySchema: names.map((AttributeName, i) => ({ AttributeName, KeyType: i === 0 ? "HASH" : "RANGE" })),
  });
  const limits = limitsOn(TableName);
  const { decisions } = await limits.limitAll(pair);
  for (const { cause } of [await limits.limit("login"), ...decisions]) {
    expect(String(cause)).toContain(`the table "${TableName}" has another key`);
    expect(String(cause)).toContain("the partition key `id`, a string, and no sort key");
  }
});

test("a table with another key that a transaction reports in its reasons alone", async () => {
  const message =
    "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]";
  const reason = { Code: "ValidationError", Message: "The provided key element does not match the schema" };
  const reasons = [{ Code: "None" }, reason];
  const body = error("TransactionCanceledException", { message, CancellationReasons: reasons });
  const { client } = failing(1, "TransactGetItems", body);
  const table = await fixture.server.createTable("reasons");
  const { decisions } = await limitsOn(table, client).limitAll(pair);
  for (const { cause } of decisions)
    expect(String(cause)).toContain(`the table "reasons" has another key (${reason.Message}); create it with`);
  client.destroy();
});

test("limitAll on 100 limits and keys is one transaction", async () => {
  const table = await fixture.server.createTable("many");
  const limits = limitsOn(table);
  const requests = Array.from({ length: 100 }, (_, i) => ({ name: "login" as const, key: `${i}` }));
  expect((await limits.limitAll(requests)).ok).toBe(true);
  expect(await items(table)).toHaveLength(100);
});

test("a write that the client would send after the deadline is aborted", async () => {
  const table = await fixture.server.createTable("aborted");
  const client = fixture.server.connect();
  await limitsOn(table, client).check("login", { key: "k" });
  let resume: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    resume = resolve;
  });
  let sent: Promise<unknown> | undefined;
  const abort = vi.spyOn(AbortController.prototype, "abort");
  client.middlewareStack.add(
    (next, { commandName }) =>
      async (args) => {
        if (commandName !== "PutItemCommand") return next(args);
        abort.mockClear();
        const sending = held.then(() => next(args));
        sent = sending;
        return sending;
      },
    { step: "build" },
  );
  // Until the read of one is answered before its deadline.
  while (sent === undefined) {
    expect(await limitsOn(table, client, 500).limit("login", { key: "k" })).toMatchObject({ degraded: true });
  }
  // Its timer may come after the one that ends the call.
  await vi.waitUntil(() => abort.mock.calls.length > 0, { timeout: 60_000 });
  resume();
  await expect(sent).rejects.toThrow("abort");
  expect(await items(table)).toEqual([]);
  client.destroy();
});
