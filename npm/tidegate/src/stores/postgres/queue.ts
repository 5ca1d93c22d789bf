/**
 * The requests that wait for a statement. One leaves immediately where fewer statements are out than may be. Those made
 * meanwhile, or in the same turn of the event loop, leave together in the next. Requests on a row that another
 * transaction has locked leave in statements of their own, which are never all of those that may be out.
 */
import { Executor, LOCK_WAIT, type QueueOptions } from "./executor.ts";
import { overdue, type PendingRequest, stillWaiting } from "./request.ts";

/** Up to so many leave together, even where another statement could be sent. */
const LEAST_SHARE = 64;
/** ms that a statement waits for a lock where other requests have to wait for it. */
const SHORT_LOCK_WAIT = 5;
/** ms that a statement on one locked row waits for the lock, at most. */
const MOST_LOCK_WAIT = 80;
/** ms until the locked rows are looked at again, where no statement waits for one. */
const PAUSE = 20;
/** ms for which a row counts as locked after it was last seen so. */
const QUIET = 1000;
/** Most rows that count as locked. */
const MOST_ROWS = 10_000;
/** The reason that a request on a locked row fails with. */
const LOCKED = "the row is locked by another transaction";

export class Queue {
  readonly #locked = new LockedRows(this);
  readonly executor: Executor;
  /** The requests on rows that are not locked. */
  waiting: PendingRequest[] = [];
  readonly out: Out = new Out();
  #scheduled = false;

  constructor(readonly options: QueueOptions) {
    this.executor = new Executor(options, (...found) => this.#locked.separate(...found));
  }

  add(pending: PendingRequest): void {
    pending.undelayed = this.out.statements === 0;
    if (!this.#locked.join(pending)) this.waiting.push(pending);
    if (this.out.statements < this.options.statements) this.schedule();
  }

  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(async () => {
      await (overdue(this.waiting) ?? overdue(this.#locked.requests));
      this.#scheduled = false;
      this.send();
    });
  }

  send(): void {
    const { statements, batch } = this.options;
    while (this.out.statements < statements) {
      if (this.#locked.send()) continue;
      if (this.waiting.length === 0) return;
      // An even share for each statement: a small one costs as much as a large one, so few wait for the next.
      const share = (this.waiting.length + this.out.requests) / statements;
      if (this.out.statements > 0 && this.waiting.length < share / 2) return;
      this.waiting = stillWaiting(this.waiting);
      const next = select(this.waiting, Math.min(batch, Math.max(LEAST_SHARE, Math.ceil(share))), this.out.rows);
      if (next === undefined) return;
      this.waiting = next.left;
      void this.execute(next);
    }
  }

  /** Carries out a selection. `lock`: ms for a lock, where the rows are locked. */
  async execute({ batch }: Selection, lock?: number): Promise<void> {
    for (const pending of batch) pending.undelayed = false;
    try {
      await this.out.during(batch, () => this.executor.execute(batch, lock));
    } finally {
      // After the callers that just got their replies have made their next calls.
      this.schedule();
    }
  }
}

/** A row that another transaction has locked. */
interface LockedRow {
  /** `performance.now()`, ms, when it was last seen locked. */
  readonly seenAt: number;
  readonly cause: unknown;
}

/** The requests on rows that another transaction has locked, and what sends them: one statement at a time. */
class LockedRows {
  /** By id; those first that were tried longest ago. */
  readonly #rows = new Map<string, LockedRow>();
  /** In their order. */
  requests: PendingRequest[] = [];
  /** Whether a statement of these is out, and whether the last statement of all was one. */
  #out = false;
  #last = false;
  #pause: ReturnType<typeof setTimeout> | undefined;

  /** `queue`: that of the others. */
  constructor(readonly queue: Queue) {}

  /** Takes the requests on these rows, also those that wait behind them; returns the others. */
  separate(requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown): PendingRequest[] {
    if (ids.size === 0) return [...requests];
    for (const id of ids) this.#noteLocked(id, cause);
    const later = this.requests.splice(0);
    const others = requests.filter((pending) => !this.join(pending));
    this.requests = this.requests.concat(later);
    this.queue.waiting = this.queue.waiting.filter((pending) => !this.join(pending));
    return others;
  }

  /** Takes a request on one of the rows. `false`: it can leave with others, as a read with no request before it. */
  join(pending: PendingRequest): boolean {
    const { ids, reads } = pending;
    const id = ids.find((id) => this.#rows.has(id));
    if (id === undefined || (reads && !this.requests.some((earlier) => earlier.ids.includes(id)))) return false;
    this.requests.push(pending);
    pending.undelayed = false;
    pending.failAtDeadline(LOCKED, this.#rows.get(id)?.cause);
    return true;
  }

  /** Sends requests, where some can be and a statement is left for them. */
  send(): boolean {
    const { statements } = this.queue.options;
    const { rows: busy } = this.queue.out;
    const isOthersTurn = statements === 1 && this.#last && this.queue.waiting.length > 0;
    this.#last = false;
    if (this.requests.length === 0 || this.#out || this.#pause !== undefined || isOthersTurn) return false;
    this.requests = stillWaiting(this.requests);
    const ready = this.requests.filter(({ ids }) => !ids.some((id) => busy.has(id)));
    this.#last = ready.length > 0;
    if (this.#last) void this.#execute(ready);
    return this.#last;
  }

  async #execute(ready: readonly PendingRequest[]): Promise<void> {
    this.#out = true;
    const begun = performance.now();
    const next = await this.#select(ready);
    const sent = new Set(next?.batch);
    this.requests = this.requests.filter((pending) => !sent.has(pending));
    if (next !== undefined) await this.queue.execute(next, next.lock);
    else {
      this.#pause = setTimeout(() => {
        this.#pause = undefined;
        this.queue.schedule();
      }, PAUSE);
    }
    for (const { ids } of sent) for (const id of ids) this.#noteFree(id, begun);
    const isLocked = ({ ids }: PendingRequest): boolean => ids.some((id) => this.#rows.has(id));
    this.queue.waiting = this.requests.filter((pending) => !isLocked(pending)).concat(this.queue.waiting);
    this.requests = this.requests.filter(isLocked);
    this.#out = false;
    this.queue.schedule();
  }

  /** Selects those whose rows are free by now; where none is, those on the row that was tried longest ago, to wait for it. */
  async #select(ready: readonly PendingRequest[]): Promise<(Selection & { readonly lock: number }) | undefined> {
    const { statements, batch } = this.queue.options;
    const on = new Set(ready.flatMap(({ ids }) => ids));
    const rows = [...this.#rows.keys()].filter((id) => on.has(id));
    // A request on several rows never waits for a lock: meanwhile it would lock the others.
    const mayWait = statements === 1 ? [] : ready.filter(({ ids }) => ids.length === 1);
    const alone = new Set(mayWait.flatMap(({ ids }) => ids));
    const first = rows.find((id) => alone.has(id));
    const ofFirst = mayWait.filter(({ ids }) => ids[0] === first);
    let free: readonly PendingRequest[] = [];
    if (ofFirst.length < ready.length) {
      const locked = await this.queue.out.during([], () => this.queue.executor.lockedIds(ready));
      for (const id of rows) if (locked?.has(id) !== false) this.#noteLocked(id);
      if (locked !== undefined) free = ready.filter(({ ids }) => !ids.some((id) => locked.has(id)));
    }
    const lock = free.length === 0 ? MOST_LOCK_WAIT : statements === 1 ? SHORT_LOCK_WAIT : LOCK_WAIT;
    const next = select(free.length === 0 ? ofFirst : free, batch, this.queue.out.rows);
    return next && { ...next, lock };
  }

  /** Notes that a row was found locked, and moves it to the end. */
  #noteLocked(id: string, cause: unknown = this.#rows.get(id)?.cause): void {
    this.#rows.delete(id);
    this.#rows.set(id, { seenAt: performance.now(), cause });
    if (this.#rows.size > MOST_ROWS) this.#rows.delete(this.#rows.keys().next().value as string);
  }

  /** Notes that a statement on a row, which began then, has ended, and moves it to the end. */
  #noteFree(id: string, begun: number): void {
    const row = this.#rows.get(id);
    if (row === undefined || row.seenAt >= begun) return;
    const now = performance.now();
    this.#rows.delete(id);
    // It waited for another transaction.
    const seenAt = now - begun > LOCK_WAIT ? now : row.seenAt;
    if (now - seenAt < QUIET) this.#rows.set(id, { ...row, seenAt });
  }
}

/** The statements that are out. */
class Out {
  statements = 0;
  /** The requests in them. */
  requests = 0;
  /** The rows of these: other requests on them wait, so that they are decided in order. */
  readonly rows: Set<string> = new Set();

  /** Counts a statement with these requests until it ends. */
  async during<T>(batch: readonly PendingRequest[], send: () => Promise<T>): Promise<T> {
    this.statements++;
    this.requests += batch.length;
    for (const { ids } of batch) for (const id of ids) this.rows.add(id);
    try {
      return await send();
    } finally {
      this.statements--;
      this.requests -= batch.length;
      for (const { ids } of batch) for (const id of ids) this.rows.delete(id);
    }
  }
}

/** The requests of one statement, and those that remain in the queue, both in their order. */
interface Selection {
  readonly batch: PendingRequest[];
  readonly left: PendingRequest[];
}

/**
 * Selects up to `most` requests that all read or all write, by one clock. It skips requests on rows of a statement that is
 * out (`busy`) or of an earlier request that waits. `undefined`: none can leave.
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
