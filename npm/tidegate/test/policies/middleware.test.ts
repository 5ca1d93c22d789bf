import { createAdaptorServer } from "@hono/node-server";
import express, { type Request as ExpressRequest } from "express";
import { type Context, Hono } from "hono";
import { createServer, request as httpRequest } from "node:http";
import type { Server } from "node:net";
import { beforeEach, describe, expect, test, vi } from "vitest";
import { rateLimit as forExpress } from "../../src/middleware/express.ts";
import { rateLimit as forFetch } from "../../src/middleware/fetch.ts";
import { rateLimit as forHono } from "../../src/middleware/hono.ts";
import { rateLimit as forNode } from "../../src/middleware/node.ts";
import { definePolicies, type PolicyDocument } from "../../src/policies/index.ts";
import type { Store } from "../../src/stores/contract.ts";
import { memory } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/clock.ts";
import { listen } from "../middleware/handler.ts";
import { later } from "../middleware/later.ts";
import type { Serving } from "../middleware/suite.ts";
import { PLANS } from "./documents.ts";

/** Stands for a verifier of tokens: returns the claims of valid tokens. */
const verified = (authorization: string | null | undefined): { plan: string } | undefined => {
  const plan = /^Bearer (enterprise|pro|free)$/.exec(authorization ?? "")?.[1];
  return plan === undefined ? undefined : { plan };
};

interface Started {
  readonly server: Serving;
  reload(document: object): void;
}
type Start = (document: PolicyDocument, store: Store, now: () => number) => Promise<Started>;

const HOSTS: Record<string, Start> = {
  Express: async (document, store, now) => {
    const claims = (request: ExpressRequest) => verified(request.headers.authorization);
    const policies = definePolicies(document, { store, now, claims });
    const app = express();
    app.use(forExpress(policies.limiter, { limits: policies, jitter: 0 }));
    app.get("/", (_, response) => void response.end("hello"));
    return { server: await listen(createServer(app)), reload: (other) => policies.reload(other) };
  },
  Hono: async (document, store, now) => {
    const claims = (context: Context) => verified(context.req.header("authorization"));
    const policies = definePolicies(document, { store, now, claims });
    const app = new Hono();
    app.use(forHono(policies.limiter, { limits: policies, jitter: 0 }) as never);
    app.get("/", (context) => context.text("hello"));
    const server = await listen(createAdaptorServer({ fetch: app.fetch }) as Server);
    return { server, reload: (other) => policies.reload(other) };
  },
  "fetch handlers": async (document, store, now) => {
    const claims = async (request: Request) => verified(request.headers.get("authorization"));
    const policies = definePolicies(document, { store, now, claims });
    const hello = (_request: Request, _host: unknown) => new Response("hello");
    const handler = forFetch(policies.limiter, { limits: policies, jitter: 0 }, hello);
    return {
      server: await listen(createAdaptorServer({ fetch: handler }) as Server),
      reload: (other) => policies.reload(other),
    };
  },
  "node:http": async (document, store, now) => {
    const claims = (request: { headers?: object }) =>
      verified((request.headers as Record<string, string>)["authorization"]);
    const policies = definePolicies(document, { store, now, claims });
    const listener = forNode(policies.limiter, { limits: policies, jitter: 0 }, (_, response) => response.end("hello"));
    return { server: await listen(createServer(listener)), reload: (other) => policies.reload(other) };
  },
};

describe.each(Object.entries(HOSTS))("policies on %s", (_, start) => {
  // A header that a host does not read is logged, once per server.
  beforeEach(() => void vi.spyOn(console, "warn").mockImplementation(() => {}));

  async function serve(document: PolicyDocument, store: Store = memory()) {
    const clock = fakeClock();
    const started = await start(document, store, clock.now);
    const get = (headers: Record<string, string>, path = "/") => fetch(started.server.url + path, { headers });
    const left = async (headers: Record<string, string>) => {
      const response = await get(headers);
      await response.text();
      return `${response.status} ${/"([^"]+)";r=(\d+)/
        .exec(response.headers.get("ratelimit") ?? "")
        ?.slice(1)
        .join(" ")}`;
    };
    return { clock, get, left, reload: started.reload, url: started.server.url };
  }
  const as = (plan: string, key = "k1") => ({ authorization: `Bearer ${plan}`, "x-api-key": key });

  test("plans with one bucket per API key, and a cost from a header", async () => {
    const { left, get } = await serve(PLANS);
    expect(await left(as("enterprise"))).toBe("200 enterprise 1999");
    expect(await left(as("pro"))).toBe("200 pro 199");
    expect(await left(as("pro", "k2"))).toBe("200 pro 199");
    expect(await left({ ...as("free"), "x-request-cost": "15" })).toBe("200 free 5");
    const denied = await get({ ...as("free"), "x-request-cost": "15" });
    expect([denied.status, denied.headers.get("retry-after")]).toEqual([429, "1"]);
    expect(await denied.json()).toMatchObject({ "violated-policies": ["free"] });
    // An unverified token has no plan and so no rule: without a fallback no limit applies.
    expect(await left({ authorization: "Bearer admin", "x-api-key": "k1" })).toBe("200 undefined");
  });

  test("works on an asynchronous store", async () => {
    const { left } = await serve(PLANS, later());
    expect(await left({ ...as("free"), "x-request-cost": "20" })).toBe("200 free 0");
    expect(await left(as("free"))).toBe("429 free 0");
    expect(await left(as("free", "k2"))).toBe("200 free 19");
  });

  test("invalid or repeated costs take the default or the bound, and never mint", async () => {
    const { left, url } = await serve(PLANS);
    const hostile = ["0", "0.001", "-1", "NaN", "1e308", "Infinity", "0x10", "", "1,1", "__proto__", "9".repeat(3000)];
    let value = 20;
    for (const cost of hostile)
      expect(await left({ ...as("free"), "x-request-cost": cost })).toBe(`200 free ${--value}`);
    const status = await new Promise<number | undefined>((done, fail) => {
      const headers = { ...as("free"), "x-request-cost": ["5", "-5"] };
      httpRequest(url, { headers }, (response) => done(response.resume().statusCode))
        .on("error", fail)
        .end();
    });
    expect(status).toBe(200);
    expect(await left(as("free"))).toBe(`200 free ${value - 2}`);
    expect(await left({ ...as("free", "k2"), "x-request-cost": "99999999" })).toBe("200 free 0");
  });

  test("an overlong key is hashed, a missing one has its own bucket, and the address is the client's", async () => {
    const fallback_limit = {
      limit_keys: ["ip:address"],
      algorithm: "fixed_window",
      algorithm_config: { rate: 3, period: 60_000 },
    } as const;
    const { left } = await serve({ ...PLANS, fallback_limit });
    const long = "k".repeat(7000);
    expect(await left(as("free", `${long}1`))).toBe("200 free 19");
    expect(await left(as("free", `${long}2`))).toBe("200 free 19");
    expect(await left(as("free", `${long}1`))).toBe("200 free 18");
    expect(await left({ authorization: "Bearer free" })).toBe("200 free 19");
    expect(await left(as("free", ""))).toBe("200 free 19");
    expect(await left({ "x-forwarded-for": "10.0.0.1" })).toBe("200 fallback_limit 2");
    expect(await left({ "x-forwarded-for": "10.0.0.2" })).toBe("200 fallback_limit 1");
  });

  test("a reload while serving keeps debts; an invalid document changes nothing", async () => {
    const { left, reload, clock } = await serve(PLANS);
    expect(await left({ ...as("free"), "x-request-cost": "20" })).toBe("200 free 0");
    const [enterprise, pro, free] = PLANS.rules;
    reload({ rules: [enterprise, pro, { ...free, algorithm_config: { rps: 10, burst: 500 } }] });
    expect(await left(as("free"))).toBe("429 free 0");
    clock.advance(1000);
    expect(await left(as("free"))).toBe("200 free 9");
    expect(() => reload({ rules: [{ ...free, algorithm_config: { rps: -1 } }] })).toThrow("`algorithm_config.rps`");
    expect(await left(as("free"))).toBe("200 free 8");
  });
});
