/** The contract of a store over MongoDB's protocol, two processes on one collection, and the example. */
import { expect, test } from "vitest";
import { mongodb } from "tidegate/mongodb";
import { storeSuite } from "tidegate/testing";
import { testExample } from "../example.ts";
import { grantedTo } from "../takers.ts";
import { few } from "../vectors.ts";
import { running } from "../running.ts";
import { MongoServer } from "./server.ts";

const fixture = running(() => MongoServer.start());

let collections = 0;
storeSuite({
  test,
  vectors: few,
  create: () => mongodb(fixture.server.client, { database: "limits", collection: `suite${++collections}` }),
  stored: () => fixture.server.stored(`suite${collections}`),
  corrupt: () => (id) => {
    const rows = fixture.server.client.db("limits").collection<{ _id: string }>(`suite${collections}`);
    return rows.updateOne({ _id: id }, { $set: { state: "garbage" } });
  },
});

test("two processes grant exactly the capacity", async () => {
  const taker = ["mongodb", "mongodb", fixture.server.url, "processes", "240", "limit"];
  expect(await grantedTo([taker, taker])).toBe(300);
});

testExample("mongodb", () => ({ MONGODB: fixture.server.url }));
