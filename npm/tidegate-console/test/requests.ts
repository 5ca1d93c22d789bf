/** A console on a clock that the test sets, and requests to it. */
import { defineLimits } from "tidegate";
import { type ConsoleOptions, createConsole } from "../src/index.ts";
import type { OperationRequest } from "../src/wire.ts";

export const URL_ = "https://app.example/admin/limits";
export const SAME = { "sec-fetch-site": "same-origin" };
export const START = 1_700_000_000_000;

export function make(options: Partial<ConsoleOptions> = {}) {
  const clock = { now: START };
  const now = () => clock.now;
  const limiter = defineLimits({ api: { kind: "token bucket", rate: 1, period: "1s", capacity: 5 } }, { now });
  return { clock, ...createConsole(limiter, { authorize: () => true, now, ...options }) };
}
export const get = (headers: Record<string, string> = {}, query = "") => new Request(URL_ + query, { headers });
export const post = (body: unknown, headers: Record<string, string> = SAME, url = URL_) =>
  new Request(url, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), headers });
export const read: OperationRequest = { operation: "read", name: "api", key: "ann" };

/** The text of the stream's first chunk. */
export async function firstEvents({ body }: Response): Promise<string> {
  const reader = (body as ReadableStream<Uint8Array>).getReader();
  const { value } = await reader.read();
  await reader.cancel();
  return new TextDecoder().decode(value);
}

/** The data of the stream's first events. */
export async function firstData(response: Response): Promise<unknown[]> {
  return [...(await firstEvents(response)).matchAll(/^data: (.*)$/gm)].map(([, json = ""]) => JSON.parse(json));
}
