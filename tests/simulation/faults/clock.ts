/** Tokens minted by a clock that is set forward and back several times. */
import { defineLimits, memory } from "tidegate";
import { redis } from "tidegate/redis";
import { Life } from "../engine/clock.ts";
import { below, type Random, stream } from "../engine/random.ts";
import { MS, SECOND, World } from "../engine/world.ts";
import { NEAR } from "../fleet/cases.ts";
import { Redis } from "../fleet/network.ts";

export interface Swinging {
  readonly seed: number;
  readonly store: "memory" | "redis";
  /** How often the clock is set forward and back, and by how many ms. */
  readonly swings: number;
  readonly by: number;
}

export interface Swung {
  /** Tokens granted on the key with the most. */
  readonly granted: number;
  /** `capacity` plus what is earned until the latest time that the clock showed. */
  readonly bound: number;
}

const CAPACITY = 10;
const PERIOD = 300_000;
const LIMIT = { kind: "token bucket", rate: CAPACITY, period: PERIOD } as const;
/** A state of this limit is full one millisecond after a call: a full table evicts those first. */
const OTHER = { kind: "token bucket", rate: 1_000_000, period: 1000 } as const;
/** Keys that are used at the low times, and others at the high ones. */
const KEYS = 20;
const OTHERS = 200;

/** All tokens of every key at low times, some of others at high ones. */
export async function swinging(task: Swinging): Promise<Swung> {
  const { seed, store, swings, by } = task;
  const world = new World(seed);
  const life = new Life();
  const granted = new Map<string, number>();
  const server = store === "redis" ? await Redis.start(world, { seed, network: NEAR }) : undefined;
  const set = (offset: number): void => {
    // In memory it is the process's clock, on Redis the server's.
    if (server === undefined) life.offset = offset;
    else {
      server.offset = offset;
      server.expire();
    }
  };
  const random = stream(seed, "demand");
  world.at(0, life, () => {
    const limits =
      server === undefined
        ? defineLimits({ limit: LIMIT, other: OTHER }, { store: memory({ maxKeys: KEYS * 2 }) })
        : defineLimits(
            { limit: LIMIT, other: OTHER },
            { store: redis(server.client(life, { cuts: 0 }), { rememberDenials: 0 }), log: false },
          );
    const call = async (key: string, name: "limit" | "other" = "limit"): Promise<void> => {
      const { ok } = await limits.limit(name, { key });
      if (ok) granted.set(key, (granted.get(key) ?? 0) + 1);
    };
    for (let swing = 0; swing <= swings; swing++) {
      const low = 2 * swing * SECOND;
      at(low, random, KEYS * CAPACITY * 2, (i) => void call(`low ${i % KEYS}`));
      world.at(low + SECOND, undefined, () => set(by));
      at(low + SECOND, random, OTHERS, (i) => void call(`high ${swing} ${i}`, "other"));
      world.at(low + 2 * SECOND - 1, undefined, () => set(0));
    }
  });
  /** Spreads calls over nine tenths of a second. */
  const at = (from: number, random: Random, calls: number, run: (i: number) => void): void => {
    for (let i = 0; i < calls; i++) world.at(from + 1 + below(random, 0.9 * SECOND), life, () => run(i));
  };
  await world.run();
  server?.close();
  const highest = by + (2 * swings + 2) * (SECOND / MS);
  const lows = [...granted].filter(([key]) => key.startsWith("low")).map(([, tokens]) => tokens);
  return { granted: Math.max(...lows), bound: CAPACITY + (CAPACITY * highest) / PERIOD };
}
