/**
 * The requests that wait for a statement. A request is sent immediately if fewer statements are out than may be. Those made
 * meanwhile, or in the same turn of the event loop, are sent together in the next. Requests on a row that another transaction
 * has locked are sent in statements of their own, one at a time, so that the others hardly wait for the lock.
 */
import { Executor, LOCK_WAIT, type QueueOptions } from "./executor.ts";
import { overdue, type PendingRequest, stillWaiting } from "./request.ts";

/** Up to this many are sent together, even if another statement could be sent. */
const LEAST_SHARE = 64;
/** ms that a statement waits for a lock if other requests have to wait for it. */
const SHORT_LOCK_WAIT = 5;
/** ms that a statement on one locked row waits for the lock, at most. */
const MOST_LOCK_WAIT = 80;
/** ms until the locked rows are looked at again, if no statement waits for one. */
const PAUSE = 20;
/** ms for which a row counts as locked after it was last seen so. */
const QUIET = 1000;
/** Most rows that count as locked. */
const MOST_ROWS = 10_000;
/** The reason that a request on a locked row fails with. */
const LOCKED = "the row is locked by another transaction";

export class Queue {
  readonly #options: QueueOptions;
  readonly #executor: Executor;
  /**
   * The rows that other transactions have locked, as far as this process has seen, by id; those first that were tried longest
   * ago. `seenAt` is `performance.now()`, ms, when one was last seen locked.
   */
  readonly #locked = new Map<string, { readonly seenAt: number; readonly cause: unknown }>();
  /**
   * The requests that wait, in their order: those on rows that count as locked (reads only behind a write), and the others. A
   * request changes lists when a statement finds its row locked, and when the row counts as free again.
   */
  #onLocked: PendingRequest[] = [];
  #waiting: PendingRequest[] = [];
  /** How many statements are out, and how many requests are in those that are not on locked rows. */
  #statements = 0;
  #requests = 0;
  /** The rows of statements that are out: other requests on them wait, so that they are decided in order. */
  readonly #busy = new Set<string>();
  /** Whether a statement on locked rows is out, or pauses because none of its requests could be sent. */
  #isTrying = false;
  /** Whether the last statement of all was on locked rows. */
  #wasOnLocked = false;
  #scheduled = false;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#executor = new Executor(options, (...found) => this.#separate(...found));
  }

  add(pending: PendingRequest): void {
    pending.undelayed = this.#statements === 0;
    if (!this.#takeLocked(pending)) this.#waiting.push(pending);
    if (this.#statements < this.#executor.statements) this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(async () => {
      await (overdue(this.#waiting) ?? overdue(this.#onLocked));
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    const { batch } = this.#options;
    const { statements } = this.#executor;
    while (this.#statements < statements) {
      if (this.#sendLocked()) continue;
      if (this.#waiting.length === 0) return;
      // An even share for each statement: a small one costs as much as a large one, so few wait for the next.
      const share = (this.#waiting.length + this.#requests) / statements;
      if (this.#statements > 0 && this.#waiting.length < share / 2) return;
      this.#waiting = stillWaiting(this.#waiting);
      const next = select(this.#waiting, Math.min(batch, Math.max(LEAST_SHARE, Math.ceil(share))), this.#busy);
      if (next === undefined) return;
      this.#waiting = next.left;
      void this.#execute(next.batch);
    }
  }

  /** Carries out these requests. `lock`: ms for a lock, if the rows are locked. */
  async #execute(batch: readonly PendingRequest[], lock?: number): Promise<void> {
    const shared = lock === undefined ? batch.length : 0;
    this.#statements++;
    this.#requests += shared;
    for (const pending of batch) {
      pending.undelayed = false;
      for (const id of pending.ids) this.#busy.add(id);
    }
    try {
      await this.#executor.execute(batch, lock);
    } finally {
      this.#statements--;
      this.#requests -= shared;
      for (const { ids } of batch) for (const id of ids) this.#busy.delete(id);
      // After the callers that just got their replies have made their next calls.
      this.#schedule();
    }
  }

  /** Moves the requests of a statement that are on these locked rows, and those that wait behind them; returns the others. */
  #separate(requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown): PendingRequest[] {
    if (ids.size === 0) return [...requests];
    for (const id of ids) this.#noteLocked(id, cause);
    const later = this.#onLocked.splice(0);
    const others = requests.filter((pending) => !this.#takeLocked(pending));
    this.#onLocked = this.#onLocked.concat(later);
    this.#waiting = this.#waiting.filter((pending) => !this.#takeLocked(pending));
    return others;
  }

  /** Adds a request to those on locked rows. `false`: it can be sent with the others, as can a read with no write before it. */
  #takeLocked(pending: PendingRequest): boolean {
    const { ids, reads } = pending;
    const id = ids.find((id) => this.#locked.has(id));
    if (id === undefined || (reads && !this.#onLocked.some((earlier) => earlier.ids.includes(id)))) return false;
    this.#onLocked.push(pending);
    pending.undelayed = false;
    pending.failAtDeadline(LOCKED, this.#locked.get(id)?.cause);
    return true;
  }

  /** Sends requests on locked rows, one statement at a time, if some can be and a statement is left for them. */
  #sendLocked(): boolean {
    const isOthersTurn = this.#executor.statements === 1 && this.#wasOnLocked && this.#waiting.length > 0;
    this.#wasOnLocked = false;
    if (this.#onLocked.length === 0 || this.#isTrying || isOthersTurn) return false;
    this.#onLocked = stillWaiting(this.#onLocked);
    const ready = this.#onLocked.filter(({ ids }) => !ids.some((id) => this.#busy.has(id)));
    this.#wasOnLocked = ready.length > 0;
    if (this.#wasOnLocked) void this.#tryLocked(ready);
    return this.#wasOnLocked;
  }

  async #tryLocked(ready: readonly PendingRequest[]): Promise<void> {
    this.#isTrying = true;
    const begun = performance.now();
    // Counted also if nothing is sent to select them: no other statement may take its place.
    this.#statements++;
    const next = await this.#selectLocked(ready);
    this.#statements--;
    if (next === undefined) {
      this.#schedule();
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    } else {
      const sent = new Set(next.batch);
      this.#onLocked = this.#onLocked.filter((pending) => !sent.has(pending));
      await this.#execute(next.batch, next.lock);
      for (const { ids } of sent) for (const id of ids) this.#noteFree(id, begun);
    }
    const isLocked = ({ ids }: PendingRequest): boolean => ids.some((id) => this.#locked.has(id));
    this.#waiting = this.#onLocked.filter((pending) => !isLocked(pending)).concat(this.#waiting);
    this.#onLocked = this.#onLocked.filter(isLocked);
    this.#isTrying = false;
    this.#schedule();
  }

  /** Selects those whose rows are free by now; if none is, those on the row that was tried longest ago, to wait for it. */
  async #selectLocked(ready: readonly PendingRequest[]): Promise<(Selection & { readonly lock: number }) | undefined> {
    const { batch } = this.#options;
    const { statements } = this.#executor;
    const on = new Set(ready.flatMap(({ ids }) => ids));
    const rows = [...this.#locked.keys()].filter((id) => on.has(id));
    // A request on several rows never waits for a lock: meanwhile it would lock the others.
    const mayWait = statements === 1 ? [] : ready.filter(({ ids }) => ids.length === 1);
    const alone = new Set(mayWait.flatMap(({ ids }) => ids));
    const first = rows.find((id) => alone.has(id));
    const ofFirst = mayWait.filter(({ ids }) => ids[0] === first);
    let free: readonly PendingRequest[] = [];
    if (ofFirst.length < ready.length) {
      const locked = await this.#executor.lockedIds(ready);
      for (const id of rows) if (locked?.has(id) !== false) this.#noteLocked(id);
      if (locked !== undefined) free = ready.filter(({ ids }) => !ids.some((id) => locked.has(id)));
    }
    const lock = free.length === 0 ? MOST_LOCK_WAIT : statements === 1 ? SHORT_LOCK_WAIT : LOCK_WAIT;
    const next = select(free.length === 0 ? ofFirst : free, batch, this.#busy);
    return next && { ...next, lock };
  }

  /** Notes that a row was found locked, and moves it to the end. */
  #noteLocked(id: string, cause: unknown = this.#locked.get(id)?.cause): void {
    this.#locked.delete(id);
    this.#locked.set(id, { seenAt: performance.now(), cause });
    if (this.#locked.size > MOST_ROWS) this.#locked.delete(this.#locked.keys().next().value as string);
  }

  /** Notes that a statement on a row, which began then, has ended, and moves it to the end. */
  #noteFree(id: string, begun: number): void {
    const row = this.#locked.get(id);
    if (row === undefined || row.seenAt >= begun) return;
    const now = performance.now();
    this.#locked.delete(id);
    // It waited for another transaction.
    const seenAt = now - begun > LOCK_WAIT ? now : row.seenAt;
    if (now - seenAt < QUIET) this.#locked.set(id, { ...row, seenAt });
  }
}

/** The requests of one statement, and those that still wait, both in their order. */
interface Selection {
  readonly batch: PendingRequest[];
  readonly left: PendingRequest[];
}

/**
 * Selects up to `most` requests that all read or all write, by one clock. It skips requests on rows of a statement that is
 * out (`busy`) or of an earlier request that waits. `undefined`: none can be sent.
 */
function select(waiting: readonly PendingRequest[], most: number, busy: ReadonlySet<string>): Selection | undefined {
  const skipped = new Set<string>();
  const left: PendingRequest[] = [];
  const batch: PendingRequest[] = [];
  for (const [i, pending] of waiting.entries()) {
    if (batch.length === most) return { batch, left: left.concat(waiting.slice(i)) };
    const [first = pending] = batch;
    const fits = pending.reads === first.reads && pending.now === first.now;
    if (fits && !pending.ids.some((id) => skipped.has(id) || busy.has(id))) {
      batch.push(pending);
    } else {
      for (const id of pending.ids) skipped.add(id);
      left.push(pending);
    }
  }
  return batch.length === 0 ? undefined : { batch, left };
}
