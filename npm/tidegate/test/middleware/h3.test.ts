import { defineMiddleware, H3, type H3Event, HTTPError, toResponse } from "h3";
import { expect, onTestFinished, test, vi } from "vitest";
import { appendRateLimitHeaders } from "../../src/http/index.ts";
import { defineLimits, MINUTE } from "../../src/index.ts";
import { decisionOf, rateLimit } from "../../src/middleware/fetch.ts";

test("on h3 2, fields that are set where next() throws are on an error's response, and leave those of a route's own limit", async () => {
  // The server of Hono, which other tests start in this thread, replaces the class that h3 compares with.
  vi.stubGlobal("Response", Object.getPrototypeOf(await fetch("data:,")).constructor);
  onTestFinished(() => void vi.unstubAllGlobals());
  const policy = { kind: "fixed window", rate: 1, period: MINUTE, start: 0 } as const;
  const limits = defineLimits({ all: { ...policy, rate: 9 }, send: policy });
  type Next = () => Promise<Response>;
  const all = rateLimit(limits, { name: "all" }, async (request, event: H3Event, next: Next) => {
    try {
      return await next();
    } catch (error) {
      const decision = decisionOf(request);
      if (decision !== undefined) appendRateLimitHeaders(event.res.errHeaders, decision);
      throw error;
    }
  });
  const send = rateLimit(limits, { name: "send" }, (_request, _event: H3Event) => new Response("sent"));
  const app = new H3({ silent: true });
  app.use(defineMiddleware((event, next) => all(event.req, event, async () => toResponse(await next(), event))));
  app.get("/send", (event) => send(event.req, event));
  app.get("/broken", () => {
    throw new HTTPError({ status: 418 });
  });
  const names = async (path: string) => {
    const request = Object.assign(new Request(`http://a${path}`), { ip: "192.0.2.1" });
    const { status, headers } = await app.fetch(request);
    return [status, headers.get("RateLimit")?.match(/"\w+"/g)];
  };
  expect(await names("/broken")).toEqual([418, ['"all"']]);
  expect(await names("/send")).toEqual([200, ['"send"', '"all"']]);
  expect(await names("/send")).toEqual([429, ['"send"', '"all"']]);
});
