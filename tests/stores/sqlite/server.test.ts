/** The contract of a store on a libSQL server, as Turso runs it, through its clients over HTTP and WebSocket; and its outages. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { defineLimits, HOUR } from "tidegate";
import { sqlite } from "tidegate/sqlite";
import { inRuntime, replay } from "../../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { LossyProxy } from "../../support/proxy.ts";
import { stallUntilRecovered } from "../half-open.ts";
import { lateTakesNothing, outage } from "../outages.ts";
import { grantedTo, OPERATIONS } from "../takers.ts";
import { clients } from "./clients.mjs";
import { LibSqlServer } from "./server.ts";

const run = promisify(execFile);
const suite = fileURLToPath(new URL("suite.mjs", import.meta.url));
const folder = temporaryFolder("libsql-server");
afterAll(() => remove(folder));
// The numbers are text in all clients: the histories run on local files.
const histories = join(folder, "none.json");
writeFileSync(histories, "{}");

/**
 * The last: whether it is the way that the guide advises. Only those leave a connection that does not answer, as each request
 * has a connection or a timeout of its own.
 */
const CLIENTS = [
  ["@libsql/client", "http", true],
  ["@libsql/client", "ws", false],
  ["@tursodatabase/serverless", "http", true],
  ["@tursodatabase/serverless/compat", "http", false],
] as const;

await inRuntime("sqld", async (program) => {
  const start = async ([name, protocol, advised]: (typeof CLIENTS)[number], i: number) => {
    const server = await LibSqlServer.start(program, join(folder, `${i}.db`));
    afterAll(() => server.stop());
    const url = `${protocol}://127.0.0.1:${server.port}`;
    const results = advised ? await run(process.execPath, [suite, name, url, histories]) : undefined;
    return { name, protocol, server, url, results };
  };
  for (const { name, protocol, server, url, results } of await Promise.all(CLIENTS.map(start))) {
    describe(`${name} over ${protocol}`, () => {
      test.each(OPERATIONS)("two processes are granted exactly the capacity (%s)", async (operation, capacity) => {
        const taker = ["sqlite", name, url, operation, "240", operation];
        expect(await grantedTo([taker, taker])).toBe(capacity);
      });

      test.each(["paused", "killed"])("a server that is %s: onStoreError decides, and service resumes", async (how) => {
        const { client, close } = await clients[name](url);
        await outage(how, server, sqlite(client, { table: how }));
        close();
      });

      if (results !== undefined) {
        replay(JSON.parse(results.stdout));

        test("recovers from a half-open connection", async () => {
          const proxy = await LossyProxy.start(server.port);
          onTestFinished(() => proxy.stop());
          const { client, close } = await clients[name](`${protocol}://127.0.0.1:${proxy.port}`);
          await stallUntilRecovered(sqlite(client, { table: "half_open" }), proxy);
          close();
        });
      }

      test("a read whose connection ends, as an idle one that the server closes, is sent again, once", async () => {
        const proxy = await LossyProxy.start(server.port);
        onTestFinished(() => proxy.stop());
        const { client, close } = await clients[name](`${protocol}://127.0.0.1:${proxy.port}`);
        const store = sqlite(client, { table: "closed" });
        const limits = defineLimits(
          { login: { kind: "token bucket", rate: 9, period: HOUR } },
          { store, timeout: 5000, log: false },
        );
        await limits.limit("login");
        proxy.lose = 1;
        expect(await limits.check("login")).toMatchObject({ ok: true, remaining: 7 });
        expect(proxy.lost).toBe(1);
        proxy.lose = 2;
        expect(await limits.check("login")).toMatchObject({ degraded: true });
        close();
      });

      test("calls whose deadline passes while the server stands still take nothing when it continues", async () => {
        const { client, close } = await clients[name](url);
        await lateTakesNothing(server, sqlite(client, { table: "late" }));
        close();
      });
    });
  }
});
