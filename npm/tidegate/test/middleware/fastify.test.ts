import fastify, { type FastifyReply, type FastifyRequest } from "fastify";
import { type FastifyOptions, rateLimit } from "../../src/middleware/fastify.ts";
import { asked, headerOf } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

middlewareSuite("Fastify 5", async (limiter, options) => {
  const app = fastify({ forceCloseConnections: true });
  for (const { custom, ...rest } of options) {
    const given = seen(rest, (request: FastifyRequest, name) => headerOf(request.raw, name)) as FastifyOptions<
      FastifyRequest,
      FastifyReply,
      string
    >;
    if (custom !== undefined) {
      given.denied = (_, reply) => {
        reply.code(custom.status);
        return custom.text;
      };
    }
    app.addHook("onRequest", rateLimit(limiter, given));
  }
  app.get("/", (request, reply) => {
    const { status, throws, hangs } = asked(request.url);
    if (throws) throw new Error("the handler fails");
    if (!hangs) void reply.code(status).send(JSON.stringify((request as { rateLimit?: unknown }).rateLimit ?? null));
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, close: () => app.close() };
});
