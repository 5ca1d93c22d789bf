import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Octokit } from "@octokit/core";
import axios from "axios";
import ky from "ky";
import { fetch as undiciFetch } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetch, type LimitedFetch } from "../../src/client/index.ts";

/** Denies the first request of each path. */
const seen = new Set<string | undefined>();
const server = createServer(({ url }, response) => {
  const isFirst = !seen.has(url);
  seen.add(url);
  response.writeHead(isFirst ? 429 : 200, {
    "Content-Type": "application/json",
    ...(isFirst && { "Retry-After": "1" }),
  });
  response.end("{}");
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

/** As the table of the guide for clients gives it to each; without retries of their own. */
const LIBRARIES: Record<string, (fetch: LimitedFetch, path: string) => Promise<number>> = {
  axios: async (fetch, path) => (await axios.create({ adapter: "fetch", env: { fetch } }).get(origin + path)).status,
  ky: async (fetch, path) => (await ky.create({ fetch, retry: 0 }).get(origin + path)).status,
  Octokit: async (fetch, path) =>
    (await new Octokit({ baseUrl: origin, request: { fetch } }).request(`GET ${path}`)).status,
};

describe("a library that is given a fetch gets the retried response", () => {
  test.concurrent.each(Object.entries(LIBRARIES))("%s", async (name, get) => {
    const retried: number[] = [];
    const fetch = createFetch({ key: () => name, jitter: 0, onRetry: ({ status }) => void retried.push(status) });
    expect(await get(fetch, `/${name}`)).toBe(200);
    expect(retried).toEqual([429]);
  });
});

test.each<[string, () => typeof globalThis.fetch]>([
  ["undici's", () => undiciFetch as unknown as typeof fetch],
  ["the host's, which it replaces,", () => fetch],
])("%s fetch sends, and the response is the retried one", async (name, own) => {
  const host = globalThis.fetch;
  globalThis.fetch = createFetch({ fetch: own(), jitter: 0 });
  try {
    expect((await fetch(`${origin}/${encodeURIComponent(name)}`)).status).toBe(200);
  } finally {
    globalThis.fetch = host;
  }
});
