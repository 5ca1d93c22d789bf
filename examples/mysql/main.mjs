// Logins in MySQL or MariaDB, for all processes on one database (DATABASE_URL chooses which):
//   DATABASE_URL=mysql://root@localhost/test node examples/mysql/main.mjs
import { createPool } from "mysql2/promise";
import { defineLimits, MINUTE, SECOND } from "tidegate";
import { mysql } from "tidegate/mysql";

const pool = createPool(process.env.DATABASE_URL ?? "mysql://root@localhost/test");
const limits = defineLimits(
  { login: { kind: "token bucket", rate: 2, period: MINUTE } },
  { store: mysql(pool), timeout: 2 * SECOND },
);

for (const attempt of ["first", "second", "third"]) {
  const { ok, remaining } = await limits.limit("login", { key: "user 7" });
  console.log(attempt, ok ? `allowed, ${remaining} left` : "try again later");
}
await pool.end();
