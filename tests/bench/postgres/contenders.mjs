// The contenders: each gets a pool and decides on a key.
import { RateLimiterPostgres } from "rate-limiter-flexible";
import { defineLimits } from "tidegate";
import { migrate, postgres } from "tidegate/postgres";

/** So much that nothing is denied, and every decision writes. */
const RATE = 1e9;

const UPSERT = `INSERT INTO bare AS b (id, value, ts) VALUES ($1, $2::float8 - 1, $3)
  ON CONFLICT (id) DO UPDATE SET value = LEAST($2::float8, b.value + (($3 - b.ts) * $2::float8) / 1000) - 1, ts = $3
  WHERE LEAST($2::float8, b.value + (($3 - b.ts) * $2::float8) / 1000) >= 1 RETURNING value, ts`;

/** The limit of the server and the client. */
export const select1 = {
  name: "SELECT 1",
  async open(pool) {
    return () => pool.query({ name: "one", text: "SELECT 1" });
  },
};

/** A token bucket as the smallest possible query: one prepared upsert. */
export const upsert = {
  name: "bare prepared upsert",
  async open(pool) {
    await pool.query(
      "CREATE TABLE IF NOT EXISTS bare (id text PRIMARY KEY, value float8, ts float8) WITH (fillfactor = 50)",
    );
    return (key) => pool.query({ name: "upsert", text: UPSERT, values: [key, RATE, Date.now()] });
  },
};

export const flexible = {
  name: "rate-limiter-flexible",
  async open(pool) {
    let ready;
    const created = new Promise((resolve, reject) => {
      ready = (error) => (error ? reject(error) : resolve());
    });
    const options = {
      storeClient: pool,
      points: RATE,
      duration: 1000,
      tableName: "flexible",
      clearExpiredByTimeout: false,
    };
    const limiter = new RateLimiterPostgres(options, ready);
    await created;
    return (key) => limiter.consume(key);
  },
};

const ours = (name, schema, unlogged) => ({
  name,
  async open(pool) {
    await migrate(pool, { schema, unlogged });
    const limits = defineLimits(
      { api: { kind: "token bucket", rate: RATE, period: 1000 } },
      { store: postgres(pool, { schema, ...JSON.parse(process.env.TIDEGATE_STORE ?? "{}") }), timeout: 10_000 },
    );
    return async (key) => {
      const decision = await limits.limit("api", { key });
      if (!decision.ok || decision.degraded) throw decision.cause ?? new Error("nothing may be denied here");
    };
  },
});
export const tidegate = ours("tidegate", "tidegate", false);
export const unlogged = ours("tidegate, unlogged", "tidegate_unlogged", true);
