import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { remove, temporaryFolder } from "../../../../tests/support/folders.ts";
import { clientsOf } from "../../../tidegate-serve/src/clients.ts";
import { clients } from "../../src/cli/clients.ts";
import { folderOf, masked, openStore } from "../../src/cli/store.ts";
import { tidegate } from "./terminal.ts";

test.each([
  ["redis://u:s3cret@h:6379/0", "redis://u:***@h:6379/0"],
  ["redis://:s3cret@h", "redis://:***@h"],
  ["postgres://u:s3cret/@h@h/db", "postgres://u:***@h/db"],
  ["postgres://h/db?user=u&password=s3cret&sslmode=require", "postgres://h/db?user=u&password=***&sslmode=require"],
  ["postgres://h/db?sslpassword=s3cret#x", "postgres://h/db?sslpassword=***#x"],
  ["postgres://u:s3cret@h/db?Password=s3cret", "postgres://u:***@h/db?Password=***"],
  ["redis://h?password=s3cret@:/&db=1", "redis://h?password=***&db=1"],
  // Mistakes, which an error shows.
  ["postgres:u:s3cret@h/db", "postgres:***@h/db"],
  ["u:s3cret@h", "u:***@h"],
  ["host=h password=s3cret dbname=db", "host=h password=*** dbname=db"],
  ["host=h password='s3cret s3cret' dbname=db", "host=h password=*** dbname=db"],
  // Without a password.
  ["postgres://u@h:5432/db?sslmode=require", "postgres://u@h:5432/db?sslmode=require"],
  ["postgres://h/db?passfile=/etc/pass&user=a@b", "postgres://h/db?passfile=/etc/pass&user=a@b"],
])("%s is printed as %s", (url, shown) => expect(masked(url)).toBe(shown));

test("a folder is a path after file:, and a URL after file://, where a space is %20", () => {
  expect([folderOf("file:./a%20b"), folderOf("file:/a b")]).toEqual(["./a%20b", "/a b"]);
  expect(folderOf("file:///a%20b")).toEqual(new URL("file:///a%20b"));
});

test.each([
  ["migrate", "--store", "postgres://u@127.0.0.1:1/db?password=s3cret"],
  ["migrate", "--store", "mysql://h/db?password=s3cret"],
  ["get", "api", "k", "--rate", "1", "--period", "1s", "--store", "redis://127.0.0.1:1?password=s3cret"],
  ["get", "api", "k", "--rate", "1", "--period", "1s", "--store", "redis://127.0.0.1/x?password=s3cret"],
])("no error shows a password: %s %s %s", async (...argv) => {
  const { code, out, err } = await tidegate(argv);
  expect(code).toBeGreaterThan(0);
  expect(out + err).not.toContain("s3cret");
});

test.each(["redis", "rediss"])(
  "a password of %s that is not percent-encoded is a mistake in the command line",
  async (scheme) => {
    const url = `${scheme}://u:50%off@127.0.0.1:1`;
    const { code, err } = await tidegate(["get", "api", "k", "--rate", "1", "--period", "1s", "--store", url]);
    expect([code, err]).toEqual([
      2,
      `tidegate: --store has a % that is not part of an escape: write it as %25; got ${scheme}://u:***@127.0.0.1:1`,
    ]);
    await expect(
      openStore(
        url,
        clientsOf(() => {}),
        {},
      ),
    ).rejects.toThrow("write it as %25");
  },
);

test("on PostgreSQL a timeout may be a fraction of a ms, which that of a statement may not", async () => {
  const connection = { client: { query: async () => [] }, close: async () => {} };
  const settings = { timeout: 1234.5 };
  const opened = await openStore("postgres://h/db", { ...clients, postgres: async () => connection }, settings);
  expect(opened.shown).toBe("postgres://h/db");
});

test("an error at the end of a connection replaces no earlier one, and no result", async () => {
  const close = () => Promise.reject(new Error("the connection was lost"));
  const opened = (client: object) =>
    openStore("postgres://h/db", { ...clients, postgres: async () => ({ client: client as never, close }) }, {});
  await expect(opened({})).rejects.toThrow("`client` must be a PostgreSQL client");
  await (await opened({ query: async () => [] })).close();
});

test.each(["get", "top"])("%s waits ten seconds for an answer of PostgreSQL", async (command) => {
  vi.useFakeTimers({ toFake: ["performance", "setTimeout", "clearTimeout"] });
  let sent = (): void => {};
  const waits = new Promise<void>((resolve) => (sent = resolve));
  const query = async (text: string): Promise<unknown> => {
    if (text === "SELECT 1") return [];
    sent();
    return new Promise(() => {});
  };
  vi.spyOn(clients, "postgres").mockResolvedValue({ client: { query }, close: async () => {} });
  const ended = vi.fn();
  const run = tidegate([command, "api", "--rate", "1", "--period", "1m", "--store", "postgres://h/db", "--json"]);
  void run.then(ended);
  await waits;
  await vi.advanceTimersByTimeAsync(9000);
  expect(ended).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1000);
  expect(await run).toMatchObject({ code: 1, err: expect.stringContaining("no answer within 10000 ms") });
});

test("a client of a server that is down leaves no timer, which would keep the process running", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  await expect(clients.redis("redis://127.0.0.1:1")).rejects.toThrow("connect ECONNREFUSED");
  await (await clientsOf(() => {}).redis("redis://127.0.0.1:1")).close();
  // Those of connections that end now.
  await vi.advanceTimersByTimeAsync(1);
  expect(vi.getTimerCount()).toBe(0);
});

/** Makes a folder with this package in it the current one. */
function inProjectWith(name: string, program: string): void {
  const folder = temporaryFolder("project");
  onTestFinished(() => remove(folder));
  mkdirSync(join(folder, "node_modules", name), { recursive: true });
  writeFileSync(join(folder, "node_modules", name, "index.js"), program);
  vi.spyOn(process, "cwd").mockReturnValue(folder);
}

test("ioredis 5.0 and older, which is the class alone, is a client", async () => {
  inProjectWith("ioredis", "module.exports = class { on() {} async connect() {} disconnect() {} };");
  await (await clients.redis("redis://localhost")).close();
});

test("node-redis 3, which connects by itself, is refused and closed", async () => {
  inProjectWith(
    "redis",
    "exports.ended = []; exports.createClient = () => ({ end: (flush) => exports.ended.push(flush) });",
  );
  await expect(clients.redis("redis://localhost")).rejects.toThrow("redis is older than version 4 in ");
  expect(createRequire(join(process.cwd(), "package.json"))("redis").ended).toEqual([true]);
});

test.each(["disconnect", "destroy"])(
  "a client of node-redis that has ended is not closed again, where %s throws",
  async (name) => {
    const client = (connect: string) => `exports.createClient = () => ({
    isOpen: true, on() {}, async connect() { this.isOpen = false; ${connect} },
    ${name}() { if (!this.isOpen) throw new Error("The client is closed"); } });`;
    inProjectWith("redis", client("throw new Error('connection refused')"));
    await expect(clients.redis("redis://localhost")).rejects.toThrow("failed: connection refused");
    inProjectWith("redis", client(""));
    await (await clients.redis("redis://localhost")).close();
  },
);

afterEach(() => void vi.useRealTimers());
