import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Octokit } from "@octokit/core";
import { throttling } from "@octokit/plugin-throttling";
import axios from "axios";
import axiosRetry from "axios-retry";
import got from "got";
import ky from "ky";
import { Agent, RetryAgent, request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defineLimits } from "../../src/index.ts";
import type { Decision } from "../../src/limit/decision.ts";
import { type NodeOptions, rateLimit } from "../../src/middleware/node.ts";
import { open } from "./handler.ts";
import type { Serving } from "./suite.ts";

/** Set while the clock stands. */
let held: number | undefined;
const now = () => held ?? Date.now();
/** One token, back after 1.7 s: a request without it is denied, with Retry-After: 2 s, or up to 3 with the spread. */
const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1700, capacity: 1 } }, { now });
const decisions = new Map<string, Decision[]>();
const clientOf = (request: IncomingMessage): string => request.url?.split("/")[1] ?? "";
/** A client's requests that come at one instant, however slow the machine is. */
const atOnce = (client: string): number => (client === "impatient" ? 3 : 1);

let server: Serving;
beforeAll(async () => {
  const options: NodeOptions<"api"> = {
    name: "api",
    key: clientOf,
    headers: { fields: ["draft-11", "draft-6", "x-ratelimit"] },
    onDecision: (decision, request) => {
      const known = decisions.get(clientOf(request)) ?? [];
      decisions.set(clientOf(request), [...known, decision]);
    },
  };
  const hello = (_: IncomingMessage, response: ServerResponse): void => {
    response.setHeader("Content-Type", "application/json");
    response.end('{"hello":true}');
  };
  const limited = rateLimit(limits, options, hello);
  const began = new Map<string, number>();
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    const client = clientOf(request);
    const first = began.get(client) ?? Date.now();
    if ((decisions.get(client)?.length ?? 0) < atOnce(client)) held = first;
    if (!began.has(client)) limits.limit("api", { key: client }); // what denies the client's first request
    began.set(client, first);
    limited(request, response);
    held = undefined;
  };
  server = await open(createServer(listener));
});
afterAll(() => server.close());

/** Clients in their default configuration, with retries of 429 switched on where they are off by default; each resolves with a status. */
const CLIENTS: Record<string, (url: string) => Promise<number>> = {
  got: async (url) => (await got(url)).statusCode,
  ky: async (url) => (await ky(url)).status,
  "axios-retry": async (url) => {
    const client = axios.create();
    axiosRetry(client, { retryCondition: (error) => error.response?.status === 429 });
    return (await client.get(url)).status;
  },
  "undici RetryAgent": async (url) => {
    const response = await request(url, { dispatcher: new RetryAgent(new Agent()) });
    await response.body.dump();
    return response.statusCode;
  },
  "@octokit/plugin-throttling": async (url) => {
    const { origin, pathname } = new URL(url);
    const hooks = { onRateLimit: () => true, onSecondaryRateLimit: () => true };
    const octokit = new (Octokit.plugin(throttling))({ baseUrl: origin, throttle: hooks, log: console });
    return (await octokit.request(`GET ${pathname}`)).status;
  },
};

describe("clients that obey Retry-After retry in time, and not before", () => {
  test.concurrent.each(Object.entries(CLIENTS))("%s", async (name, get) => {
    const id = encodeURIComponent(name.replaceAll("/", "-"));
    const url = `${server.url}/${id}/`;
    expect(await get(url)).toBe(200);
    const [denied, retried, ...more] = decisions.get(id) as [Decision, Decision];
    expect([denied.ok, retried.ok, more]).toEqual([false, true, []]);
    expect(retried.now).toBeGreaterThanOrEqual(denied.retryAt as number);
  });

  test.concurrent("a client that caps its waits retries early: it is denied again at no cost, and granted in the end", async () => {
    const url = `${server.url}/impatient/`;
    const dispatcher = new RetryAgent(new Agent(), { maxTimeout: 300, maxRetries: 20 });
    const response = await request(url, { dispatcher });
    await response.body.dump();
    expect(response.statusCode).toBe(200);
    const all = decisions.get("impatient") as Decision[];
    const denied = all.slice(0, -1);
    expect(denied.length).toBeGreaterThanOrEqual(atOnce("impatient"));
    // Denials moved nothing: the first one's time still held.
    expect(new Set(denied.map(({ retryAt }) => retryAt)).size).toBe(1);
    expect((all.at(-1) as Decision).now).toBeGreaterThanOrEqual(denied[0]?.retryAt as number);
  });
});
