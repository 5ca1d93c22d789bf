/**
 * The calls that wait for a statement. One leaves at once where a place for a statement is free; those made meanwhile, or
 * in the same turn of the event loop, leave together in the next. Calls on a row that another transaction has locked
 * leave in statements of their own, which never have all places.
 */
import { Carrier, LOCK_WAIT, open, type QueueOptions } from "./carrier.ts";
import { type Held, HeldKeys, LOCKED } from "./held.ts";
import type { Pending } from "./pending.ts";
import { select } from "./select.ts";

export type { QueueOptions } from "./carrier.ts";

/** Up to so many leave together, though there is room for another statement. */
const LEAST_SHARE = 64;
/** ms that an attempt waits which others have to wait for. */
const SHORT_LOCK_WAIT = 5;
/** ms that an attempt on one key in a place of its own waits for a lock, at most. */
const MOST_LOCK_WAIT = 80;

export class Queue {
  readonly #options: QueueOptions;
  readonly #carrier: Carrier;
  #waiting: Pending[] = [];
  #out = 0;
  /** Calls in them. */
  #outCalls = 0;
  #scheduled = false;
  /** Identities that a statement is out about: other calls on them wait, so that they are decided in order. */
  readonly #busy = new Set<string>();
  readonly #held = new HeldKeys();
  /** Statements that are out about held keys. */
  #heldOut = 0;
  #heldLast = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#carrier = new Carrier(options, {
      has: (id) => this.#held.has(id),
      hold: (calls, ids, cause) => this.#hold(calls, ids, cause),
    });
  }

  add(pending: Pending): void {
    const held = this.#held.size === 0 ? undefined : this.#held.of(pending);
    if (held === undefined) this.#waiting.push(pending);
    else this.#keep(held, pending);
    if (this.#out < this.#options.statements) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const { statements, batch } = this.#options;
    while (this.#out < statements) {
      if (this.#sendHeld()) continue;
      this.#heldLast = false;
      if (this.#waiting.length === 0) return;
      // An even share for each statement: a small one costs as much as a large one, so few wait for the next.
      const share = (this.#waiting.length + this.#outCalls) / statements;
      if (this.#out > 0 && this.#waiting.length < share / 2) return;
      this.#waiting = open(this.#waiting);
      const next = select(this.#waiting, Math.min(batch, Math.max(LEAST_SHARE, Math.ceil(share))), this.#busy);
      if (next === undefined) return;
      this.#waiting = next.left;
      void this.#carry(next.some, () => this.#carrier.settle(next.kind, next.some));
    }
  }

  async #carry(some: readonly Pending[], settle: () => Promise<readonly Pending[]>): Promise<void> {
    for (const pending of some) for (const id of pending.about) this.#busy.add(id);
    this.#out++;
    this.#outCalls += some.length;
    let again: readonly Pending[] = [];
    try {
      again = await settle();
    } finally {
      this.#out--;
      this.#outCalls -= some.length;
      for (const pending of some) for (const id of pending.about) this.#busy.delete(id);
      for (const pending of again) pending.again = true;
      if (again.length > 0) this.#waiting.unshift(...again);
      // After the callers that were just answered have made their next calls.
      this.#schedule();
    }
  }

  /** Keeps the calls on these keys apart, and those that wait behind them; returns the others. */
  #hold(calls: readonly Pending[], ids: ReadonlySet<string>, cause: unknown): Pending[] {
    if (ids.size === 0) return [...calls];
    const now = performance.now();
    const waiting = new Map([...ids].map((id) => [id, this.#held.lock(id, now, cause).calls.splice(0)]));
    const others = calls.filter((pending) => !this.#kept(pending));
    for (const [, later] of waiting) for (const pending of later) this.#kept(pending);
    this.#waiting = this.#waiting.filter((pending) => !this.#kept(pending));
    return others;
  }

  #kept(pending: Pending): boolean {
    const held = this.#held.of(pending);
    if (held === undefined) return false;
    this.#keep(held, pending);
    return true;
  }

  #keep(held: Held, pending: Pending): void {
    held.calls.push(pending);
    pending.failAtDeadline(LOCKED, held.cause);
  }

  /** Sends calls on held keys, where some are due and there is a place for them. */
  #sendHeld(): boolean {
    const { statements, batch, transaction } = this.#options;
    if (this.#held.size === 0 || transaction || this.#heldOut >= Math.max(1, statements - 1)) return false;
    if (statements === 1 && this.#heldLast && this.#waiting.length > 0) return false;
    const now = performance.now();
    const due = this.#held.due(now, batch).filter(({ id }) => !this.#busy.has(id));
    if (due.length === 0) {
      this.#wake(now);
      return false;
    }
    this.#heldLast = true;
    void this.#carryHeld(due);
    return true;
  }

  /** Waits for the next attempt that is not due yet. */
  #wake(now: number): void {
    const at = this.#held.nextAt(now);
    if (at === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#send();
      },
      Math.ceil(at - now),
    );
  }

  /** Calls on held keys: those whose rows are free leave together. Where none is, those of the first wait for the lock. */
  async #carryHeld(due: readonly Held[]): Promise<void> {
    const { statements, batch } = this.#options;
    const begun = performance.now();
    this.#heldOut++;
    for (const held of due) held.out = true;
    for (const held of due) held.calls = open(held.calls);
    const calls = due.flatMap((held) => held.calls);
    const first = due[0] as Held;
    // A call on several keys never waits for a lock: it would hold those of the others meanwhile.
    const several = first.calls.findIndex(({ about }) => about.length > 1);
    const alone = statements === 1 ? [] : first.calls.slice(0, several < 0 ? undefined : several);
    this.#out++;
    const locked =
      calls.length === 0 || (due.length === 1 && alone.length > 0) ? undefined : await this.#carrier.locked(calls);
    this.#out--;
    const free = locked === undefined ? [] : calls.filter(({ about }) => !about.some((id) => locked.has(id)));
    const next = select(free.length > 0 ? free : alone, batch, this.#busy);
    const sent = new Set(next?.some);
    const tried = new Set<Held>();
    if (next !== undefined) {
      for (const held of due) {
        const rest = held.calls.filter((pending) => !sent.has(pending));
        if (rest.length < held.calls.length) tried.add(held);
        held.calls = rest;
      }
      const patient = due.length === 1 && alone.length > 0;
      const wait = patient
        ? Math.min(LOCK_WAIT * 2 ** first.attempts, MOST_LOCK_WAIT)
        : statements === 1
          ? SHORT_LOCK_WAIT
          : LOCK_WAIT;
      await this.#carry(next.some, () => this.#carrier.settle(next.kind, next.some, wait));
    }
    const now = performance.now();
    for (const held of due) {
      held.out = false;
      if (tried.has(held) && held.lockedAt < begun) {
        this.#waiting.unshift(...this.#held.free(held, now, now - begun > LOCK_WAIT));
      } else if (!tried.has(held) && (locked === undefined || locked.has(held.id))) {
        this.#held.lock(held.id, now, held.cause);
      }
      if (held.lockedAt >= begun && (statements === 1 || due.length > 1 || alone.length === 0))
        this.#held.pause(held, now);
    }
    this.#heldOut--;
    this.#schedule();
  }
}
