/** Real servers on free loopback ports, in folders of their own; all are gone when the test process is. */

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

interface Probe {
  retryStrategy?: () => number;
  maxRetriesPerRequest?: null;
  enableReadyCheck?: boolean;
  username?: string;
  password?: string;
}

/** One redis-server, or what `TIDEGATE_REDIS_SERVER` names (such as valkey-server). */
export class RedisServer {
  readonly port: number;
  readonly #folder: string;
  readonly #args: readonly string[];
  #process: ServerProcess | undefined;

  private constructor(port: number, folder: string, args: readonly string[]) {
    this.port = port;
    this.#folder = folder;
    this.#args = args;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  static async start(...args: string[]): Promise<RedisServer> {
    return RedisServer.startOn(await freePort(), ...args);
  }

  static async startOn(port: number, ...args: string[]): Promise<RedisServer> {
    const folder = temporaryFolder("redis");
    const server = new RedisServer(port, folder, args);
    await server.up();
    return server;
  }

  /** Starts the process; returns once it answers, be it with an error. */
  async up(): Promise<void> {
    this.launch();
    const probe = this.client({ retryStrategy: () => 20, maxRetriesPerRequest: null, enableReadyCheck: false });
    probe.on("error", () => {});
    await probe.ping().catch((error: Error) => {
      if (!/NOAUTH|LOADING/.test(error.message)) throw error;
    });
    probe.disconnect();
  }

  /** Starts the process, with these settings too, and does not wait. */
  launch(...extra: string[]): void {
    const own = ["--port", `${this.port}`, "--dir", this.#folder, "--bind", "127.0.0.1", "--loglevel", "warning"];
    // A configuration file comes first; a Sentinel has no snapshots to turn off.
    const [first = "", ...rest] = this.#args;
    const args = first.endsWith(".conf") ? [first, ...own, ...rest] : [...own, "--save", "", ...this.#args, ...extra];
    this.#process = new ServerProcess(process.env["TIDEGATE_REDIS_SERVER"] ?? "redis-server", args);
  }

  client(options: Probe = {}): Redis {
    const client = new Redis({ host: "127.0.0.1", port: this.port, ...options });
    client.on("error", () => {});
    return client;
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
  }

  /** Kills the process as a crash would, and waits until it is gone. */
  async kill(): Promise<void> {
    await this.#process?.stop();
  }

  async stop(): Promise<void> {
    await this.kill();
    remove(this.#folder);
    for (const file of this.#args) if (file.endsWith(".conf")) remove(dirname(file));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

async function stateOf(node: RedisServer): Promise<{ state: string; role: string }> {
  const client = node.client();
  try {
    return { state: `${await client.cluster("INFO")}`, role: await client.info("replication") };
  } finally {
    client.disconnect();
  }
}

/** A cluster of `masters` nodes, each with `replicas` replicas. */
export class RedisCluster {
  readonly nodes: readonly RedisServer[];

  private constructor(nodes: readonly RedisServer[]) {
    this.nodes = nodes;
  }

  static async start(masters: number, replicas: number, ...settings: string[]): Promise<RedisCluster> {
    const timeouts = ["--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0"];
    const args = ["--cluster-enabled", "yes", ...timeouts, ...settings];
    const all = Array.from({ length: masters * (replicas + 1) }, () => RedisServer.start(...args));
    const cluster = new RedisCluster(await Promise.all(all));
    const hosts = cluster.nodes.map((node) => `127.0.0.1:${node.port}`);
    const join = ["--cluster", "create", ...hosts, "--cluster-replicas", `${replicas}`, "--cluster-yes"];
    execFileSync("redis-cli", join, { stdio: "ignore" });
    await cluster.ready(masters * replicas);
    // Without a failover to wait for, no node that a busy machine holds up for a second shall count as down.
    if (replicas === 0) await cluster.#configure("cluster-node-timeout", 60_000);
    return cluster;
  }

  /** Waits until every node sees all slots served, and so many replicas are in step: a new node is a master at first. */
  async ready(replicas: number): Promise<void> {
    for (;;) {
      const seen = await Promise.all(this.nodes.map(stateOf));
      const inStep = seen.filter(({ role }) => /master_link_status:up/.test(role)).length;
      if (inStep === replicas && seen.every(({ state }) => /cluster_state:ok/.test(state))) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async #configure(name: string, value: number): Promise<void> {
    for (const client of this.nodes.map((node) => node.client())) {
      await client.config("SET", name, value);
      client.disconnect();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.nodes.map((node) => node.stop()));
  }
}

/** A Sentinel that watches the server on this port under the name "tide". */
export async function startSentinel(port: number): Promise<RedisServer> {
  const folder = temporaryFolder("sentinel");
  const config = join(folder, "sentinel.conf");
  writeFileSync(config, `sentinel monitor tide 127.0.0.1 ${port} 1\n`);
  return RedisServer.start(config, "--sentinel");
}
