import { createServer } from "node:http";
import { Router } from "@aws-lambda-powertools/event-handler/http";
import type { APIGatewayProxyEventV2, APIGatewayProxyStructuredResultV2, Context } from "aws-lambda";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/fetch";
import { portOf, report } from "./client.js";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
type Next = () => Promise<Response>;
const limited = rateLimit(limits, { name: "send" }, (_request, _event: object, next: Next) => next());
const sourceIp = (event: unknown) => (event as APIGatewayProxyEventV2).requestContext.http.sourceIp;

const app = new Router();
app.use(({ reqCtx, next }) =>
  limited(reqCtx.req, { clientAddress: sourceIp(reqCtx.event) }, async () => {
    await next();
    return reqCtx.res;
  }),
);
app.get("/limited", () => ({ hello: "ada" }));
const handler = (event: APIGatewayProxyEventV2, context: Context) => app.resolve(event, context);

/** What API Gateway passes to a function, of a request. */
const eventOf = (path: string, sourceIp: string): APIGatewayProxyEventV2 => ({
  version: "2.0",
  routeKey: "$default",
  rawPath: path,
  rawQueryString: "",
  headers: { host: "api.example" },
  isBase64Encoded: false,
  requestContext: {
    accountId: "0",
    apiId: "api",
    domainName: "api.example",
    domainPrefix: "api",
    http: { method: "GET", path, protocol: "HTTP/1.1", sourceIp, userAgent: "" },
    requestId: "1",
    routeKey: "$default",
    stage: "$default",
    time: "",
    timeEpoch: 0,
  },
});
const server = createServer(async (request, response) => {
  const event = eventOf(request.url ?? "/", request.socket.remoteAddress ?? "");
  const {
    statusCode = 200,
    headers = {},
    body,
  } = (await handler(event, {} as Context)) as APIGatewayProxyStructuredResultV2;
  response.writeHead(statusCode, headers as Record<string, string>).end(body);
});
server.listen(0, () => report([portOf(server), "/limited"]));
