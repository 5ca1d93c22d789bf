import { createServer, IncomingMessage } from "node:http";
import { Socket } from "node:net";
import Koa from "koa";
import { expect, test, vi } from "vitest";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { type KoaOptions, rateLimit } from "../../src/middleware/koa.ts";
import { headerOf, listen, orders } from "./handler.ts";
import { optionsFor } from "./options-for.ts";
import { middlewareSuite } from "./suite.ts";

middlewareSuite("Koa 3", async (limiter, options) => {
  const app = new Koa();
  app.silent = true;
  for (const option of options) {
    const given = optionsFor(
      option,
      (context: Koa.Context, name) => headerOf(context.req, name),
      ({ status, text }, context: Koa.Context) => Object.assign(context, { status, body: text }),
    );
    const limit = rateLimit(limiter, given as KoaOptions<string>);
    app.use(limit);
    if (option.twice === true) app.use(limit);
  }
  app.use(async (context) => {
    const { status, hangs } = orders(context.url);
    if (hangs) await new Promise(() => {});
    context.status = status;
    context.body = JSON.stringify(context.state.rateLimit ?? null);
  });
  return listen(createServer(app.callback()));
});

test("with app.proxy the client is ctx.ip; without maxIpsCount clients choose it, and a warning names the setting", async () => {
  const warned = vi.spyOn(console, "warn").mockImplementation(() => {});
  const statuses = async (settings: ConstructorParameters<typeof Koa>[0], header = "x-forwarded-for") => {
    const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
    const app = new Koa({ proxy: true, ...settings });
    app.use(rateLimit(limits, { name: "api" }));
    app.use((context) => {
      context.body = "hello";
    });
    const server = await listen(createServer(app.callback()));
    const from = async (address: string) => (await fetch(server.url, { headers: { [header]: address } })).status;
    return [await from("192.0.2.1"), await from("192.0.2.2"), await from("6.6.6.6, 192.0.2.1")];
  };
  expect(await statuses({ maxIpsCount: 1 })).toEqual([200, 200, 429]);
  expect(await statuses({ proxyIpHeader: "X-Real-IP" }, "x-real-ip")).toEqual([200, 200, 200]);
  expect(warned).not.toHaveBeenCalled();
  expect(await statuses({})).toEqual([200, 200, 200]);
  expect(warned.mock.calls.map(String)).toEqual([expect.stringContaining("so a client that writes X-Forwarded-For")]);
  expect(String(warned.mock.calls)).toContain("set new Koa({ proxy: true, maxIpsCount: 1 }), or client: { trust: 1 }");
});

test("a request that is denied after its response began runs no further middleware, and ends", async () => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const reported: unknown[] = [];
  const app = new Koa();
  app.use(async ({ res }, next) => {
    res.write("early, ");
    await next();
  });
  app.use(rateLimit(limits, { name: "api", key: "k", onError: (error) => void reported.push(error) }));
  app.use((context) => {
    context.body = "late";
  });
  const server = await listen(createServer(app.callback()));
  const texts = [];
  for (let i = 0; i < 2; i++) texts.push(await (await fetch(server.url)).text());
  expect(texts).toEqual(["early, late", "early, "]);
  expect(String(reported)).toContain("limit api denied a request whose response had already begun");
});

test.each<[string, object]>([
  ["Express", Object.assign(new IncomingMessage(new Socket()), { res: {} })],
  ["Hono", { req: { raw: new Request("http://a/") } }],
])("in %s the error names the import that another framework needs", async (_, given) => {
  const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
  const next = vi.fn();
  const call = rateLimit(limits, { name: "api" })(given as Koa.Context, next);
  await expect(call).rejects.toThrow("`context` must be Koa's: import the rateLimit of your framework, such as");
  expect(next).not.toHaveBeenCalled();
});
