import type { Decision } from "../limit/decision.ts";
import { RateLimitError } from "../limit/errors.ts";
import { Alarm } from "./alarm.ts";
import type { Clock } from "./clock.ts";
import { QueueError } from "./errors.ts";
import { Line, type Ticket } from "./line.ts";
import { Reserve } from "./reserve.ts";
import type { Semaphore } from "./semaphore.ts";
import { Signals } from "./signals.ts";
import type { Source } from "./source.ts";

/** What else may hold calls back: what a server told, for one. */
export interface Pace {
  /** Epoch ms from which the next call may run. */
  at(now: number): number;
  /** A call of so many tokens runs now. */
  ran(count: number, now: number): void;
}

/** What a queue is made of. */
export interface QueueParts {
  readonly clock: Clock;
  readonly source?: Source | undefined;
  readonly semaphore?: Semaphore | undefined;
  readonly pace?: Pace | undefined;
  readonly maxQueued: number;
}

/** A call, as a queue is given it. */
export interface Entry {
  readonly count: number;
  readonly priority: number;
  readonly signal?: AbortSignal | undefined;
  /** Epoch ms after which it is not to run. */
  readonly notAfter?: number | undefined;
  /** Runs it. What it returns never rejects. */
  start(): Promise<unknown>;
  reject(reason: unknown): void;
}

interface Waiting extends Entry, Ticket {}

/** Calls of one limit and key: each runs when its tokens are there, in order. One timer at most, for whoever is next. */
export class Queue {
  readonly #parts: QueueParts;
  readonly #line: Line<Waiting> = new Line();
  readonly #reserve: Reserve | undefined;
  readonly #alarm: Alarm;
  readonly #signals: Signals<Waiting> = new Signals((who, reason) => this.#giveUp(who, reason));
  readonly #pump: () => void = () => this.pump();
  #running = 0;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(parts: QueueParts) {
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock, this.#pump);
    if (parts.source !== undefined) this.#reserve = new Reserve(parts.source, parts.clock, this.#pump);
  }

  /** What else holds its calls back. */
  get pace(): Pace | undefined {
    return this.#parts.pace;
  }
  get queued(): number {
    return this.#line.length;
  }
  get running(): number {
    return this.#running;
  }
  /** Whether it may be forgotten. */
  get quiet(): boolean {
    return this.#line.length === 0 && this.#running === 0;
  }

  add(entry: Entry): void {
    const refusal = this.#refusal(entry);
    if (refusal !== undefined) {
      entry.reject(refusal.reason);
      return;
    }
    const waiting: Waiting = { ...entry, rank: -1, previous: undefined, next: undefined };
    this.#push(waiting);
    let answer: ReturnType<Reserve["ask"]>;
    try {
      answer = this.#reserve?.ask(entry.count);
    } catch (error) {
      this.#refuse(waiting, error);
      return;
    }
    if (answer instanceof Promise) {
      answer.then(
        (decision) => this.#answered(waiting, decision),
        (error) => this.#refuse(waiting, error),
      );
    } else {
      this.#answered(waiting, answer);
    }
  }

  /** Why it does not even wait. */
  #refusal({ signal }: Entry): { reason: unknown } | undefined {
    if (signal?.aborted === true) return { reason: signal.reason };
    if (this.#closed) return { reason: new QueueError("closed", "the queue takes no more calls: it was drained") };
    const { maxQueued } = this.#parts;
    if (this.#line.length < maxQueued) return undefined;
    return { reason: new QueueError("full", `the queue is full: ${maxQueued} calls wait (\`maxQueued\`)`) };
  }

  /** Everything that waits is given up. */
  clear(reason: unknown): void {
    this.#giveUp(this.#line, reason);
  }

  /** Resolves once nothing waits and nothing runs. */
  idle(): Promise<void> {
    return this.quiet ? Promise.resolve() : new Promise((resolve) => void this.#idle.push(resolve));
  }

  /** Takes no more calls; resolves once those that are in are through. */
  drain(): Promise<void> {
    this.#closed = true;
    return this.idle();
  }

  /** Runs what may run, and sets the timer for what may not yet. */
  pump(): void {
    // What it lets go runs later, so nothing comes back here meanwhile.
    while (this.#runFirst());
    this.#tellIdle();
  }

  #runFirst(): boolean {
    const { clock, semaphore, pace } = this.#parts;
    const first = this.#line.first();
    if (first === undefined) {
      this.#alarm.clear();
      return false;
    }
    const now = clock.now();
    const due = this.#reserve === undefined ? now : this.#reserve.due(first.count, now);
    // Some of its tokens are still being asked for: their answer comes back here.
    if (due === undefined) return false;
    const at = Math.max(due, pace?.at(now) ?? now);
    if (at > now) {
      this.#alarm.set(at);
      return false;
    }
    this.#alarm.clear();
    if (semaphore !== undefined && !semaphore.tryAcquire()) {
      semaphore.whenFree(this.#pump);
      return false;
    }
    this.#reserve?.use(first.count, now);
    pace?.ran(first.count, now);
    this.#run(first);
    return true;
  }

  #run(waiting: Waiting): void {
    this.#remove(waiting);
    this.#running++;
    const done = (): void => {
      this.#running--;
      this.#parts.semaphore?.release();
      this.pump();
    };
    waiting.start().then(done, done);
  }

  /** The source answered to what was asked for this call. */
  #answered(waiting: Waiting, decision: Decision | undefined): void {
    if (decision?.ok === false) {
      this.#refuse(waiting, this.#denial(decision));
      return;
    }
    const { notAfter } = waiting;
    if (notAfter !== undefined && this.#line.has(waiting)) {
      const now = this.#parts.clock.now();
      const at = Math.max(this.#reserve?.end ?? now, this.#parts.pace?.at(now) ?? now);
      if (at > notAfter) {
        const message = `the call would run ${Math.ceil(at - notAfter)} ms after it may (\`maxWait\`, \`deadline\`)`;
        this.#giveUp([waiting], new QueueError("late", message, at));
      }
    }
    // Calls that left while theirs were being asked for could not give them back.
    this.#reserve?.giveBack();
    this.pump();
  }

  /** The source does not give what was asked for this call. Where that one has run on another's tokens, the newest pays. */
  #refuse(waiting: Waiting, error: unknown): void {
    const refused = this.#line.has(waiting) ? waiting : this.#line.newest();
    this.#giveUp(refused === undefined ? [] : [refused], error);
  }

  #denial(decision: Decision): unknown {
    if (decision.degraded === true && decision.cause !== undefined) return decision.cause;
    return new RateLimitError(this.#parts.source?.name ?? "", decision);
  }

  #push(waiting: Waiting): void {
    this.#line.push(waiting);
    this.#reserve?.owe(waiting.count);
    if (waiting.signal !== undefined) this.#signals.add(waiting.signal, waiting);
  }

  #remove(waiting: Waiting): void {
    this.#line.remove(waiting);
    if (waiting.signal !== undefined) this.#signals.remove(waiting.signal, waiting);
  }

  /** Out of the line: its tokens are free for those behind it. */
  #withdraw(waiting: Waiting): void {
    this.#remove(waiting);
    this.#reserve?.owe(-waiting.count);
  }

  /** They leave without having run. */
  #giveUp(who: Iterable<Waiting>, reason: unknown): void {
    for (const waiting of who) {
      if (!this.#line.has(waiting)) continue;
      this.#withdraw(waiting);
      waiting.reject(reason);
    }
    this.#reserve?.giveBack();
    this.pump();
  }

  #tellIdle(): void {
    if (!this.quiet || this.#idle.length === 0) return;
    const told = this.#idle;
    this.#idle = [];
    for (const resolve of told) resolve();
  }
}
