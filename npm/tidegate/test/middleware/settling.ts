/** Parts of the contract of a middleware: the end of a response, clients that leave, and functions and requests that fail. */
import { request as httpRequest } from "node:http";
import { connect, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { eventually } from "./eventually.ts";
import type { SuiteRequest, Start, SuiteOptions } from "./suite.ts";

const LAST = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/** What a server returns for this text on one connection. */
const sent = (url: string, text: string): Promise<string> =>
  new Promise((done) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1", () => socket.write(text));
    let answered = "";
    socket
      .on("data", (chunk) => (answered += chunk))
      .on("close", () => done(answered))
      .on("error", () => done(answered));
  });

/** Gives back what a request took whose client went away; `ends` has for each whether it did. */
function refundOfAborted() {
  const ends: boolean[] = [];
  const settle: SuiteOptions["settle"] = ({ aborted }) => {
    ends.push(aborted);
    return aborted ? 0 : undefined;
  };
  return { ends, settle };
}

export function settling(start: Start): void {
  test("settle reports a client that left before the decision", async () => {
    const ends: boolean[] = [];
    let decide = (_key: string) => {};
    let call = () => {};
    const called = new Promise<void>((done) => (call = done));
    const key = () =>
      new Promise<string>((done) => {
        decide = done;
        call();
      });
    const settle: SuiteOptions["settle"] = ({ aborted }) => void ends.push(aborted);
    const { server } = await start({ name: "api", key, settle });
    const closed = new Promise<void>((done) =>
      server.server.once("connection", (socket: Socket) => socket.once("close", () => done())),
    );
    const { port } = new URL(server.url);
    const client = connect(Number(port), "127.0.0.1", () =>
      client.write("GET /?hang HTTP/1.1\r\nHost: a\r\nX-Slow: 1\r\n\r\n"),
    );
    await called;
    client.destroy();
    await closed;
    decide("k");
    await eventually(() => expect(ends).toEqual([true]));
  });

  test("after the response, refunds failures and charges measured use, but settles no denial", async () => {
    const settle: SuiteOptions["settle"] = ({ status }) => (status >= 500 ? 0 : status === 202 ? 4 : undefined);
    const { get, left } = await start({ name: "api", settle, count: 2 });
    await get("/?status=500");
    await eventually(async () => expect(await left()).toBe(5));
    await get("/?status=202");
    await eventually(async () => expect(await left()).toBe(1));
    expect((await get("/?status=500")).status).toBe(429);
    await get("/?status=500");
    expect(await left()).toBe(1);
  });

  test("a handler that throws is refunded too", async () => {
    const statuses: number[] = [];
    const settle: SuiteOptions["settle"] = ({ status }) => {
      statuses.push(status);
      return status >= 500 ? 0 : undefined;
    };
    const { get, left } = await start({ name: "api", settle });
    expect((await get("/?throw")).status).toBe(500);
    await eventually(() => expect(statuses).toEqual([500]));
    await eventually(async () => expect(await left()).toBe(5));
  });

  // A text is what the header of another service has.
  test.each([Number.NaN, "3", null])(
    "a settlement that fails is reported, and affects no request: %s",
    async (worth) => {
      const errors: unknown[] = [];
      const { get, left } = await start({
        name: "api",
        settle: () => worth as never,
        onError: (error) => void errors.push(error),
      });
      expect((await get()).status).toBe(200);
      await eventually(() => expect(String(errors[0])).toMatch(/`settle` must be tokens from 0 .* got (NaN|"3"|null)/));
      expect(await left()).toBe(4);
    },
  );

  test("a function of the user's that throws, or rejects, fails that request alone", async () => {
    vi.spyOn(console, "error").mockImplementation(() => {});
    const key = (request: SuiteRequest) => {
      if (request.header("x-user") === "throws") throw new Error("no session");
      return request.header("x-user") === "rejects" ? Promise.reject(new Error("no session")) : "a user";
    };
    const { get } = await start({ name: "api", key });
    expect((await get("/", { "x-user": "throws" })).status).toBe(500);
    expect((await get("/", { "x-user": "rejects" })).status).toBe(500);
    expect((await get()).status).toBe(200);
  });

  test("repeated and huge headers, and a pipelined flood, are limited like anything else", async () => {
    const { server, get, left } = await start({
      name: "api",
      count: { header: "x-count", max: 5 },
      client: { trust: 1 },
    });
    const { port } = new URL(server.url);
    const status = await new Promise<number | string>((done) => {
      const sent = httpRequest(
        { port, headers: { "x-count": ["5", "1"], "x-forwarded-for": ["192.0.2.1", "192.0.2.2"] } },
        (response) => {
          response.resume();
          done(response.statusCode ?? 0);
        },
      );
      sent.on("error", (error) => done(String(error))).end();
    });
    expect(status).toBe(200);
    expect(await left("api", "192.0.2.2")).toBe(4);
    // A megabyte is more than Node.js reads of headers: it never gets here.
    const huge = await sent(
      server.url,
      `GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${"1,".repeat(2 ** 19)}\r\n\r\n`,
    );
    expect(huge).toMatch(/^(HTTP\/1.1 431 .*[\s\S]*)?$/);
    const one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    const flood = await sent(server.url, one.repeat(99) + LAST);
    expect(flood.match(/HTTP\/1.1 200/g)?.length).toBe(5);
    expect(flood.match(/HTTP\/1.1 429/g)?.length).toBe(95);
    expect((await get()).status).toBe(429);
    expect(Object.keys(Object.prototype)).toEqual([]);
  });

  test("requests of several clients on one connection of a proxy are limited by the header", async () => {
    const { server } = await start({ name: "api", count: 5, client: { header: "x-real-ip" } });
    const from = (address: string) => `GET / HTTP/1.1\r\nHost: a\r\nX-Real-IP: ${address}\r\n\r\n`;
    const answered = await sent(server.url, from("192.0.2.7") + from("192.0.2.8") + from("192.0.2.7") + LAST);
    expect(answered.match(/(?<=HTTP\/1.1 )\d+/g)?.slice(0, 3)).toEqual(["200", "200", "429"]);
  });

  test("a client that goes away is refunded", async () => {
    const { ends, settle } = refundOfAborted();
    const { server, left } = await start({ name: "api", settle });
    const controller = new AbortController();
    const hanging = fetch(`${server.url}/?hang`, { signal: controller.signal }).catch(() => "gone");
    await eventually(async () => expect(await left()).toBe(4));
    controller.abort();
    expect(await hanging).toBe("gone");
    await eventually(() => expect(ends).toEqual([true]));
    await eventually(async () => expect(await left()).toBe(5));
  });

  test("requests behind another of their connection are settled too when the client goes away", async () => {
    const { ends, settle } = refundOfAborted();
    const { server, left } = await start({ name: "api", settle });
    const client = connect(Number(new URL(server.url).port), "127.0.0.1", () =>
      client.write("GET /?hang HTTP/1.1\r\nHost: a\r\n\r\n".repeat(3)),
    );
    await eventually(async () => expect(await left()).toBe(2));
    client.destroy();
    await eventually(() => expect(ends).toEqual([true, true, true]));
    await eventually(async () => expect(await left()).toBe(5));
  });
}
