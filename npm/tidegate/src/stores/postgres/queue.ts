/**
 * The requests that wait for a statement. One leaves immediately where fewer statements are out than may be; those made
 * meanwhile, or in the same turn of the event loop, leave together in the next. Requests on a row that another
 * transaction has locked leave in statements of their own, which are never all of those that may be out.
 */
import { Executor, LOCK_WAIT, type QueueOptions } from "./executor.ts";
import { LOCKED, type LockedKey, LockedKeys } from "./locked-keys.ts";
import { type Kind, type PendingRequest, stillWaiting } from "./request.ts";

/** Up to so many leave together, even where another statement could be sent. */
const LEAST_SHARE = 64;
/** ms that a statement waits for a lock where other requests have to wait for it. */
const SHORT_LOCK_WAIT = 5;
/** ms that a statement on one locked row waits for the lock, at most. */
const MOST_LOCK_WAIT = 80;

export class Queue {
  readonly #options: QueueOptions;
  readonly #executor: Executor;
  #waiting: PendingRequest[] = [];
  /** Statements that are out, and the requests in them. */
  #out = 0;
  #outRequests = 0;
  #scheduled = false;
  /** The rows of the statements that are out: other requests on them wait, so that they are decided in order. */
  readonly #busy = new Set<string>();
  readonly #locked = new LockedKeys();
  /** Statements that are out on locked rows. */
  #lockedOut = 0;
  #lockedLast = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: QueueOptions) {
    this.#options = options;
    this.#executor = new Executor(options, {
      has: (id) => this.#locked.has(id),
      separate: (requests, ids, cause) => this.#separate(requests, ids, cause),
    });
  }

  add(pending: PendingRequest): void {
    pending.undelayed = this.#out === 0;
    if (this.#locked.size === 0 || !this.#joinLocked(pending)) this.#waiting.push(pending);
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
      if (this.#sendLocked()) continue;
      this.#lockedLast = false;
      if (this.#waiting.length === 0) return;
      // An even share for each statement: a small one costs as much as a large one, so few wait for the next.
      const share = (this.#waiting.length + this.#outRequests) / statements;
      if (this.#out > 0 && this.#waiting.length < share / 2) return;
      this.#waiting = stillWaiting(this.#waiting);
      const next = select(this.#waiting, Math.min(batch, Math.max(LEAST_SHARE, Math.ceil(share))), this.#busy);
      if (next === undefined) return;
      this.#waiting = next.left;
      void this.#execute(next);
    }
  }

  async #execute({ kind, batch }: Selection, wait?: number): Promise<void> {
    for (const pending of batch) {
      pending.undelayed = false;
      for (const id of pending.ids) this.#busy.add(id);
    }
    this.#out++;
    this.#outRequests += batch.length;
    try {
      await this.#executor.execute(kind, batch, wait);
    } finally {
      this.#out--;
      this.#outRequests -= batch.length;
      for (const { ids } of batch) for (const id of ids) this.#busy.delete(id);
      // After the callers that just got their replies have made their next calls.
      this.#schedule();
    }
  }

  /** Gives the requests on these rows, and those that wait behind them, queues of their own; returns the others. */
  #separate(requests: readonly PendingRequest[], ids: ReadonlySet<string>, cause: unknown): PendingRequest[] {
    if (ids.size === 0) return [...requests];
    const now = performance.now();
    const waiting = [...ids].flatMap((id) => this.#locked.lock(id, now, cause).requests.splice(0));
    const others = requests.filter((pending) => !this.#joinLocked(pending));
    for (const pending of waiting) this.#joinLocked(pending);
    this.#waiting = this.#waiting.filter((pending) => !this.#joinLocked(pending));
    return others;
  }

  #joinLocked(pending: PendingRequest): boolean {
    const key = this.#locked.of(pending);
    if (key === undefined) return false;
    key.requests.push(pending);
    pending.failAtDeadline(LOCKED, key.cause);
    return true;
  }

  /** Sends requests on locked rows, where some are due and a statement is left for them. */
  #sendLocked(): boolean {
    const { statements, batch, transaction } = this.#options;
    if (this.#locked.size === 0 || transaction || this.#lockedOut >= Math.max(1, statements - 1)) return false;
    if (statements === 1 && this.#lockedLast && this.#waiting.length > 0) return false;
    const now = performance.now();
    const due = this.#locked.due(now, batch).filter(({ id }) => !this.#busy.has(id));
    if (due.length === 0) {
      this.#wake(now);
      return false;
    }
    this.#lockedLast = true;
    void this.#executeLocked(due);
    return true;
  }

  /** Waits for the next attempt that is not due yet. */
  #wake(now: number): void {
    const at = this.#locked.nextAt(now);
    if (at === undefined || this.#timer !== undefined) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#send();
      },
      Math.ceil(at - now),
    );
  }

  /** Those whose rows are free by now leave together. Where none is, those of the first key wait for the lock. */
  async #executeLocked(due: readonly LockedKey[]): Promise<void> {
    const { statements, batch } = this.#options;
    const begun = performance.now();
    this.#lockedOut++;
    for (const key of due) {
      key.out = true;
      key.requests = stillWaiting(key.requests);
    }
    const requests = due.flatMap((key) => key.requests);
    const first = due[0] as LockedKey;
    // A request on several rows never waits for a lock: meanwhile it would lock the others.
    const several = first.requests.findIndex(({ ids }) => ids.length > 1);
    const alone = statements === 1 ? [] : first.requests.slice(0, several < 0 ? undefined : several);
    const patient = due.length === 1 && alone.length > 0;
    this.#out++;
    const locked = requests.length === 0 || patient ? undefined : await this.#executor.lockedIds(requests);
    this.#out--;
    const free = locked === undefined ? [] : requests.filter(({ ids }) => !ids.some((id) => locked.has(id)));
    const next = select(free.length > 0 ? free : alone, batch, this.#busy);
    const sent = new Set(next?.batch);
    const tried = new Set<LockedKey>();
    if (next !== undefined) {
      for (const key of due) {
        const rest = key.requests.filter((pending) => !sent.has(pending));
        if (rest.length < key.requests.length) tried.add(key);
        key.requests = rest;
      }
      const short = statements === 1 ? SHORT_LOCK_WAIT : LOCK_WAIT;
      await this.#execute(next, patient ? Math.min(LOCK_WAIT * 2 ** first.attempts, MOST_LOCK_WAIT) : short);
    }
    const now = performance.now();
    for (const key of due) {
      key.out = false;
      if (tried.has(key) && key.lockedAt < begun) {
        this.#waiting.unshift(...this.#locked.free(key, now, now - begun > LOCK_WAIT));
      } else if (!tried.has(key) && (locked === undefined || locked.has(key.id))) {
        this.#locked.lock(key.id, now, key.cause);
      }
      if (key.lockedAt >= begun && (statements === 1 || due.length > 1 || alone.length === 0)) {
        this.#locked.pause(key, now);
      }
    }
    this.#lockedOut--;
    this.#schedule();
  }
}

/** The requests of one statement, and those that remain in the queue, both in their order. */
interface Selection {
  readonly kind: Kind;
  readonly batch: PendingRequest[];
  readonly left: PendingRequest[];
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
