/**
 * What waits for the database. A statement leaves as soon as there is room for one; what comes while all are out, or
 * in the same turn of the event loop, leaves together in the next.
 */
import { pause, retryable } from "./conflict.ts";
import type { Ask } from "./client.ts";
import type { Pending } from "./pending.ts";
import { forget, readMany, takeMany, takeOne, type Turn } from "./plain.ts";
import { runMany } from "./program.ts";

/** Settings of a queue. */
export interface QueueOptions {
  readonly ask: Ask;
  /** The schema's name, quoted. */
  readonly schema: string;
  /** Statements that are out at one time. */
  readonly statements: number;
  /** Calls in one statement. */
  readonly batch: number;
  /** ms that a statement may take. */
  readonly timeout: number;
  /** Whether a statement that lost against another may be sent again: not in somebody's transaction. */
  readonly retries: boolean;
}

/** Up to so many leave together, though there is room for another statement. */
const LEAST_SHARE = 64;

/** For each place: so many statements may be unanswered before no more are sent. */
const LOST = 4;
/** ms between those that are sent all the same. */
const PROBE_AFTER = 1000;

type Kind = "take" | "read" | "reset" | "run";

export class Queue {
  readonly #options: QueueOptions;
  #waiting: Pending[] = [];
  #out = 0;
  /** Calls in them. */
  #outCalls = 0;
  /** Statements that were given up and are still unanswered. */
  #lost = 0;
  #probeAt = 0;
  #scheduled = false;
  /** Identities that a statement is out about: what else is asked on them waits, so that it is answered in order. */
  readonly #busy = new Set<string>();

  constructor(options: QueueOptions) {
    this.#options = options;
  }

  add(pending: Pending): void {
    this.#waiting.push(pending);
    if (this.#scheduled || this.#out >= this.#options.statements) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const { statements, batch } = this.#options;
    while (this.#out < statements && this.#waiting.length > 0) {
      // An even share for each statement: a small one costs as much as a large one, so few wait for the next.
      const share = (this.#waiting.length + this.#outCalls) / statements;
      if (this.#out > 0 && this.#waiting.length < share / 2) return;
      const next = this.#next(Math.min(batch, Math.max(LEAST_SHARE, Math.ceil(share))));
      if (next === undefined) return;
      void this.#carry(next.kind, next.some);
    }
  }

  /** What leaves next: calls of one kind, none about what a statement is out about or what an earlier call waits for. */
  #next(most: number): { kind: Kind; some: Pending[] } | undefined {
    const held = new Set<string>();
    const left: Pending[] = [];
    const taken = new Map<string, Pending[]>();
    let some: Pending[] = [];
    let kind: Kind | undefined;
    for (const [i, pending] of this.#waiting.entries()) {
      if (some.length === most) {
        left.push(...this.#waiting.slice(i));
        break;
      }
      const own = kindOf(pending);
      const fits = kind === undefined || (own === kind && pending.now === some[0]?.now);
      if (!fits || pending.about.some((id) => held.has(id) || this.#busy.has(id))) {
        for (const id of pending.about) held.add(id);
        left.push(pending);
        continue;
      }
      kind = own;
      some.push(pending);
      for (const id of pending.about) {
        const same = taken.get(id);
        if (same === undefined) taken.set(id, [pending]);
        else same.push(pending);
      }
    }
    if (kind === undefined) return undefined;
    if (kind === "take" && taken.size < some.length) {
      // Few meet on one row: they wait for the next statement. Many do: they go in turn in this one.
      if (taken.size * 2 > some.length) {
        const later = some.filter((pending) => taken.get(pending.about[0] as string)?.[0] !== pending);
        some = some.filter((pending) => taken.get(pending.about[0] as string)?.[0] === pending);
        left.unshift(...later);
      } else {
        kind = "run";
      }
    }
    this.#waiting = left;
    return { kind, some };
  }

  async #carry(kind: Kind, some: readonly Pending[]): Promise<void> {
    for (const pending of some) for (const id of pending.about) this.#busy.add(id);
    this.#out++;
    this.#outCalls += some.length;
    let again: readonly Pending[] = [];
    try {
      again = await this.#settle(kind, some);
    } finally {
      this.#out--;
      this.#outCalls -= some.length;
      for (const pending of some) for (const id of pending.about) this.#busy.delete(id);
      for (const pending of again) pending.again = true;
      if (again.length > 0) this.#waiting.unshift(...again);
      // After those who were just answered have asked anew.
      if (this.#waiting.length > 0 && !this.#scheduled) {
        this.#scheduled = true;
        queueMicrotask(() => {
          this.#scheduled = false;
          this.#send();
        });
      }
    }
  }

  /** Asks, and answers every call; returns those to ask again. */
  async #settle(kind: Kind, some: readonly Pending[]): Promise<readonly Pending[]> {
    try {
      const turn = this.#turn(kind, some);
      return turn.settle(await this.#ask(turn));
    } catch (error) {
      const { code, message } = error as { code?: unknown; message?: unknown };
      if (some.length > 1 && this.#options.retries && typeof code === "string" && code.startsWith("22")) {
        // A number that PostgreSQL cannot compute with, of one of them: nothing was written. Each is asked on its own.
        for (const pending of some) await this.#settle(kind, [pending]);
        return [];
      }
      for (const pending of some) pending.fail(typeof message === "string" ? message : String(error), error);
      return [];
    }
  }

  #turn(kind: Kind, some: readonly Pending[]): Turn {
    const { schema } = this.#options;
    if (kind === "read") return readMany(schema, some);
    if (kind === "reset") return forget(schema, some);
    if (kind === "run") return runMany(schema, some);
    return some.length === 1 ? takeOne(schema, some[0] as Pending) : takeMany(schema, some);
  }

  async #ask(turn: Turn): Promise<unknown> {
    const { timeout, retries } = this.#options;
    const until = performance.now() + timeout;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#within(turn, until - performance.now());
      } catch (error) {
        if (!retries || !retryable(error) || !(await pause(tries, until))) throw error;
      }
    }
  }

  /** One statement, for at most so long. What is given up is not sent again: it may still be carried out. */
  #within({ statement }: Turn, ms: number): Promise<unknown> {
    const { ask, statements, timeout } = this.#options;
    return new Promise((resolve, reject) => {
      if (this.#lost >= statements * LOST) {
        const now = performance.now();
        if (now < this.#probeAt) {
          reject(new Error(`${this.#lost} statements are still unanswered`));
          return;
        }
        // A client may never settle what went to a server that is gone: one in a while asks whether it is back.
        this.#probeAt = now + PROBE_AFTER;
      }
      let lost = false;
      const settled = (): void => {
        clearTimeout(timer);
        if (lost) this.#lost--;
        lost = false;
      };
      const timer = setTimeout(() => {
        lost = true;
        this.#lost++;
        reject(new Error(`no answer within ${timeout} ms`));
      }, ms);
      (timer as { unref?: () => void }).unref?.();
      try {
        ask(statement, timeout).then(
          (answer) => {
            settled();
            resolve(answer);
          },
          (error: unknown) => {
            settled();
            reject(error);
          },
        );
      } catch (error) {
        settled();
        reject(error);
      }
    });
  }
}

function kindOf(pending: Pending): Kind {
  if (pending.again) return "run";
  if (pending.plain) return "take";
  if (pending.reads) return "read";
  return pending.asked.kind === "reset" ? "reset" : "run";
}
