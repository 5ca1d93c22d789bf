/** A first call on a client that has yet to connect: the time that takes does not count as the call's. */
import { afterAll, beforeAll } from "vitest";
import { dynamodb } from "tidegate/dynamodb";
import { connectingSuite } from "../connecting.ts";
import { DynamoDbServer } from "./server.ts";

let server: DynamoDbServer;
beforeAll(async () => {
  server = await DynamoDbServer.start();
  await server.createTable("cold");
});
afterAll(() => server?.stop());

connectingSuite(
  () => Number(new URL(server.endpoint).port),
  (port) => {
    const client = server.connect({ endpoint: `http://127.0.0.1:${port}` });
    return { store: dynamodb(client, { table: "cold" }), close: () => client.destroy() };
  },
);
