/** One key holds a corrupt state, or one server of a cluster is down: the outcome of calls on other keys. */
import { type Decision, defineLimits } from "tidegate";
import { redis } from "tidegate/redis";
import { Life } from "../engine/clock.ts";
import { below, exponential, stream } from "../engine/random.ts";
import { SECOND, World } from "../engine/world.ts";
import { NEAR } from "../fleet/cases.ts";
import { Redis } from "../fleet/network.ts";

export interface Breaking {
  readonly seed: number;
  /** What fails: one key of all, or one server of three. */
  readonly fails: "key" | "server";
  readonly nodes: number;
  /** Requests per second, of all nodes together. */
  readonly perSecond: number;
  /** The fraction of requests on the failing key. */
  readonly share: number;
  readonly seconds: number;
}

export interface Broken {
  /** Calls on healthy keys, and those that were decided without the store. */
  readonly healthy: number;
  readonly healthyDegraded: number;
  /** The same for failing keys. */
  readonly failing: number;
  readonly failingDegraded: number;
  /** Why the first healthy call was decided without the store. */
  readonly cause: string | null;
}

const KEYS = 200;
const CORRUPT = "k0";

export async function breaking({ seed, fails, nodes, perSecond, share, seconds }: Breaking): Promise<Broken> {
  const world = new World(seed);
  const servers = fails === "server" ? 3 : 1;
  const server = await Redis.start(world, { seed, network: NEAR, servers });
  const limit = { kind: "token bucket", rate: 1_000_000, period: 1000 } as const;
  const fleet = Array.from({ length: nodes }, () => {
    const life = new Life();
    const limits = world.within(life, () =>
      defineLimits({ limit }, { store: redis(server.client(life, { cuts: 0 })), log: false }),
    );
    return { life, limits };
  });
  const random = stream(seed, "demand");
  if (fails === "key") server.plant(`tidegate:limit:${CORRUPT}`, "not a state");
  else server.dead.add(below(random, servers));
  const isFailing = (key: string): boolean =>
    fails === "key" ? key === CORRUPT : server.dead.has(server.serverOf(`tidegate:limit:${key}`));

  const counts = { healthy: 0, healthyDegraded: 0, failing: 0, failingDegraded: 0 };
  let cause: string | null = null;
  const answered = (key: string, decision: Decision): void => {
    const kind = isFailing(key) ? "failing" : "healthy";
    counts[kind]++;
    if (decision.degraded !== true) return;
    counts[`${kind}Degraded`]++;
    if (kind === "healthy") cause ??= decision.cause instanceof Error ? decision.cause.message : String(decision.cause);
  };
  for (let at = 0; at < seconds * SECOND; at += exponential(random, perSecond / SECOND)) {
    const { life, limits } = fleet[below(random, nodes)] as (typeof fleet)[number];
    const key = fails === "key" && random() < share ? CORRUPT : `k${1 + below(random, KEYS)}`;
    world.at(Math.floor(at), life, () => {
      void limits.limit("limit", { key }).then((decision) => answered(key, decision));
    });
  }
  await world.run();
  server.close();
  return { ...counts, cause };
}
