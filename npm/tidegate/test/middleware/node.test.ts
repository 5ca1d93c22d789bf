import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type NodeOptions, rateLimit } from "../../src/middleware/node.ts";
import { handle, headerOf, listen } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

middlewareSuite("node:http", async (limiter, options) => {
  let listener = (request: IncomingMessage, response: ServerResponse): void => {
    try {
      handle(request, response);
    } catch {
      response.writeHead(500).end();
    }
  };
  for (const { custom, ...rest } of [...options].reverse()) {
    const given = seen(rest, headerOf) as NodeOptions<IncomingMessage, string>;
    if (custom !== undefined) {
      given.denied = (_, response) => {
        response.statusCode = custom.status;
        response.end(custom.text);
      };
    }
    listener = rateLimit(limiter, given, listener);
  }
  return listen(createServer(listener));
});
