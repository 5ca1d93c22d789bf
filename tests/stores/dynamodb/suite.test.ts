/** The contract of a store on DynamoDB Local, two processes on one table, and the example. */
import { expect, test } from "vitest";
import { dynamodb } from "tidegate/dynamodb";
import { storeSuite } from "tidegate/testing";
import { testExample } from "../example.ts";
import { grantedTo, OPERATIONS } from "../takers.ts";
import { few } from "../vectors.ts";
import { running } from "../running.ts";
import { DynamoDbServer } from "./server.ts";

const fixture = running(() => DynamoDbServer.start());

let tables = 0;
storeSuite({
  test,
  vectors: few,
  create: async () => dynamodb(fixture.server.client, { table: await fixture.server.createTable(`suite${++tables}`) }),
  stored: () => fixture.server.stored(`suite${tables}`),
  corrupt: () => (id) =>
    fixture.server.client.putItem({
      TableName: `suite${tables}`,
      Item: { id: { S: id }, state: { B: new Uint8Array(3) } },
    }),
});

test.each(OPERATIONS)("two processes grant exactly the capacity (%s)", async (operation, capacity) => {
  const table = await fixture.server.createTable(`processes-${operation}`);
  const taker = ["dynamodb", "@aws-sdk/client-dynamodb", fixture.server.endpoint, table, "240", operation];
  expect(await grantedTo([taker, taker])).toBe(capacity);
});

testExample("dynamodb", () => ({
  AWS_ENDPOINT_URL: fixture.server.endpoint,
  AWS_REGION: "us-east-1",
  AWS_ACCESS_KEY_ID: "local",
  AWS_SECRET_ACCESS_KEY: "local",
}));
