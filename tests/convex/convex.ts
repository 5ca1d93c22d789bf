// Convex's own code without its server: what it calculates, and what its component then decides and writes.
import { calculateRateLimit, type RateLimitConfig } from "@convex-dev/rate-limiter";
import { vi } from "vitest";

export { calculateRateLimit };
export type ConvexConfig = RateLimitConfig;
export type State = { value: number; ts: number };

type Status = { ok: boolean; retryAfter?: number | undefined };
type Row = State & { shard: number };
type Request = { now: number; count?: number; reserve?: boolean; throws?: boolean };

// The package does not export the decision, so this imports the component's file; not as a literal, since its
// types do not compile with this project's options.
const component = "../../node_modules/@convex-dev/rate-limiter/dist/component/internal.js";
const { checkRateLimitOrThrow } = (await import(component)) as {
  checkRateLimitOrThrow(
    db: unknown,
    args: { name: string; config: ConvexConfig } & Omit<Request, "now">,
  ): Promise<{ status: Status; updates: Row[] }>;
};

/** The component's decision on the rows of one name, at `now`; it changes `rows` as its mutation would. */
export async function decide(
  rows: Map<number, Row>,
  config: ConvexConfig,
  { now, ...request }: Request,
): Promise<Status> {
  vi.useFakeTimers({ now, toFake: ["Date"] });
  try {
    const { status, updates } = await checkRateLimitOrThrow(table(rows), { name: "n", config, ...request });
    for (const { shard, value, ts } of updates) rows.set(shard, { shard, value, ts });
    return status;
  } finally {
    vi.useRealTimers();
  }
}

/** The same on a single row. */
export async function decideOn(state: State | null, config: ConvexConfig, request: Request) {
  const rows = new Map<number, Row>();
  if (state !== null) rows.set(0, { shard: 0, ...state });
  const status = await decide(rows, config, request);
  const row = rows.get(0);
  return { ...status, state: row === undefined ? null : { value: row.value, ts: row.ts } };
}

/** A transaction's view of the table, as far as the component reads it: the one row of (name, key, shard). */
function table(rows: Map<number, Row>) {
  type Index = { eq(field: string, value: unknown): Index };
  const db = {
    query: () => ({
      withIndex: (_name: string, range: (index: Index) => unknown) => {
        let shard = 0;
        const index: Index = {
          eq(field, value) {
            if (field === "shard") shard = Number(value);
            return index;
          },
        };
        range(index);
        return { unique: async () => rows.get(shard) ?? null };
      },
    }),
  };
  return db;
}
