/** The network between nodes and the Redis servers, and the client of a node's store. */
import { createHash } from "node:crypto";
import slotOf from "cluster-key-slot";
import type { RedisLike } from "tidegate/redis";
import type { Process } from "../engine/events.ts";
import { type Change, RedisServer } from "../engine/lua.ts";
import { logNormal, type Random, stream } from "../engine/random.ts";
import { EPOCH_MS, MS, type World } from "../engine/world.ts";
import type { Network } from "./scenario.ts";

const SLOTS = 16_384;

/** The effect of a script call. */
export interface Step {
  readonly keys: readonly string[];
  readonly changes: readonly Change[];
  /** The server's clock, integer ms. */
  readonly now: number;
}

/** One end of the network: a node, which partitions cut off. */
export interface End {
  cuts: number;
}

/** Redis servers of one data set; each key lives on one of them. */
export class Redis {
  readonly #world: World;
  readonly #server: RedisServer;
  readonly #network: Network;
  readonly #random: Random;
  readonly #onStep: (step: Step) => void;
  /** ms that the servers' clock is ahead. */
  offset = 0;
  /** Servers that are down, by number. */
  readonly dead: Set<number> = new Set();
  readonly servers: number;

  static async start(
    world: World,
    { seed, network, servers = 1 }: { seed: number; network: Network; servers?: number },
    onStep: (step: Step) => void = () => {},
  ): Promise<Redis> {
    return new Redis(world, await RedisServer.start(), network, stream(seed, "network"), servers, onStep);
  }

  private constructor(
    world: World,
    server: RedisServer,
    network: Network,
    random: Random,
    servers: number,
    onStep: (step: Step) => void,
  ) {
    this.#world = world;
    this.#server = server;
    this.#network = network;
    this.#random = random;
    this.servers = servers;
    this.#onStep = onStep;
  }

  /** What the servers' clock shows, integer ms. */
  now(): number {
    return Math.floor(this.#exact());
  }

  #exact(): number {
    return EPOCH_MS + this.offset + this.#world.now / MS;
  }

  /** The server of a key: each has an equal range of the slots, as in a cluster. */
  serverOf(key: string): number {
    return this.#serverOfSlot(slotOf(key));
  }

  #serverOfSlot(slot: number): number {
    return Math.floor((slot * this.servers) / SLOTS);
  }

  plant(key: string, bytes: string): void {
    this.#server.plant(key, bytes);
  }

  /** Deletes expired keys, as a server does a few times per second. */
  expire(): void {
    this.#server.expire(this.now());
  }

  close(): void {
    this.#server.close();
  }

  /** A client with the shape of ioredis, or of its `Cluster` if there are several servers. */
  client(process: Process, end: End): RedisLike {
    const send = (run: () => unknown, place: number): Promise<unknown> =>
      new Promise((resolve, reject) => {
        const there = this.#hop();
        // A lost message leaves a connection that never answers.
        if (there === undefined || end.cuts > 0) return;
        this.#world.after(there, undefined, () => {
          if (this.dead.has(place)) return;
          let settle: () => void;
          try {
            const answer = run();
            settle = () => resolve(answer);
          } catch (error) {
            settle = () => reject(error);
          }
          const back = this.#hop();
          if (back === undefined || end.cuts > 0) return;
          this.#world.after(back, process, settle);
        });
      });
    const step = (sha: string, keys: string[], args: string[]): Uint8Array => {
      const [answer, changes] = this.#server.run(sha, keys, args, this.#exact());
      this.#onStep({ keys, changes, now: this.now() });
      return answer;
    };
    const evalshaBuffer = (sha: string, _many: number, keys: string[], args: string[]): Promise<unknown> =>
      send(
        () => {
          if (!this.#server.has(sha)) throw new Error("NOSCRIPT No matching script. Please use EVAL.");
          return step(sha, keys, args);
        },
        this.serverOf(keys[0] ?? ""),
      );
    const evalBuffer = (script: string, _many: number, keys: string[], args: string[]): Promise<unknown> =>
      send(
        () => {
          const sha = createHash("sha1").update(script).digest("hex");
          this.#server.install(sha, script);
          return step(sha, keys, args);
        },
        this.serverOf(keys[0] ?? ""),
      );
    // As ioredis's Cluster: for each slot its master.
    const slots = Array.from({ length: SLOTS }, (_, slot) => [`server ${this.#serverOfSlot(slot)}`]);
    const isCluster = this.servers > 1;
    const client = { isCluster, slots, options: {}, sendCommand: () => {}, evalshaBuffer, evalBuffer };
    return client as unknown as RedisLike;
  }

  #hop(): number | undefined {
    const { median, sigma, loss } = this.#network;
    const delay = Math.max(Math.floor(logNormal(this.#random, median, sigma)), 1);
    return loss > 0 && this.#random() < loss ? undefined : delay;
  }
}
