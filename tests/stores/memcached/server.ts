/** A memcached of a test's own on a free loopback port, and a look into it past every client. */
import { connect, type Socket } from "node:net";
import { decodeText } from "../../../npm/tidegate/src/limit/codec.ts";
import type { State } from "tidegate/store";
import { keyOf } from "../../../npm/tidegate/src/stores/memcached/client.ts";
import type { Stored } from "tidegate/testing";
import { freePort } from "../../support/ports.ts";
import { ServerProcess } from "../../support/processes.ts";

export class MemcachedServer {
  readonly port: number;
  readonly #args: readonly string[];
  #process: ServerProcess | undefined;

  private constructor(port: number, args: readonly string[]) {
    this.port = port;
    this.#args = args;
  }

  static async start(...args: string[]): Promise<MemcachedServer> {
    const server = new MemcachedServer(await freePort(), args);
    await server.up();
    return server;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Starts the process; returns once it answers. */
  async up(): Promise<void> {
    // As root it requires the name of another user.
    const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
    const own = ["-p", `${this.port}`, "-l", "127.0.0.1", "-U", "0", ...user];
    this.#process = new ServerProcess("memcached", [...own, ...this.#args]);
    await this.#process.answers(() => this.say("version\r\n", /^VERSION/));
  }

  signal(signal: NodeJS.Signals): void {
    this.#process?.signal(signal);
  }

  /** Kills the process as a crash would, and waits until it is gone. */
  async stop(): Promise<void> {
    await this.#process?.stop();
  }

  /** Sends this on a connection of its own, and returns what came once that matches. */
  say(what: string, until: RegExp): Promise<string> {
    return new Promise((resolve, reject) => {
      let heard = "";
      const socket: Socket = connect(this.port, "127.0.0.1", () => socket.write(what));
      socket.on("data", (data) => {
        heard += data.toString("latin1");
        if (until.test(heard)) resolve(heard);
        if (until.test(heard)) socket.destroy();
      });
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`the server closed after ${JSON.stringify(heard)}`)));
    });
  }

  /** What is under a key, and the seconds that it is still kept; -1: for good. */
  async look(key: string): Promise<{ text: string; ttl: number } | undefined> {
    const heard = await this.say(`mg ${key} v t\r\n`, /^EN\r\n|^VA .*\r\n.*\r\n/);
    const [, ttl, text] = /^VA \d+ t(-?\d+)\r\n(.*)\r\n/.exec(heard) ?? [];
    return text === undefined ? undefined : { text, ttl: Number(ttl) };
  }

  /** The states of a store, by identity. */
  stored(prefix: string): Stored {
    return async (identity): Promise<State | null> => {
      const found = await this.look(keyOf(prefix, identity));
      return found === undefined ? null : decodeText(found.text);
    };
  }
}
