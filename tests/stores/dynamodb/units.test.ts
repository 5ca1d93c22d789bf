/** The capacity units that operations cost, as the guide has them. */
import { expect, test } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { dynamodb } from "tidegate/dynamodb";
import { running } from "../running.ts";
import { DynamoDbServer } from "./server.ts";

const fixture = running(() => DynamoDbServer.start());

test("operations cost the units of the guide: of a first call half a read more, of a large item's write two", async () => {
  const client = fixture.server.connect();
  let units: (number | undefined)[] = [];
  client.middlewareStack.add(
    (next) => async (args) => {
      const reply = await next({ ...args, input: { ...args.input, ReturnConsumedCapacity: "TOTAL" } as never });
      const { ConsumedCapacity: consumed } = reply.output as { ConsumedCapacity?: { CapacityUnits?: number } };
      units.push(...[consumed].flat().map((each) => each?.CapacityUnits));
      return reply;
    },
    { step: "initialize" },
  );
  const limits = defineLimits(
    { login: { kind: "token bucket", rate: 2, period: HOUR }, all: { kind: "token bucket", rate: 2, period: HOUR } },
    { store: dynamodb(client, { table: await fixture.server.createTable("units") }), timeout: 60_000 },
  );
  const costOf = async (call: () => PromiseLike<unknown>) => {
    units = [];
    await call();
    return units;
  };
  const two = [{ name: "login", key: "k" }, { name: "all" }] as const;
  const key = "k";
  expect(await costOf(() => limits.check("login", { key }))).toEqual([0.5, 1]);
  expect(await costOf(() => limits.limit("login", { key }))).toEqual([1, 1]);
  expect(await costOf(() => limits.limitAll(two))).toEqual([4, 4]);
  expect(await costOf(() => limits.limit("login", { key }))).toEqual([1]);
  expect(await costOf(() => limits.getValue("login", { key }))).toEqual([1]);
  expect(await costOf(() => limits.limit("login", { key: "k".repeat(940) }))).toEqual([1, 1]);
  expect(await costOf(() => limits.limit("login", { key: "k".repeat(990) }))).toEqual([1, 2]);
  client.destroy();
});
