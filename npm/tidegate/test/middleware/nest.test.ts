import "reflect-metadata";
import type { IncomingMessage } from "node:http";
import {
  Controller,
  type ExecutionContext,
  Get,
  HttpException,
  type INestApplication,
  Module,
  Req,
  Res,
  UseGuards,
} from "@nestjs/common";
import { APP_GUARD, NestFactory } from "@nestjs/core";
import { FastifyAdapter, type NestFastifyApplication } from "@nestjs/platform-fastify";
import { expect, test } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import {
  type NestOptions,
  RateLimit,
  RateLimitGuard,
  rateLimitGuard,
  RateLimitModule,
  SkipRateLimit,
} from "../../src/middleware/nest.ts";
import { orders, headerOf } from "./handler.ts";
import { middlewareSuite } from "./suite.ts";
import { optionsFor } from "./options-for.ts";

/** What requests and responses of both platforms have. */
type AnyRequest = IncomingMessage & { rateLimit?: unknown };
interface AnyResponse {
  status(status: number): { send(text: string): void };
}

class Root {
  index(request: AnyRequest, response: AnyResponse): void {
    const { status, hangs } = orders(request.url ?? "");
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
    for (const option of options) {
      const given = optionsFor(option, headerOf, ({ status, text }) => new HttpException(text, status));
      const guard = rateLimitGuard(limiter, given as NestOptions<string>);
      // biome-ignore lint/correctness/useHookAtTopLevel: Nest's method, not a hook of React's
      app.useGlobalGuards(...(option.twice === true ? [guard, guard] : [guard]));
    }
    await app.listen(0, "127.0.0.1");
    const close = (): Promise<void> => {
      app.getHttpServer().closeAllConnections();
      return app.close();
    };
    return { url: (await app.getUrl()).replace("[::1]", "127.0.0.1"), server: app.getHttpServer(), close };
  });
}

/** A controller of which one route has the module's limit, one its own, one none; and the statuses of two requests of each. */
async function twice(options: {
  global?: boolean;
  login?: NestOptions<string>;
  controller?: NestOptions<string>;
  guarded?: boolean;
  rate?: number;
}) {
  class Routes {
    index(): string {
      return "hello";
    }
    login(): string {
      return "welcome";
    }
    health(): string {
      return "well";
    }
  }
  const { login = { name: "login" }, controller, guarded = false, rate = 1, ...module } = options;
  const decorators = { index: [], login: [RateLimit(login)], health: [SkipRateLimit()] };
  for (const [name, more] of Object.entries(decorators)) {
    const descriptor = Object.getOwnPropertyDescriptor(Routes.prototype, name) as PropertyDescriptor;
    for (const decorator of [Get(name), ...more]) decorator(Routes.prototype, name, descriptor);
  }
  Controller()(Routes);
  if (controller !== undefined) RateLimit(controller)(Routes);
  if (guarded) UseGuards(RateLimitGuard)(Routes);
  const one = { kind: "token bucket", rate, period: MINUTE } as const;
  const limiter = defineLimits({ api: one, login: one });
  class App {}
  Module({ imports: [RateLimitModule.forRoot({ limiter, name: "api", ...module })], controllers: [Routes] })(App);
  const app = await NestFactory.create(App, { logger: false, abortOnError: false });
  await app.listen(0, "127.0.0.1");
  const url = (await app.getUrl()).replace("[::1]", "127.0.0.1");
  const statuses = async (path: string) => [(await fetch(url + path)).status, (await fetch(url + path)).status];
  const found = [await statuses("/index"), await statuses("/login"), await statuses("/health")];
  await app.close();
  return found;
}

test("RateLimitModule limits every route, a decorated one by its own limit, and not the one with SkipRateLimit", async () => {
  expect(await twice({})).toEqual([
    [200, 429],
    [200, 429],
    [200, 200],
  ]);
});

test("a request takes once where the module is global and RateLimitGuard is on the controller, too", async () => {
  // A limit that grants two requests would deny the second.
  expect(await twice({ guarded: true, rate: 2 })).toEqual([
    [200, 200],
    [200, 200],
    [200, 200],
  ]);
});

test("RateLimitModule with global: false limits no route by itself", async () => {
  const free = [200, 200];
  expect(await twice({ global: false })).toEqual([free, free, free]);
});

test("a decorated controller has its limit on every route that is not decorated itself", async () => {
  // The limit of the route to log in, too.
  expect(await twice({ controller: { name: "login" } })).toEqual([
    [200, 429],
    [429, 429],
    [200, 200],
  ]);
});

test("a wrong option of a decorated route or controller stops the application's start", async () => {
  await expect(twice({ login: { name: "lgoin" } })).rejects.toThrow('did you mean "login"?');
  await expect(twice({ controller: { name: "lgoin" } })).rejects.toThrow('did you mean "login"?');
});

/** The statuses of two requests of Ada and one of Bob, on a limit of one for each user that a guard of the application finds. */
async function ofUsers(order: "authenticates first" | "authenticates last" | "on a controller of another module") {
  class Authenticates {
    canActivate(context: ExecutionContext): boolean {
      const request = context.switchToHttp().getRequest();
      request.user = request.headers["x-user"];
      return true;
    }
  }
  class Route {
    index(): string {
      return "hello";
    }
  }
  Get()(Route.prototype, "index", Object.getOwnPropertyDescriptor(Route.prototype, "index") as PropertyDescriptor);
  Controller()(Route);
  const isGlobal = order !== "on a controller of another module";
  if (!isGlobal) UseGuards(Authenticates, RateLimitGuard)(Route);
  class Users {}
  Module({
    controllers: [Route],
    providers: isGlobal ? [{ provide: APP_GUARD, useClass: Authenticates }] : [],
  })(Users);
  const limiter = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const key = ({ user = "none" }: { user?: string }) => user;
  const limited = RateLimitModule.forRoot({ limiter, name: "api", key, global: isGlobal });
  class App {}
  Module({ imports: order === "authenticates last" ? [limited, Users] : [Users, limited] })(App);
  const app = await NestFactory.create(App, { logger: false, abortOnError: false });
  await app.listen(0, "127.0.0.1");
  const url = (await app.getUrl()).replace("[::1]", "127.0.0.1");
  const statuses = [];
  for (const user of ["ada", "ada", "bob"]) statuses.push((await fetch(url, { headers: { "x-user": user } })).status);
  await app.close();
  return statuses;
}

test("a key function reads what an earlier guard set: of a module imported first, or before RateLimitGuard on a controller", async () => {
  expect(await ofUsers("authenticates first")).toEqual([200, 429, 200]);
  expect(await ofUsers("on a controller of another module")).toEqual([200, 429, 200]);
  expect(await ofUsers("authenticates last")).toEqual([200, 429, 429]); // as Nest runs the guards
});
