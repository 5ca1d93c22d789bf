// Logins in SQLite, for all processes on one file (DATABASE chooses which). Requires Node.js 22.13:
//   node examples/sqlite/main.mjs
import { DatabaseSync } from "node:sqlite";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { sqlite } from "tidegate/sqlite";

const database = new DatabaseSync(process.env.DATABASE ?? "limits.db");
database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 100");
const limits = defineLimits(
  { login: { kind: "token bucket", rate: 2, period: MINUTE } },
  { store: sqlite(database), timeout: 2 * SECOND },
);

for (const attempt of ["first", "second", "third"]) {
  const { ok, remaining } = await limits.limit("login", { key: "user 7" });
  console.log(attempt, ok ? `allowed, ${remaining} left` : "try again later");
}
database.close();
