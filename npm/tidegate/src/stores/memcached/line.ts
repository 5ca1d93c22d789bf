/**
 * The calls of this process on one state. Those that come while a step is out wait, and share the next: one look, the
 * calls one after another on what it found, one swap. Where another process was faster, all of it is done again.
 */
import { decodeText, encodeText } from "../../limit/codec.ts";
import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Op } from "../contract.ts";
import type { Link } from "./client.ts";
import { exptimeOf } from "./expiry.ts";

/** One call on one state. */
export interface Asked {
  readonly op: Op;
  readonly limit: Limit;
  readonly start: number;
  readonly count: number;
  readonly reserve: boolean;
  /** Whether the state is one shard's. */
  readonly shard: boolean;
  /** Epoch ms; where absent, this process's clock when it comes to its turn. */
  readonly now: number | undefined;
}

/** What came of it. */
export interface Told {
  readonly before: State | null;
  readonly decision: Decision;
  readonly now: number;
}

interface Waiting {
  readonly asked: Asked;
  resolve(told: Told): void;
  reject(error: unknown): void;
}

/** ms of the longest wait between two tries. */
const PAUSE_MOST = 100;

export class Line {
  readonly #link: Link;
  readonly #key: string;
  /** ms that a step may take, with its repetitions. */
  readonly #most: number;
  #waiting: Waiting[] = [];

  constructor(link: Link, key: string, most: number) {
    this.#link = link;
    this.#key = key;
    this.#most = most;
  }

  ask(asked: Asked): Promise<Told> {
    return new Promise((resolve, reject) => this.#waiting.push({ asked, resolve, reject }));
  }

  /** Answers all that was asked. When it is done, the line is to be forgotten in the same turn. */
  async run(forget: () => void): Promise<void> {
    // What is asked in the same turn goes along.
    await undefined;
    while (this.#waiting.length > 0) {
      const some = this.#waiting;
      this.#waiting = [];
      try {
        for (const answer of await this.#within(some)) answer();
      } catch (error) {
        for (const { reject } of some) reject(error);
      }
    }
    forget();
  }

  /** A client may never answer what went to a server that is gone: nobody waits for it longer than a step may take. */
  async #within(some: readonly Waiting[]): Promise<(() => void)[]> {
    const until = performance.now() + this.#most;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.#most} ms`)), this.#most);
      (timer as { unref?: () => void }).unref?.();
    });
    try {
      return await Promise.race([this.#step(some, until), late]);
    } finally {
      clearTimeout(timer);
    }
  }

  async #step(some: readonly Waiting[], until: number): Promise<(() => void)[]> {
    for (let tries = 1; ; tries++) {
      const found = await this.#link.find(this.#key);
      const before = found === undefined ? null : decodeText(found.value as string);
      const { state, exptime, answers } = replay(some, before);
      if (state === null || state === before) return answers;
      // Nobody waits for it any more: what would be taken now would be taken for nobody.
      if (performance.now() >= until) throw new Error(`not stored within ${this.#most} ms`);
      const text = encodeText(state);
      const stored =
        found === undefined
          ? await this.#link.add(this.#key, text, exptime)
          : await this.#link.swap(this.#key, text, exptime, found.version);
      if (stored) return answers;
      await this.#pause(tries, until);
    }
  }

  /** Longer each time and never the same, so that those that met once do not meet again. */
  async #pause(tries: number, until: number): Promise<void> {
    const wait = Math.random() * Math.min(PAUSE_MOST, 2 ** tries);
    if (performance.now() + wait >= until) {
      throw new Error(`not stored in ${tries} tries: others were faster, or the server has no room`);
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** The calls one after another: what to tell each, and what there is to store. */
function replay(some: readonly Waiting[], before: State | null) {
  let state = before;
  let exptime = 0;
  const answers = some.map(({ asked, resolve, reject }) => {
    const { limit, start, shard } = asked;
    const held = state;
    const wall = Date.now();
    const now = asked.now ?? wall;
    try {
      const { decision, state: after } = limit.evaluate(held, asked, now, { start, shard });
      if (after !== null && after !== held) {
        exptime = exptimeOf(limit.fullAt(after, now, { start, shard }), now, wall);
        state = after;
      }
      return () => resolve({ before: held, decision, now });
    } catch (error) {
      // A mistake of this call's alone.
      return () => reject(error);
    }
  });
  return { state, exptime, answers };
}
