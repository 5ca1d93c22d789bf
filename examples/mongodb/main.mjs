// Logins in MongoDB, for all processes that use one collection (MONGODB is the connection string):
//   npm install tidegate mongodb
//   node examples/mongodb/main.mjs
import { MongoClient } from "mongodb";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { mongodb } from "tidegate/mongodb";

const url = process.env.MONGODB ?? "mongodb://localhost:27017";
const client = new MongoClient(url, { serverSelectionTimeoutMS: 2 * SECOND, waitQueueTimeoutMS: SECOND });
await client.connect();
const limits = defineLimits(
  { login: { kind: "token bucket", rate: 2, period: MINUTE } },
  { store: mongodb(client), timeout: 2 * SECOND },
);

for (const attempt of ["first", "second", "third"]) {
  const { ok, remaining } = await limits.limit("login", { key: "user 7" });
  console.log(attempt, ok ? `allowed, ${remaining} left` : "try again later");
}
await client.close();
