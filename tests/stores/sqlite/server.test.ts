/** The contract of a store on a libSQL server, as Turso runs it, through its clients over HTTP and WebSocket; and its outages. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
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

/** The last: whether it leaves a connection that does not answer, as each request has a connection or a timeout of its own. */
const CLIENTS = [
  ["@libsql/client", "http", true],
  ["@libsql/client", "ws", false],
  ["@tursodatabase/serverless", "http", true],
  ["@tursodatabase/serverless/compat", "http", false],
] as const;

await inRuntime("sqld", async (program) => {
  for (const [i, [name, protocol, leaves]] of CLIENTS.entries()) {
    const server = await LibSqlServer.start(program, join(folder, `${i}.db`));
    afterAll(() => server.stop());
    const url = `${protocol}://127.0.0.1:${server.port}`;
    const { stdout } = await run(process.execPath, [suite, name, url, histories], { maxBuffer: 2 ** 26 });

    describe(`${name} over ${protocol}`, () => {
      replay(JSON.parse(stdout));

      test.each(OPERATIONS)("two processes are granted exactly the capacity (%s)", async (operation, capacity) => {
        const taker = ["sqlite", name, url, operation, "240", operation];
        expect(await grantedTo([taker, taker])).toBe(capacity);
      });

      test.each(["stands still", "killed"])(
        "a server that is %s: onStoreError decides, and service resumes",
        async (how) => {
          const { client, close } = await clients[name](url);
          await outage(how, server, sqlite(client, { table: how.replace(" ", "_") }));
          close();
        },
      );

      test.runIf(leaves)("recovers from a half-open connection", async () => {
        const proxy = await LossyProxy.start(server.port);
        onTestFinished(() => proxy.stop());
        const { client, close } = await clients[name](`${protocol}://127.0.0.1:${proxy.port}`);
        await stallUntilRecovered(sqlite(client, { table: "half_open" }), proxy);
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
