import { createServer } from "node:http";
import express5 from "express";
import express4 from "express4";
import { rateLimit, type ExpressOptions } from "../../src/middleware/express.ts";
import { handle, headerOf, listen } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

for (const [version, express] of [
  ["5", express5],
  ["4", express4 as unknown as typeof express5],
] as const) {
  middlewareSuite(`Express ${version}`, async (limiter, options) => {
    const app = express();
    for (const { custom, ...rest } of options) {
      const denied: ExpressOptions<express5.Request, string>["denied"] = (_, response) => {
        response.statusCode = custom?.status ?? 0;
        response.end(custom?.text);
      };
      const given = seen(rest, headerOf) as ExpressOptions<express5.Request, string>;
      app.use(rateLimit(limiter, custom === undefined ? given : { ...given, denied }));
    }
    app.get("/", handle);
    app.use(((_error, _request, response, _next) => void response.status(500).end()) as express5.ErrorRequestHandler);
    return listen(createServer(app));
  });
}
