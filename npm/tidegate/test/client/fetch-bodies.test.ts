/** The bodies that a retry leaves unread, and those that are sent twice. */
import { Readable } from "node:stream";
import { expect, test, vi } from "vitest";
import { createFetch } from "../../src/client/index.ts";
import { SECOND } from "../../src/index.ts";
import { fakeClock } from "../../src/testing/index.ts";
import { there } from "../realm.ts";

const START = 1_772_366_400_000;
const URL_ = "https://api.example.com/things";

/** A response like node-fetch's, whose body is a stream of Node.js. */
const like = (body: unknown): Response => ({ status: 429, headers: new Headers(), body }) as Response;

test.each<[string, () => Response]>([
  [
    "has broken",
    () => new Response(new ReadableStream({ start: (own) => own.error(new Error("reset")) }), { status: 429 }),
  ],
  ["breaks as it is cancelled", () => like(new ReadableStream({ cancel: () => Promise.reject(new Error("reset")) }))],
  [
    "throws as it is cancelled",
    () =>
      like({
        cancel: () => {
          throw new Error("reset");
        },
      }),
  ],
  ["is never cancelled to the end", () => like(new ReadableStream({ cancel: () => new Promise(() => undefined) }))],
  [
    "is being read by another",
    () => {
      const response = new Response("denied", { status: 429 });
      response.body?.getReader();
      return response;
    },
  ],
  ["is absent, as in React Native", () => like(undefined)],
])("a denial is retried whose body %s", async (_, denial) => {
  const clock = fakeClock(START);
  let sent = 0;
  const fetch = createFetch({ clock, fetch: async () => (++sent === 1 ? denial() : new Response("ok")) });
  const answered = fetch(URL_).then((response) => response.text());
  await clock.pass(60 * SECOND);
  expect([await answered, sent]).toEqual(["ok", 2]);
});

test("a stream of Node.js, as node-fetch's bodies are, is destroyed, which frees its connection", async () => {
  const clock = fakeClock(START);
  const body = Readable.from(["denied"]);
  let sent = 0;
  const fetch = createFetch({ clock, fetch: async () => (++sent === 1 ? like(body) : new Response("ok")) });
  const answered = fetch(URL_).then((response) => response.text());
  await clock.pass(60 * SECOND);
  expect([await answered, body.destroyed]).toEqual(["ok", true]);
});

test.each<[string, () => boolean]>([
  [
    "throws",
    () => {
      throw new TypeError("mistaken");
    },
  ],
  ["returns a promise", (async () => true) as never],
])("the body of a response on which `retry` %s is cancelled, as the caller does not get it", async (_, retry) => {
  const cancel = vi.fn();
  const fetch = createFetch({ retry, fetch: async () => like(new ReadableStream({ cancel })) });
  await expect(fetch(URL_)).rejects.toThrow(/mistaken|`retry` must be/);
  expect(cancel).toHaveBeenCalledOnce();
});

test.each<[string, unknown]>([
  ["an ArrayBuffer", there("new ArrayBuffer(3)")],
  ["bytes", there("new Uint8Array(3)")],
  ...["Blob", "FormData", "URLSearchParams"].map((kind): [string, object] => [kind, { [Symbol.toStringTag]: kind }]),
])("a body of another realm or of jsdom is sent twice where ours is: %s", async (_, body) => {
  const clock = fakeClock(START);
  let sent = 0;
  const fetch = createFetch({ clock, fetch: async () => (++sent === 1 ? like(null) : new Response("ok")) });
  const answered = fetch(URL_, { method: "PUT", body: body as Blob });
  await clock.pass(60 * SECOND);
  expect([(await answered).status, sent]).toEqual([200, 2]);
});

test("a body of a class without a name of its own, as FormData of React Native and happy-dom, is sent twice", async () => {
  class FormData {}
  vi.stubGlobal("FormData", FormData);
  const clock = fakeClock(START);
  let sent = 0;
  const fetch = createFetch({ clock, fetch: async () => (++sent === 1 ? like(null) : new Response("ok")) });
  const answered = fetch(URL_, { method: "PUT", body: new FormData() as never });
  vi.unstubAllGlobals();
  await clock.pass(60 * SECOND);
  expect([(await answered).status, sent]).toEqual([200, 2]);
});

test("a form of the package form-data, which is a stream named FormData, is sent once", async () => {
  const clock = fakeClock(START);
  const body = Object.assign(Readable.from(["a form"]), { [Symbol.toStringTag]: "FormData" });
  let sent = 0;
  const fetch = createFetch({ clock, fetch: async () => (++sent === 1 ? like(null) : new Response("ok")) });
  const answered = fetch(URL_, { method: "PUT", body: body as never });
  await clock.pass(60 * SECOND);
  expect([(await answered).status, sent]).toEqual([429, 1]);
});
