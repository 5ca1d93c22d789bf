// Takes single tokens of one key, four callers at a time, and prints how many it was granted:
// node taker.mjs <endpoint> <table> <calls> <limit | limitAll>
import { DynamoDB } from "@aws-sdk/client-dynamodb";
import { defineLimits } from "tidegate";
import { dynamodb } from "tidegate/dynamodb";

const [endpoint, table, calls, operation] = process.argv.slice(2);
const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const client = new DynamoDB({ endpoint, region: "us-east-1", credentials });
const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 300 };
const limits = defineLimits(
  { stock: bucket, also: { ...bucket, capacity: 200 } },
  { store: dynamodb(client, { table }), timeout: 60_000, log: false },
);
const both = [
  { name: "stock", key: "hot" },
  { name: "also", key: "hot" },
];
let granted = 0;
const caller = async () => {
  for (let i = 0; i < Number(calls) / 4; i++) {
    const decision =
      operation === "limitAll" ? await limits.limitAll(both) : await limits.limit("stock", { key: "hot" });
    if (decision.degraded === true) throw decision.cause;
    if (decision.ok) granted++;
  }
};
await Promise.all([1, 2, 3, 4].map(caller));
console.log(granted);
client.destroy();
