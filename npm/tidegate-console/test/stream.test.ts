/** The stream of counts and denials that an open page reads. */
import { defineLimits } from "tidegate";
import { describe, expect, test, vi } from "vitest";
import { createConsole } from "../src/index.ts";
import { firstEvents, get, make, SAME, START } from "./requests.ts";

describe("the stream", () => {
  test("has the counts, then each denial once, with an id to resume at", async () => {
    vi.useFakeTimers();
    const { fetch, limits, clock } = make();
    limits.limit("api", { key: "ann\u2028\n\ndata: x", count: 9 });
    const response = await fetch(get(SAME, "?stream"));
    expect(response.headers.get("content-type")).toBe("text/event-stream");
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const next = async () => new TextDecoder().decode((await reader.read()).value);
    const first = await next();
    const fields = first.split("\n").map((line) => line.split(": ")[0]);
    expect(fields).toEqual(["retry", "", "event", "data", "", "id", "event", "data", "", ""]);
    const [figures, denials] = [...first.matchAll(/^data: ([^\n]*)$/gm)].map(([, data]) => JSON.parse(data as string));
    expect(figures).toMatchObject({ now: START, since: START, defined: ["api"], switches: [] });
    expect(denials).toMatchObject({ skipped: 0, denials: [{ id: 1, key: "ann\u2028\n\ndata: x" }] });
    limits.limit("api", { key: "bob", count: 9 });
    vi.advanceTimersByTime(250);
    const second = await next();
    expect(second).toMatch(/^id: \w+-2\nevent: denials\ndata: .*"bob".*\n\n$/);
    expect(second).not.toContain("ann");
    clock.now += 1000;
    vi.advanceTimersByTime(750);
    const [, data = "{}"] = /^event: figures\ndata: ([^\n]*)$/m.exec(await next()) ?? [];
    // The last second again, which was not over, and the new one.
    expect(JSON.parse(data)).toMatchObject({ now: START + 1000, limits: [{ denied: [2, 0] }] });
    await reader.cancel();
    const id = /id: (\S+)/.exec(second)?.[1] as string;
    limits.limit("api", { key: "cid", count: 9 });
    const resumed = await firstEvents(await fetch(get({ ...SAME, "last-event-id": id }, "?stream")));
    expect(resumed.match(/"id":\d+/g)).toEqual(['"id":3']);
    const newest = { ...SAME, "last-event-id": id.replace(/2$/, "3") };
    expect(await firstEvents(await fetch(get(newest, "?stream")))).not.toContain('"id":');
    for (const other of ["another-2", "", "x", `${id}9`]) {
      const all = await firstEvents(await fetch(get({ ...SAME, "last-event-id": other }, "?stream")));
      expect(all.match(/"id":\d+/g)).toEqual(['"id":1', '"id":2', '"id":3']);
    }
  });

  test("is refused to other sites, and not where the request states none, as an EventSource of an old browser", async () => {
    const { fetch } = make();
    const old = await fetch(get({}, "?stream"));
    expect([old.status, await firstEvents(old)]).toEqual([200, expect.stringContaining("event: figures")]);
    for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }]) {
      expect((await fetch(get(headers, "?stream"))).status).toBe(403);
    }
  });

  test("queues nothing for a browser that does not read", async () => {
    vi.useFakeTimers();
    const { fetch, limits } = make();
    const { body } = await fetch(get(SAME, "?stream"));
    for (let i = 0; i < 40; i++) {
      for (let n = 0; n < 100; n++) limits.limit("api", { key: "ann", count: 9 });
      vi.advanceTimersByTime(250);
    }
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    vi.advanceTimersByTime(250);
    const text = new TextDecoder().decode((await reader.read()).value);
    expect(text.match(/"id":\d+/g)?.length).toBe(50);
    expect(text).toContain('"skipped":3950');
    await reader.cancel();
  });

  test("ends after 30 s, so that the browser is authorized again", async () => {
    vi.useFakeTimers();
    const { body } = await make().fetch(get(SAME, "?stream"));
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    let isDone = false;
    const reading = (async () => {
      while (!(await reader.read()).done);
      isDone = true;
    })();
    await vi.advanceTimersByTimeAsync(29_000);
    expect(isDone).toBe(false);
    await vi.advanceTimersByTimeAsync(1500);
    expect(isDone).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
    await reading;
  });

  test("ends after 30 s for a browser that does not read, too", async () => {
    vi.useFakeTimers();
    const { fetch } = make();
    const { body } = await fetch(get(SAME, "?stream"));
    await vi.advanceTimersByTimeAsync(30_000);
    expect(vi.getTimerCount()).toBe(0);
    const reader = (body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    expect((await reader.read()).done).toBe(true);
  });

  test("is refused after the console is closed, with the connection on which a server would wait for the page", async () => {
    const { fetch, close } = make();
    close();
    const { status, headers } = await fetch(get(SAME, "?stream"));
    expect([status, headers.get("connection")]).toEqual([503, "close"]);
  });

  test("ends where the console is closed, and leaves no timer", async () => {
    vi.useFakeTimers();
    const { fetch, close } = make();
    const open = async () => ((await fetch(get(SAME, "?stream"))).body as ReadableStream<Uint8Array>).getReader();
    const readers = [await open(), await open()];
    for (const reader of readers) await reader.read();
    close();
    expect(await Promise.all(readers.map((reader) => Promise.race([reader.read(), "open"])))).toEqual([
      { done: true, value: undefined },
      { done: true, value: undefined },
    ]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is open at most 20 times; one that is closed makes room", async () => {
    vi.useFakeTimers();
    const { fetch } = make();
    const open = () => fetch(get(SAME, "?stream"));
    const responses = await Promise.all(Array.from({ length: 20 }, open));
    const refused = await open();
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
    await responses[0]?.body?.cancel();
    expect((await open()).status).toBe(200);
    vi.clearAllTimers();
  });

  test("makes room after 30 s where the host ends a request without its timers, as Workers do", async () => {
    // The streams' timers are real ones, which do not run in this test.
    vi.useFakeTimers({ toFake: ["performance"] });
    vi.advanceTimersByTime(30_000);
    const { fetch, close } = make();
    const open = async () => (await fetch(get(SAME, "?stream"))).status;
    for (let i = 0; i < 20; i++) await open();
    vi.advanceTimersByTime(29_000);
    expect(await open()).toBe(503);
    vi.advanceTimersByTime(1000);
    expect(await open()).toBe(200);
    close();
  });

  test("needs neither a time nor a random number before the first request, which Workers do not have", async () => {
    vi.useFakeTimers({ now: 0 });
    const random = vi.spyOn(crypto, "randomUUID");
    const { fetch } = createConsole(defineLimits({}), { authorize: () => true });
    expect(random).not.toHaveBeenCalled();
    vi.setSystemTime(START);
    const text = await firstEvents(await fetch(get(SAME, "?stream")));
    expect(text).toContain(`"since":${START},`);
  });
});
