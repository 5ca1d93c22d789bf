/** The contract of a store on DynamoDB Local, two processes on one table, and the example. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dynamodb } from "tidegate/dynamodb";
import { storeSuite } from "tidegate/testing";
import { grantedTo, OPERATIONS } from "../takers.ts";
import { vectors } from "../vectors.ts";
import { DynamoDbServer } from "./server.ts";

const run = promisify(execFile);
let server: DynamoDbServer;
beforeAll(async () => {
  server = await DynamoDbServer.start();
});
afterAll(() => server?.stop());

let tables = 0;
storeSuite({
  test,
  vectors,
  create: async () => dynamodb(server.client, { table: await server.createTable(`suite${++tables}`) }),
  stored: () => server.stored(`suite${tables}`),
  corrupt: () => (id) =>
    server.client.putItem({ TableName: `suite${tables}`, Item: { id: { S: id }, state: { B: new Uint8Array(3) } } }),
});

test.each(OPERATIONS)("two processes grant exactly the capacity (%s)", async (operation, capacity) => {
  const table = await server.createTable(`processes-${operation}`);
  const taker = ["dynamodb", "@aws-sdk/client-dynamodb", server.endpoint, table, "240", operation];
  expect(await grantedTo([taker, taker])).toBe(capacity);
});

test("examples/dynamodb: two logins are allowed, the third is not", async () => {
  const program = fileURLToPath(new URL("../../../examples/dynamodb/main.mjs", import.meta.url));
  const aws = { AWS_ENDPOINT_URL: server.endpoint, AWS_REGION: "us-east-1" };
  const env = { ...process.env, ...aws, AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local" };
  const { stdout } = await run(process.execPath, [program], { env });
  expect(stdout).toBe("first allowed, 1 left\nsecond allowed, 0 left\nthird try again later\n");
});
