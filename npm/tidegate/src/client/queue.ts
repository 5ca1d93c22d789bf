/**
 * The queue of one key. Its calls run in order, each when its tokens are due: waiting.ts has the order, reserve.ts the
 * tokens that are reserved for them.
 */
import { throwIfAborted, whenAborted } from "../limit/abort.ts";
import { isPromise } from "../limit/realms.ts";
import type { Decision } from "../limit/decision.ts";
import { hasCode, RateLimitError } from "../limit/errors.ts";
import { Alarm, type Clock } from "./clock.ts";
import { Reserve } from "./reserve.ts";
import type { Semaphore } from "./semaphore.ts";
import type { Source } from "./source.ts";
import { type Waiting, WaitingCalls } from "./waiting.ts";

/**
 * A call that a queue refused or gave up: the queue was `"full"`, was drained (`"closed"`), or the call would have run
 * after its `maxWait` (`"late"`).
 */
export class QueueError extends Error {
  override readonly name = "QueueError";
  readonly code = "TIDEGATE_QUEUE";
  readonly reason: "full" | "closed" | "late";
  /** Epoch ms at which the call would have run at the earliest, for `"late"`. */
  readonly at: number | undefined;

  constructor(reason: QueueError["reason"], message: string, at?: number) {
    super(message);
    this.reason = reason;
    this.at = at;
  }
}

/** Whether it is a {@link QueueError}, by its code: copies of the package and other realms count. */
export const isQueueError = (error: unknown): error is QueueError => hasCode(error, "TIDEGATE_QUEUE");

/** What delays calls besides their tokens, such as a server's limits. */
export interface Pace {
  /** Epoch ms from which the next call may run. */
  at(now: number): number;
  /** Records that a call runs now. */
  ran(now: number): void;
}

/** What bounds how many calls run, such as a semaphore. */
export type Places = Pick<Semaphore, "tryAcquire" | "release" | "whenFree">;

export interface QueueParts {
  readonly clock: Clock;
  /** Where the tokens of calls come from; without one they need none. */
  readonly source?: Source | undefined;
  readonly semaphore?: Places | undefined;
  readonly pace?: Pace | undefined;
  /** Most calls that wait. */
  readonly maxQueued: number;
}

interface CallSettings {
  readonly count: number;
  readonly priority: number;
  readonly signal?: AbortSignal | undefined;
  /** Epoch ms after which the call is not to run. */
  readonly notAfter: number;
  /** For a retry, the number of its call. It was accepted before, so a queue that is full or drained takes it. */
  readonly retryOf?: number | undefined;
}

interface QueuedCall extends CallSettings, Waiting {
  /** Runs it. The promise never rejects. */
  start(): Promise<unknown>;
  reject(reason: unknown): void;
  /** No longer waits for its signal. */
  forget?: () => void;
}

/** Calls of one limit and key. There is at most one timer, for the next call. */
export class Queue<Parts extends QueueParts = QueueParts> {
  readonly parts: Parts;
  readonly #waiting: WaitingCalls<QueuedCall> = new WaitingCalls();
  readonly #reserve: Reserve | undefined;
  readonly #alarm: Alarm;
  readonly #giveUp = (calls: Iterable<QueuedCall>, reason: unknown): void => {
    this.#drop(calls, reason);
    this.#pump();
  };
  /** Runs the calls that are due, and sets the timer for the next one. */
  readonly #pump = (): void => {
    // A call that is released here runs later, so nothing calls back meanwhile.
    while (this.#runFirst());
    if (!this.isIdle) return;
    for (const resolve of this.#whenIdle.splice(0)) resolve();
  };
  /** Calls that run. */
  running = 0;
  #closed = false;
  readonly #whenIdle: (() => void)[] = [];

  constructor(parts: Parts) {
    this.parts = parts;
    this.#alarm = new Alarm(parts.clock, this.#pump);
    if (parts.source !== undefined) this.#reserve = new Reserve(parts.source, parts.clock, this.#pump);
  }

  get queued(): number {
    return this.#waiting.length;
  }
  /** Whether no call waits or runs, and the tokens of those that were given up are returned. */
  get isIdle(): boolean {
    return this.#waiting.length === 0 && this.running === 0 && this.#reserve?.isSettled !== false;
  }

  /**
   * Queues a call and resolves with what `work` returns. `work` runs as the continuation of a promise made here: never
   * synchronously, in its caller's async context, and in the queue's order.
   */
  run<R>(settings: CallSettings, work: () => R): Promise<Awaited<R>> {
    return new Promise((resolve, reject) => {
      this.#admit(settings);
      let go: () => void = () => undefined;
      const turn = new Promise<void>((released) => {
        go = released;
      });
      const running = turn.then(work).then(resolve as (value: unknown) => void, reject);
      const start = (): Promise<void> => {
        go();
        return running;
      };
      this.#add({ ...settings, start, reject, rank: -1, previous: undefined, next: undefined });
    });
  }

  /** Throws if the queue refuses a call. */
  #admit({ signal, retryOf }: CallSettings): void {
    throwIfAborted(signal);
    if (retryOf !== undefined) return;
    if (this.#closed) throw new QueueError("closed", "the queue takes no more calls: it was drained");
    const { maxQueued } = this.parts;
    if (this.#waiting.length < maxQueued) return;
    throw new QueueError("full", `the queue is full: ${maxQueued} calls wait (\`maxQueued\`)`);
  }

  #add(call: QueuedCall): void {
    this.#waiting.push(call);
    this.#reserve?.owe(call.count);
    if (call.signal !== undefined) call.forget = whenAborted(call.signal, this.#giveUp, call);
    let reserved: ReturnType<Reserve["take"]>;
    try {
      reserved = this.#reserve?.take(call.count);
    } catch (error) {
      this.#refuse(call, error);
      return;
    }
    if (isPromise(reserved)) {
      reserved.then(
        (decision) => this.#decided(call, decision, true),
        (error) => this.#refuse(call, error),
      );
    } else {
      this.#decided(call, reserved, false);
    }
  }

  /** Rejects every queued call. */
  clear(reason: unknown): void {
    this.#giveUp(this.#waiting, reason);
  }

  /** Resolves once it is idle. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#whenIdle.push(resolve);
      this.#pump();
    });
  }

  /** Refuses further calls; resolves once the queued ones have ended. */
  drain(): Promise<void> {
    this.#closed = true;
    return this.idle();
  }

  #runFirst(): boolean {
    const { clock, semaphore, pace } = this.parts;
    const first = this.#waiting.first();
    if (first === undefined) {
      this.#alarm.clear();
      return false;
    }
    const now = clock.now();
    const due = this.#reserve === undefined ? now : this.#reserve.due(first.count, now);
    // Its tokens are still being reserved: the decision calls `#pump` again.
    if (due === undefined) return false;
    const at = Math.max(due, pace?.at(now) ?? now);
    if (at > now) {
      if (this.#isLate(first, at)) return true;
      this.#alarm.set(at);
      return false;
    }
    this.#alarm.clear();
    if (semaphore !== undefined && !semaphore.tryAcquire()) {
      if (this.#isLate(first, now + 1)) return true;
      semaphore.whenFree(this.#pump);
      if (first.notAfter < Infinity) this.#alarm.set(first.notAfter);
      return false;
    }
    this.#reserve?.use(first.count, now);
    pace?.ran(now);
    this.#remove(first);
    this.running++;
    const done = (): void => {
      this.running--;
      semaphore?.release();
      this.#pump();
    };
    first.start().then(done, done);
    return true;
  }

  /** The source has decided on the tokens for this call. `waited`: the call has waited for that. */
  #decided(call: QueuedCall, decision: Decision | undefined, waited: boolean): void {
    if (decision?.ok === false) {
      this.#refuse(call, decision.cause ?? new RateLimitError(this.parts.source?.name ?? "", decision));
      return;
    }
    // If others overtake it afterwards, that is checked when it is the first.
    if (call.notAfter < Infinity) {
      const { clock, pace } = this.parts;
      const now = clock.now();
      const at = Math.max(this.#reserve?.end(this.#waiting.tokensBehind(call)) ?? now, pace?.at(now) ?? now);
      // One that can run immediately is in time, even if the clock has moved on since it was made.
      if (waited || at > now) this.#isLate(call, at);
    }
    // If a call was given up while its tokens were being reserved, they can be returned only now.
    this.#reserve?.giveBack();
    this.#pump();
  }

  /**
   * Rejects the call whose reservation failed. If it was given up before, other calls count on its tokens: then the newest
   * calls are rejected, until the rest have enough.
   */
  #refuse(call: QueuedCall, error: unknown): void {
    this.#giveUp([call], error);
    while ((this.#reserve as Reserve).isShort) {
      const newest = this.#waiting.newest();
      if (newest === undefined) return;
      this.#giveUp([newest], error);
    }
  }

  /** Rejects the call if it would run after it may. */
  #isLate(call: QueuedCall, at: number): boolean {
    const { notAfter } = call;
    if (at <= notAfter) return false;
    const message = `the call would run ${Math.ceil(at - notAfter)} ms late (\`maxWait\`, \`deadline\`)`;
    this.#drop([call], new QueueError("late", message, at));
    return true;
  }

  #remove(call: QueuedCall): void {
    this.#waiting.remove(call);
    call.forget?.();
  }

  /** Rejects calls that have not run; their tokens serve later calls. */
  #drop(calls: Iterable<QueuedCall>, reason: unknown): void {
    for (const call of calls) {
      if (!this.#waiting.has(call)) continue;
      this.#remove(call);
      this.#reserve?.owe(-call.count);
      call.reject(reason);
    }
    this.#reserve?.giveBack();
  }
}
