import "reflect-metadata";
import type { IncomingMessage } from "node:http";
import { Controller, Get, HttpException, type INestApplication, Module, Req, Res } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { type NestOptions, rateLimitGuard } from "../../src/middleware/nest.ts";
import { orders, headerOf } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { seen } from "./seen.ts";

/** What requests and responses of both platforms have. */
type AnyRequest = IncomingMessage & { rateLimit?: unknown };
interface AnyResponse {
  status(status: number): { send(text: string): void };
}

class Root {
  index(request: AnyRequest, response: AnyResponse): void {
    const { status, throws, hangs } = orders(request.url ?? "");
    if (throws) throw new Error("the handler fails");
    if (!hangs) response.status(status).send(JSON.stringify(request.rateLimit ?? null));
  }
}
// The decorators as functions: what compiles these tests does not know the syntax.
Controller()(Root);
Get()(Root.prototype, "index", Object.getOwnPropertyDescriptor(Root.prototype, "index") as PropertyDescriptor);
Req()(Root.prototype, "index", 0);
Res()(Root.prototype, "index", 1);
class App {}
Module({ controllers: [Root] })(App);

const PLATFORMS: Record<string, () => Promise<INestApplication>> = {
  Express: () => NestFactory.create(App, { logger: false }),
  Fastify: () => NestFactory.create<NestFastifyApplication>(App, new FastifyAdapter(), { logger: false }),
};

for (const [platform, create] of Object.entries(PLATFORMS)) {
  middlewareSuite(`NestJS on ${platform}`, async (limiter, options) => {
    const app = await create();
    for (const { custom, twice, ...rest } of options) {
      const given = seen(rest, headerOf) as NestOptions<string>;
      if (custom !== undefined) {
        given.denied = async () => {
          if (typeof custom !== "object") throw new Error("denied fails");
          return new HttpException(custom.text, custom.status);
        };
      }
      const guard = rateLimitGuard(limiter, given);
      // biome-ignore lint/correctness/useHookAtTopLevel: Nest's method, not a hook of React's
      app.useGlobalGuards(...(twice === true ? [guard, guard] : [guard]));
    }
    await app.listen(0, "127.0.0.1");
    const close = (): Promise<void> => {
      app.getHttpServer().closeAllConnections();
      return app.close();
    };
    return { url: (await app.getUrl()).replace("[::1]", "127.0.0.1"), server: app.getHttpServer(), close };
  });
}
