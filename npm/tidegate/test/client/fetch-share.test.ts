/** Which concurrent GETs share one request. */
import { expect, test } from "vitest";
import { createFetch } from "../../src/client/index.ts";

const URL_ = "https://api.example.com/things";

/** How many requests are sent for concurrent GETs with these settings. */
async function sentFor(...settings: object[]): Promise<number> {
  let sent = 0;
  const fetch = createFetch({ share: true, fetch: async () => new Response(`answer ${++sent}`) });
  await Promise.all(settings.map((init) => fetch(URL_, init)));
  return sent;
}

test.each([
  { credentials: "omit" },
  { credentials: "include", cache: "no-store", redirect: "error", mode: "cors", referrer: "", integrity: "sha256-A" },
  { headers: { Accept: "a" }, method: "get" },
  { cache: undefined },
])("concurrent GETs with the same settings share a request: %j", async (init) => {
  expect(await sentFor(init, { ...init })).toBe(1);
});

test.each([
  { credentials: "omit" },
  { cache: "no-store" },
  { redirect: "error" },
  { mode: "cors" },
  { referrer: "" },
  { referrerPolicy: "no-referrer" },
  { integrity: "sha256-A" },
  { keepalive: true },
  { headers: { Accept: "a" } },
])("concurrent GETs with different settings share no request: %j", async (init) => {
  expect(await sentFor({}, init)).toBe(2);
});

test("concurrent GETs with settings that only a host defines share no request", async () => {
  expect(await sentFor({ dispatcher: {} }, { dispatcher: {} })).toBe(2);
  expect(await sentFor({ cf: { cacheTtl: 1 } }, { cf: { cacheTtl: 2 } })).toBe(2);
});

test.each([1, 3])(
  "%i callers that cancel their bodies end the request: no unread copy keeps it open",
  async (callers) => {
    let canceled = 0;
    const endless = (): ReadableStream<Uint8Array> =>
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(1)),
        cancel: () => void canceled++,
      });
    const fetch = createFetch({ share: true, fetch: async () => new Response(endless()) });
    const responses = await Promise.all(Array.from({ length: callers }, () => fetch(URL_)));
    for (const { body } of responses) {
      expect(canceled).toBe(0);
      void body?.cancel();
    }
    expect(canceled).toBe(1);
  },
);
