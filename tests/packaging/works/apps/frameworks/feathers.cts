// As Feathers' generator makes an app: CommonJS.
import express, { json, rest } from "@feathersjs/express";
import { feathers } from "@feathersjs/feathers";
import * as koa from "@feathersjs/koa";
import { defineLimits, MINUTE } from "tidegate";
import * as forExpress from "tidegate/express";
import * as forKoa from "tidegate/koa";

const limits = () => defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const hello = { find: async () => ["hello"] };

const onExpress = express(feathers());
onExpress.use(json());
onExpress.use(forExpress.rateLimit(limits(), { name: "send" }));
onExpress.configure(rest());
onExpress.use("hello", hello);

const onKoa = koa.koa(feathers());
onKoa.use(koa.bodyParser());
onKoa.use(forKoa.rateLimit(limits(), { name: "send" }));
onKoa.configure(koa.rest());
onKoa.use("hello", hello);

async function main(): Promise<void> {
  const { portOf, report } = await import("./client.js");
  const servers = [await onExpress.listen(0), await onKoa.listen(0)];
  await report(...servers.map((server) => [portOf(server), "/hello"] as const));
}
void main();
