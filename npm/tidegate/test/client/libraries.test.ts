import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Octokit } from "@octokit/core";
import axios from "axios";
import ky from "ky";
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
