/** What is stored, and calls where documents are corrupt, transactions conflict or are refused, and the server stops. */
import { type ClientSession, MongoClient, MongoNetworkTimeoutError, MongoServerError } from "mongodb";
import { afterAll, describe, expect, test, vi } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { mongodb } from "tidegate/mongodb";
import { freePort } from "../../support/ports.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { lateTakesNothing } from "../outages.ts";
import { running } from "../running.ts";
import { MongoServer } from "./server.ts";

const fixture = running(() => MongoServer.start());

const configs = {
  login: { kind: "token bucket", rate: 2, period: HOUR },
  parts: { kind: "token bucket", rate: 4, period: HOUR, shards: 4 },
} as const;
const pair = [{ name: "login", key: "k" }, { name: "parts" }] as const;
const limitsOn = (collection: string, client: MongoClient = fixture.server.client, timeout = 60_000) =>
  defineLimits(configs, { store: mongodb(client, { database: "limits", collection }), timeout, log: false });

interface Row {
  _id: string;
  state?: unknown;
  dropAt?: unknown;
}
const rowsOf = (collection: string) => fixture.server.client.db("limits").collection<Row>(collection);
/** The documents of the store. (This server stores a read concern as one more, with an `_id` of its own.) */
const read = async (collection: string) =>
  (await rowsOf(collection).find().sort({ _id: 1 }).toArray()).filter(({ _id }) => typeof _id === "string");

test("a grant is one document, with shards too; a denial and a check write nothing; there is a TTL index", async () => {
  const limits = limitsOn("rows");
  const began = Date.now();
  await limits.limit("login", { key: "k", count: 1.5 });
  await limits.limit("parts", { count: 3 });
  const before = await read("rows");
  expect(before).toMatchObject([
    { _id: "login:k", state: expect.stringMatching(/^0\.5 \d{13}$/) },
    { _id: "parts", state: expect.stringMatching(/^1 \d{13}$/) },
  ]);
  // 1.5 of 2 tokens come back in 45 minutes; a minute more for other clocks.
  const dropAt = Number(before[0]?.dropAt) - began;
  expect(dropAt).toBeGreaterThanOrEqual(0.75 * HOUR + 60_000);
  expect(dropAt).toBeLessThan(HOUR);
  expect((await limits.limit("login", { key: "k" })).ok).toBe(false);
  await limits.check("login", { key: "k", count: 0.25 });
  expect((await limits.limitAll(pair)).ok).toBe(false);
  expect(await read("rows")).toEqual(before);
  expect(await rowsOf("rows").indexes()).toContainEqual(
    expect.objectContaining({ key: { dropAt: 1 }, expireAfterSeconds: 0 }),
  );
  await limits.reset("login", { key: "k" });
  // A document without a state at the most, which the TTL index deletes.
  expect((await read("rows")).filter(({ state }) => state !== null)).toMatchObject([{ _id: "parts" }]);
  expect((await limits.limit("login", { key: "k", count: 2 })).ok).toBe(true);
});

test("a client that returns raw documents to other queries (`raw`) decides the same", async () => {
  const client = fixture.server.connect({ raw: true });
  const limits = limitsOn("raw", client);
  for (const left of [1, 0]) {
    expect(await limits.limit("login", { key: "k" })).toMatchObject({ ok: true, remaining: left });
  }
  expect((await limits.limitAll(pair)).ok).toBe(false);
  await client.close();
});

test.each([
  ["text", { state: "garbage" }],
  ["a number", { state: 5 }],
  ["no state", {}],
])("a corrupt document (%s) fails the calls on its key alone, until reset", async (kind, fields) => {
  const collection = `corrupt_${kind.replaceAll(" ", "_")}`;
  const limits = limitsOn(collection);
  await rowsOf(collection).insertOne({ _id: "login:bad", ...fields });
  const { cause } = await limits.limit("login", { key: "bad" });
  expect(cause).toMatchObject({
    scope: "key",
    message: expect.stringContaining('mongodb: read of "login:bad" failed'),
  });
  expect(await rowsOf(collection).findOne({ _id: "login:bad" })).toEqual({ _id: "login:bad", ...fields });
  await limits.reset("login", { key: "bad" });
  expect(await limits.limit("login", { key: "bad" })).toMatchObject({ ok: true });
});

const clients: MongoClient[] = [];
afterAll(() => Promise.all(clients.map((client) => client.close())));
/** A client whose first commits fail with an error as the server sends it. */
function failing(times: number, error: MongoServerError): { client: MongoClient; left: () => number } {
  let left = times;
  const client = fixture.server.connect();
  clients.push(client);
  const startSession = client.startSession.bind(client);
  client.startSession = (options): ClientSession => {
    const session = startSession(options);
    const commit = session.commitTransaction.bind(session);
    session.commitTransaction = async (options) => {
      if (left-- <= 0) return commit(options);
      throw error;
    };
    return session;
  };
  return { client, left: () => left };
}

describe("transactions", () => {
  test("limitAll writes all documents or none: those of a transaction that is not committed are rolled back", async () => {
    const { client } = failing(1e6, new MongoServerError({ message: "no", code: 1 }));
    expect(await limitsOn("several", client).limitAll(pair)).toMatchObject({ degraded: true });
    expect(await read("several")).toEqual([]);
    expect(await limitsOn("several").limitAll(pair)).toMatchObject({ ok: true });
    expect(await read("several")).toHaveLength(2);
  });

  test.each([
    [
      "a write conflict",
      { message: "WriteConflict error: this operation conflicted with another operation", code: 112 },
    ],
    // As where the primary steps down.
    [
      "any other that was rolled back",
      { message: "no primary", code: 189, errorLabels: ["TransientTransactionError"] },
    ],
  ])("%s is repeated, and the call takes its tokens once", async (_, { code, ...error }) => {
    const { client, left } = failing(3, new MongoServerError({ code, ...error }));
    const limits = limitsOn(`conflicts_${code}`, client);
    expect(await limits.limitAll(pair)).toMatchObject({ ok: true });
    expect(left()).toBeLessThan(0);
    expect((await limits.getValue("login", { key: "k" })).value).toBeCloseTo(1, 1);
  });

  test("limitAll compares a document that it only reads by a write", async () => {
    const limits = limitsOn("touched");
    await limits.limitAll(pair);
    const requests = [pair[0], { ...pair[1], count: 0 }];
    expect(await limits.limitAll(requests)).toMatchObject({ ok: true });
    expect((await read("touched")).map(({ _id, ...row }) => [_id, "touched" in row])).toEqual([
      ["login:k", false],
      ["parts", true],
    ]);
  });

  test("on a standalone server limitAll rejects with the remedy, and calls on one limit succeed", async () => {
    const message = "Transaction numbers are only allowed on a replica set member or mongos";
    const { client } = failing(1e6, new MongoServerError({ message, code: 20 }));
    const limits = limitsOn("standalone", client);
    await expect(limits.limitAll(pair)).rejects.toMatchObject({
      code: "TIDEGATE_INPUT",
      message: expect.stringContaining("is no replica set"),
    });
    expect(await limits.limit("login", { key: "k" })).toMatchObject({ ok: true });
    expect(await limits.limitAll([pair[0]])).toMatchObject({ ok: true });
  });
});

test("each command carries the time that is left of the call's deadline", async () => {
  const client = fixture.server.connect({ monitorCommands: true });
  const sent: [name: string, ms: unknown][] = [];
  client.on("commandStarted", ({ commandName, command }) => sent.push([commandName, command["maxTimeMS"]]));
  await limitsOn("deadlines", client, 60_000).limit("login", { key: "k" });
  const commands = sent.filter(([name]) => name === "find" || name === "insert");
  expect(commands.map(([name]) => name)).toEqual(["find", "insert"]);
  for (const [, ms] of commands) {
    expect(ms).toBeGreaterThan(0);
    expect(ms).toBeLessThanOrEqual(60_000);
  }
  await client.close();
});

test("whatever the client's settings, reads are of the primary, writes wait for the majority, transactions read a snapshot", async () => {
  const client = fixture.server.connect({ monitorCommands: true, writeConcern: { w: 0 }, readPreference: "secondary" });
  const sent: [name: string, concerns: unknown][] = [];
  client.on("commandStarted", ({ commandName, command }) => {
    const { writeConcern, readConcern, maxTimeMS, $readPreference } = command;
    sent.push([commandName, { writeConcern, readConcern, maxTimeMS, mode: $readPreference?.mode }]);
  });
  const limits = limitsOn("concerns", client);
  await limits.limit("login", { key: "k" });
  await limits.limitAll(pair);
  const of = (name: string) => sent.filter(([each]) => each === name).map(([, concerns]) => concerns);
  const snapshot = { readConcern: { level: "snapshot" } };
  const majority = { writeConcern: { w: "majority" } };
  // Without a mode it is the primary's.
  expect(of("find")).toMatchObject([{ mode: undefined }, { mode: undefined, ...snapshot }]);
  expect(of("insert")).toMatchObject([majority, snapshot]);
  // Without a majority it would have no reply, and no call would be sent.
  expect(of("createIndexes")).toMatchObject([{ writeConcern: { w: 1 } }]);
  expect(of("update")).toMatchObject([{}]);
  const commit = { ...majority, maxTimeMS: expect.any(Number) };
  expect(of("commitTransaction")).toMatchObject([commit, commit]);
  await client.close();
});

test("limitAll writes all documents by two commands at most, however many they are", async () => {
  const client = fixture.server.connect({ monitorCommands: true });
  let sent: string[] = [];
  client.on("commandStarted", ({ commandName }) => sent.push(commandName));
  const limits = limitsOn("together", client);
  const requests = (...keys: string[]) => keys.map((key) => ({ name: "login", key }) as const);
  expect((await limits.limitAll(requests("a", "c", "e"))).ok).toBe(true);
  sent = [];
  expect((await limits.limitAll(requests("a", "b", "c", "d", "e"))).ok).toBe(true);
  expect(sent).toEqual(["find", "commitTransaction", "insert", "update", "commitTransaction"]);
  const values = requests("a", "b", "c", "d", "e").map(
    async ({ key }) => (await limits.getValue("login", { key })).value,
  );
  const [a, b, c, d, e] = await Promise.all(values);
  expect([a, b, c, d, e].map((value) => Math.round(value as number))).toEqual([0, 1, 0, 1, 0]);
  await client.close();
});

/** A client that waits for `before` ahead of each update of the state of `login:k`. */
function updatesAfter(before: () => Promise<unknown>): MongoClient {
  const client = fixture.server.connect();
  clients.push(client);
  const { db } = client;
  client.db = (name) => {
    const database = db.call(client, name);
    const { collection } = database;
    database.collection = ((...args: Parameters<typeof collection>) => {
      const rows = collection.apply(database, args);
      const { bulkWrite } = rows;
      rows.bulkWrite = async (operations, ...rest) => {
        if (JSON.stringify(operations).includes('{"updateOne":{"filter":{"_id":"login:k"')) await before();
        return bulkWrite.call(rows, operations, ...rest);
      };
      return rows;
    }) as typeof collection;
    return database;
  };
  return client;
}

test("a document that an open transaction has written fails the calls on it alone", async () => {
  let held = 0;
  // The server has no reply until `maxTimeMS` is over.
  const client = updatesAfter(() => {
    held++;
    return new Promise(() => {});
  });
  const limits = limitsOn("held", client, 1000);
  await limitsOn("held").limit("login", { key: "k" });
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  for (let i = 0; i < 6; i++) {
    const call = limits.limit("login", { key: "k" });
    while (held === i) await new Promise((resolve) => setImmediate(resolve));
    await vi.advanceTimersByTimeAsync(1000);
    const message = expect.stringMatching(
      /a transaction may have locked its document, or too few members of the replica set work$/,
    );
    expect((await call).cause).toMatchObject({ scope: "key", message });
  }
  vi.useRealTimers();
  expect(await limitsOn("held", client).limit("login", { key: "beside" })).toMatchObject({ ok: true });
});

test.each([
  ["the client, after its `socketTimeoutMS`", new MongoNetworkTimeoutError("timed out", { beforeHandshake: false })],
  // If this process did not run meanwhile, its deadline has moved.
  ["the server, before a deadline that has moved", new MongoServerError({ message: "exceeded time limit", code: 50 })],
])("a write on a locked document that %s ends fails the calls on it alone", async (_, error) => {
  const client = updatesAfter(() => Promise.reject(error));
  const limits = limitsOn("ended", client);
  await limits.limit("login", { key: "k" });
  for (let i = 0; i < 6; i++) {
    const { cause } = await limits.limit("login", { key: "k" });
    expect(cause).toMatchObject({ scope: "key", message: expect.stringContaining("may have locked its document") });
  }
  expect((await limits.check("login", { key: "beside" })).degraded).toBeUndefined();
});

test.each(["limit", "limitAll"] as const)(
  "%s: a document that another process wrote since it was read is read again",
  async (operation) => {
    const collection = `meanwhile_${operation}`;
    const others = limitsOn(collection);
    await others.limitAll(pair.map((request) => ({ ...request, count: 0.5 })));
    let times = 0;
    const client = updatesAfter(async () => {
      if (times++ === 0) await others.limit("login", { key: "k", count: 0.5 });
    });
    const limits = limitsOn(collection, client);
    const { ok } = await (operation === "limit" ? limits.limit("login", { key: "k" }) : limits.limitAll(pair));
    expect([ok, times]).toEqual([true, 2]);
    expect((await others.getValue("login", { key: "k" })).value).toBeCloseTo(0, 1);
  },
);

test("a client whose first connection fails connects again once the server is up", async () => {
  const port = await freePort();
  const client = new MongoClient(`mongodb://127.0.0.1:${port}/?directConnection=true`, {
    serverSelectionTimeoutMS: 100,
  });
  const limits = limitsOn("later", client);
  expect((await limits.limit("login", { key: "k" })).cause).toMatchObject({
    message: expect.stringContaining("ECONNREFUSED"),
  });
  const proxy = await LossyProxy.start(Number(new URL(fixture.server.url).port), port);
  await expect.poll(() => limits.check("login", { key: "k" }), { timeout: 60_000 }).toMatchObject({ ok: true });
  await client.close();
  proxy.stop();
});

test("a client that waits for a server, as by default for 30 s: a late call's error has why none can be reached", async () => {
  const port = await freePort();
  const client = new MongoClient(`mongodb://me:secret@127.0.0.1:${port}/`);
  const { cause } = await limitsOn("unreachable", client, 50).limit("login", { key: "k" });
  await client.close();
  expect(String(cause)).toContain(`no server answers: connect ECONNREFUSED 127.0.0.1:${port}`);
  expect(String(cause)).not.toContain("secret");
});

test("a call that finds no free connection in the pool within waitQueueTimeoutMS waits on, until its deadline", async () => {
  const client = fixture.server.connect({ maxPoolSize: 1, waitQueueTimeoutMS: 20 });
  const limits = limitsOn("full", client);
  await limits.check("login", { key: "k" });
  fixture.server.signal("SIGSTOP");
  const other = client.db("limits").collection("other").findOne();
  const given = new Promise((resolve) => client.once("connectionCheckOutFailed", resolve));
  const decisions = [1, 2, 3, 4, 5, 6].map((key) => limits.limit("login", { key: `${key}` }));
  await given;
  fixture.server.signal("SIGCONT");
  await other;
  for (const decision of decisions) expect(await decision).toMatchObject({ ok: true });
  await client.close();
});

test("a server that stops: calls past their deadline take nothing when it continues", async () => {
  await lateTakesNothing(fixture.server, mongodb(fixture.server.client, { database: "limits", collection: "stopped" }));
});
