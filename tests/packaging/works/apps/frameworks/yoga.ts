import { createServer } from "node:http";
import { createServerAdapter } from "@whatwg-node/server";
import { createSchema, createYoga } from "graphql-yoga";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { portOf, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const resolvers = { Query: { hello: () => "hello" } };
const yoga = createYoga({ schema: createSchema({ typeDefs: "type Query { hello: String }", resolvers }) });
const limited = rateLimit(limits, { name: "send" }, (request, beside: object) => yoga.fetch(request, beside));

const server = createServer(createServerAdapter(limited));
server.listen(0, () => report([portOf(server), "/graphql?query={hello}"]));
