/**
 * The requests that wait for a statement. One leaves immediately where fewer statements are out than may be. Those made
 * meanwhile, or in the same turn of the event loop, leave together in the next. Requests on a row that another
 * transaction has locked leave in statements of their own, which are never all of those that may be out.
 */
import { Executor, LOCK_WAIT, type QueueOptions } from "./executor.ts";
import { LOCKED, type LockedKey, LockedKeys } from "./locked-keys.ts";
import { type Kind, overdue, type PendingRequest, stillWaiting } from "./request.ts";

/** Up to so many leave together, even where another statement could be sent. */
const LEAST_SHARE = 64;
/** ms that a statement waits for a lock where other requests have to wait for it. */
const SHORT_LOCK_WAIT = 5;
/** ms that a statement on one locked row waits for the lock, at most. */
const MOST_LOCK_WAIT = 80;

export class Queue {
  readonly #locked = new LockedQueues(this);
  readonly executor: Executor;
  /** The requests on rows that are not locked. */
  waiting: PendingRequest[] = [];
  readonly out: Out = new Out();
  #scheduled = false;

  constructor(readonly options: QueueOptions) {
    this.executor = new Executor(options, this.#locked);
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
      await overdue(this.waiting);
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
  async execute({ kind, batch }: Selection, lock?: number): Promise<void> {
    for (const pending of batch) pending.undelayed = false;
    try {
      await this.out.during(batch, () => this.executor.execute(kind, batch, lock));
    } finally {
      // After the callers that just got their replies have made their next calls.
      this.schedule();
    }
  }
}

/** The requests on locked rows, in queues of their own, and what sends them. */
class LockedQueues {
  readonly #keys = new LockedKeys();
  /** Statements that are out on locked rows. */
  #out = 0;
  /** Whether the last statement that was sent is one of these. */
  #last = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `queue`: that of the others. */
  constructor(readonly queue: Queue) {}

  has(id: string): boolean {
    return this.#keys.has(id);
  }

  /** Gives the requests on these rows, and those that wait behind them, queues of their own; returns the others. */
  separate(requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown): PendingRequest[] {
    if (ids.size === 0) return [...requests];
    const now = performance.now();
    const waiting = [...ids].flatMap((id) => this.#keys.lock(id, now, cause).requests.splice(0));
    const others = requests.filter((pending) => !this.join(pending));
    for (const pending of waiting) this.join(pending);
    this.queue.waiting = this.queue.waiting.filter((pending) => !this.join(pending));
    return others;
  }

  join(pending: PendingRequest): boolean {
    const key = this.#keys.of(pending);
    if (key === undefined) return false;
    key.requests.push(pending);
    pending.failAtDeadline(LOCKED, key.cause);
    return true;
  }

  /** Sends requests, where some are due and a statement is left for them. */
  send(): boolean {
    const due = this.#due();
    this.#last = due.length > 0;
    if (this.#last) void this.#execute(due);
    return this.#last;
  }

  #due(): LockedKey[] {
    const { statements, batch, transaction } = this.queue.options;
    if (this.#keys.size === 0 || transaction || this.#out >= Math.max(1, statements - 1)) return [];
    if (statements === 1 && this.#last && this.queue.waiting.length > 0) return [];
    const now = performance.now();
    const due = this.#keys.due(now, batch).filter(({ id }) => !this.queue.out.rows.has(id));
    if (due.length === 0) this.#wake(now);
    return due;
  }

  /** Waits for the next attempt that is not due yet. */
  #wake(now: number): void {
    const at = this.#keys.nextAt(now);
    if (at === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.queue.send();
      },
      Math.ceil(at - now),
    );
  }

  /** One statement on locked rows, and what it says of their keys. */
  async #execute(due: readonly LockedKey[]): Promise<void> {
    const begun = performance.now();
    this.#out++;
    for (const key of due) {
      key.out = true;
      key.requests = stillWaiting(key.requests);
    }
    const { next, locked, alone } = await this.#select(due);
    const sent = remove(next?.batch ?? [], due);
    if (next !== undefined) await this.queue.execute(next, this.#lockWait(alone));
    const now = performance.now();
    for (const key of due) {
      key.out = false;
      if (!sent.has(key)) {
        if (locked === undefined || locked.has(key.id)) this.#keys.lock(key.id, now, key.cause);
      } else if (key.lockedAt < begun) {
        // The statement has not found its row locked.
        this.queue.waiting.unshift(...this.#keys.free(key, now, now - begun > LOCK_WAIT));
      }
      if (key.lockedAt >= begun && alone === undefined) this.#keys.pause(key, now);
    }
    this.#out--;
    this.queue.schedule();
  }

  /**
   * Selects those whose rows are free by now; where none is, those of the first key, to wait for the lock. `alone` is a key
   * whose lock was not looked at: it is the only one, and its requests wait for it. `locked`: the rows that are, if known.
   */
  async #select(due: readonly LockedKey[]): Promise<LockedSelection> {
    const { statements, batch } = this.queue.options;
    const [first] = due as [LockedKey];
    const mayWait = statements === 1 ? [] : onOneRow(first.requests);
    if (due.length === 1 && mayWait.length > 0) {
      return { next: select(mayWait, batch, this.queue.out.rows), locked: undefined, alone: first };
    }
    const requests = due.flatMap((key) => key.requests);
    const look = () => this.queue.executor.lockedIds(requests);
    const locked = requests.length === 0 ? undefined : await this.queue.out.during([], look);
    const free = locked === undefined ? [] : requests.filter(({ ids }) => !ids.some((id) => locked.has(id)));
    return { next: select(free.length > 0 ? free : mayWait, batch, this.queue.out.rows), locked, alone: undefined };
  }

  /** ms that a statement waits for a lock: longer after each attempt where it is on the row of one key alone. */
  #lockWait(alone: LockedKey | undefined): number {
    if (alone !== undefined) return Math.min(LOCK_WAIT * 2 ** alone.attempts, MOST_LOCK_WAIT);
    return this.queue.options.statements === 1 ? SHORT_LOCK_WAIT : LOCK_WAIT;
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

/** The first requests, up to one on several rows, which never waits for a lock: meanwhile it would lock the others. */
function onOneRow(requests: readonly PendingRequest[]): PendingRequest[] {
  const several = requests.findIndex(({ ids }) => ids.length > 1);
  return requests.slice(0, several < 0 ? undefined : several);
}

/** Removes the requests of a statement from the keys' queues. Returns the keys that had any of them. */
function remove(batch: readonly PendingRequest[], keys: readonly LockedKey[]): Set<LockedKey> {
  const sent = new Set(batch);
  return new Set(
    keys.filter((key) => {
      const before = key.requests.length;
      key.requests = key.requests.filter((pending) => !sent.has(pending));
      return key.requests.length < before;
    }),
  );
}

/** The requests of one statement, and those that remain in the queue, both in their order. */
interface Selection {
  readonly kind: Kind;
  readonly batch: PendingRequest[];
  readonly left: PendingRequest[];
}

/** A statement on locked rows. */
interface LockedSelection {
  readonly next: Selection | undefined;
  readonly locked: ReadonlySet<string> | undefined;
  readonly alone: LockedKey | undefined;
}

const kindOf = ({ reads, request }: PendingRequest): Kind =>
  reads ? "read" : request.kind === "reset" ? "reset" : "call";

/**
 * Selects up to `most` requests of one kind and one clock. It skips requests on rows of a statement that is out (`busy`)
 * or of an earlier request that waits. `undefined`: none can leave.
 */
function select(waiting: readonly PendingRequest[], most: number, busy: ReadonlySet<string>): Selection | undefined {
  const skipped = new Set<string>();
  const left: PendingRequest[] = [];
  const batch: PendingRequest[] = [];
  let kind: Kind | undefined;
  for (const [i, pending] of waiting.entries()) {
    if (batch.length === most) {
      left.push(...waiting.slice(i));
      break;
    }
    const own = kindOf(pending);
    const fits = kind === undefined || (own === kind && pending.now === batch[0]?.now);
    if (fits && !pending.ids.some((id) => skipped.has(id) || busy.has(id))) {
      kind = own;
      batch.push(pending);
    } else {
      for (const id of pending.ids) skipped.add(id);
      left.push(pending);
    }
  }
  return kind === undefined ? undefined : { kind, batch, left };
}
