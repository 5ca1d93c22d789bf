import type { Decision } from "../limit/decision.ts";
import type { Value } from "../limiter/limiter.ts";
import type { Clock } from "./clock.ts";
import { Meter } from "./meter.ts";
import { Slots } from "./slots.ts";
import type { Source } from "./source.ts";

/** How much of a later answer's delay is believed to be the clock's: the rest is the way's. */
const DRIFT = 1 / 64;

/** The tokens that one queue has taken ahead of time, on the limiter's clock, told on this one. */
export class Reserve {
  readonly #source: Source;
  readonly #clock: Clock;
  readonly #changed: () => void;
  readonly #slots: Slots = new Slots();
  readonly #meter: Meter = new Meter();
  /** Tokens that the calls in line need. */
  #owed = 0;
  /** Tokens that were asked for, and nobody answered yet. */
  #asked = 0;
  /** This clock less the limiter's, ms. */
  #offset: number | undefined;
  #giving: Promise<void> | undefined;

  constructor(source: Source, clock: Clock, changed: () => void) {
    this.#source = source;
    this.#clock = clock;
    this.#changed = changed;
  }

  /** Tokens that no call in line needs; a sum of fractions is nothing where it differs in the last digits alone. */
  get #spare(): number {
    const spare = this.#slots.tokens + this.#asked - this.#owed;
    return Math.abs(spare) <= 1e-9 * Math.max(1, this.#slots.tokens) ? 0 : spare;
  }

  /** Reserves what the calls in line need beyond what is there, at most `count`; `undefined` where that is nothing. */
  ask(count: number): Decision | undefined | Promise<Decision | undefined> {
    if (this.#giving !== undefined) return this.#giving.then(() => this.ask(count));
    if (count === 0) return undefined;
    // With this call, which is in line already.
    this.#slots.lapse(this.#spare + count, this.#clock.now() - (this.#offset ?? 0));
    const need = Math.min(count, -this.#spare);
    if (need <= 0) return undefined;
    const answer = this.#source.take(need);
    if (!(answer instanceof Promise)) return this.#take(answer, need);
    this.#asked += need;
    return answer.then(
      (decision) => {
        this.#asked -= need;
        return this.#take(decision, need);
      },
      (error) => {
        this.#asked -= need;
        throw error;
      },
    );
  }

  #take(decision: Decision, count: number): Decision {
    if (!decision.ok) return decision;
    // An answer is late by its way back, at least; so the least of them tells the clocks apart. They drift, slowly.
    const offset = this.#clock.now() - decision.now;
    const known = this.#offset ?? offset;
    this.#offset = offset <= known ? offset : known + (offset - known) * DRIFT;
    this.#slots.add(decision, count);
    this.#meter.learn(decision);
    return decision;
  }

  /** A call in line needs so many tokens more, or less. */
  owe(count: number): void {
    this.#owed += count;
  }

  /** Epoch ms, on this clock, from which the first call in line may run; `undefined` while its tokens are being asked for. */
  due(count: number, now: number): number | undefined {
    const due = this.#slots.due(count);
    if (due === undefined) return undefined;
    const offset = this.#offset ?? 0;
    const there = now - offset;
    return due > there ? due + offset : this.#meter.at(count, there) + offset;
  }

  /** Epoch ms, on this clock, at which whoever is last in line may run. */
  get end(): number | undefined {
    const { end } = this.#slots;
    return end === undefined ? undefined : end + (this.#offset ?? 0);
  }

  use(count: number, now: number): void {
    this.#slots.use(count);
    this.#meter.ran(count, now - (this.#offset ?? 0));
    this.#owed -= count;
  }

  /**
   * Gives back what no call needs, as far as it stands at the end of what is owed: whoever reserved after it has a time
   * already, and a later call would get that same time. What cannot be given back serves the next calls of this queue.
   */
  giveBack(): void {
    if (this.#giving !== undefined || this.#asked > 0 || this.#spare <= 0) return;
    if (this.#slots.unbroken(this.#spare) <= 0) return;
    const value = this.#source.value();
    if (!(value instanceof Promise)) {
      this.#give(value);
      return;
    }
    this.#giving = value
      .then((value) => this.#give(value))
      // The store failed: what was taken stays taken.
      .catch(() => undefined)
      .finally(() => {
        this.#giving = undefined;
        this.#changed();
      });
  }

  #give(value: Value): void | Promise<void> {
    if (!this.#slots.isLast(value)) return;
    const end = this.#slots.unbroken(this.#slots.tokens);
    const whole = end >= this.#slots.tokens;
    const count = Math.min(end, this.#spare);
    if (count <= 0) return;
    this.#slots.cut(count);
    // No more than the limit would hold by now, had these never been taken: the rest would have been lost.
    const room = (value.config.capacity ?? value.config.rate) - value.value - this.#owed;
    const told = room > 0 ? this.#source.give(Math.min(count, room)) : value;
    if (told instanceof Promise) return told.then((told) => this.#slots.rebase(told, whole));
    this.#slots.rebase(told, whole);
  }
}
