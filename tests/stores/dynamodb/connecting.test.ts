/** A first call on a client that has yet to connect: the time that takes does not count as the call's. */
import { beforeAll } from "vitest";
import { dynamodb } from "tidegate/dynamodb";
import { connectingSuite } from "../connecting.ts";
import { running } from "../running.ts";
import { DynamoDbServer } from "./server.ts";

const fixture = running(() => DynamoDbServer.start());
beforeAll(async () => void (await fixture.server.createTable("cold")));

connectingSuite(
  () => Number(new URL(fixture.server.endpoint).port),
  (port) => {
    const client = fixture.server.connect({ endpoint: `http://127.0.0.1:${port}` });
    return { store: dynamodb(client, { table: "cold" }), close: () => client.destroy() };
  },
);
