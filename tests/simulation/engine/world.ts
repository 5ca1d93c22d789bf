/**
 * Virtual time. The package runs unchanged: the clocks, timers and random numbers that it reads are those of the process
 * whose event is running. All promises that an event settles run before the next event begins.
 */
import { type Event, Events, type Process } from "./events.ts";
import { type Random, stream } from "./random.ts";

export const MS = 1_000;
export const SECOND = 1_000_000;
/** What a correct clock shows at virtual time 0, ms since the Unix epoch. */
export const EPOCH_MS = 1_700_000_000_000;

/** Node.js runs ticks and promises after each of the immediates of one turn. */
const IMMEDIATES = 512;

const real = { setImmediate: globalThis.setImmediate, Date: Date.now, random: Math.random };

/** What `setTimeout` returns. */
class Timer {
  readonly event: Event;
  constructor(event: Event) {
    this.event = event;
  }
  ref(): this {
    return this;
  }
  unref(): this {
    return this;
  }
  hasRef(): boolean {
    return true;
  }
}

export class World {
  /** µs since the beginning. */
  now = 0;
  /** The number of events that have run. */
  events = 0;
  readonly #events = new Events();
  readonly #random: Random;
  #process: Process | undefined;

  constructor(seed: number) {
    this.#random = stream(seed, "package");
  }

  /** Runs `run` at a virtual time, in a process or outside of all. */
  at(us: number, process: Process | undefined, run: () => void | Promise<void>): Event {
    return this.#events.add(us, process, run);
  }

  after(us: number, process: Process | undefined, run: () => void | Promise<void>): Event {
    return this.#events.add(this.now + us, process, run);
  }

  /** Runs `run` in the process: with its clocks, and with timers that end with it. */
  within<T>(process: Process, run: () => T): T {
    const before = this.#process;
    this.#process = process;
    try {
      return run();
    } finally {
      this.#process = before;
    }
  }

  /** Runs until there are no more events. */
  run(): Promise<void> {
    return new Promise((resolve, reject) => {
      let restore = this.#install();
      // Immediates of this turn that have not run yet.
      let left = 0;
      let state: "running" | "outside" | "over" = "running";
      const turn = (): void => {
        left = IMMEDIATES;
        for (let i = 0; i < IMMEDIATES; i++) real.setImmediate(step);
      };
      const end = (settle: () => void): void => {
        state = "over";
        restore();
        settle();
      };
      const step = (): void => {
        left--;
        if (state === "running") {
          try {
            if (!this.#step(outside)) end(resolve);
          } catch (error) {
            end(() => reject(error));
          }
        }
        if (left === 0 && state === "running") turn();
      };
      // Real work, such as a database in this process: virtual time stops until it is done.
      const outside = (work: Promise<void>): void => {
        state = "outside";
        restore();
        const back = (): void => {
          restore = this.#install();
          state = "running";
          if (left === 0) turn();
        };
        work.then(back, (error: unknown) => end(() => reject(error)));
      };
      turn();
    });
  }

  /** Runs the next event. Returns whether there was one. */
  #step(outside: (work: Promise<void>) => void): boolean {
    const event = this.#events.next();
    if (event === undefined) return false;
    this.now = event.at;
    this.#process = event.process;
    this.events++;
    const work = event.run?.();
    if (work !== undefined) outside(work);
    return true;
  }

  /** Replaces the host's clocks, timers and random numbers by virtual ones; returns a function that restores them. */
  #install(): () => void {
    const host = globalThis as Record<string, unknown>;
    const names = ["setTimeout", "clearTimeout", "setInterval", "setImmediate", "clearInterval"];
    const saved = names.map((name) => [name, host[name]] as const);
    host["setTimeout"] = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
      new Timer(this.after(Math.max(Math.trunc(ms), 1) * MS, this.#process, () => run(...args)));
    host["clearTimeout"] = (timer: unknown) => {
      if (timer instanceof Timer) timer.event.run = undefined;
    };
    host["setImmediate"] = (run: (...args: unknown[]) => void, ...args: unknown[]) =>
      this.after(0, this.#process, () => run(...args));
    host["setInterval"] = () => {
      throw new Error("the package promises to start no intervals");
    };
    Date.now = () => this.#process?.wall(this.now) ?? Math.floor(EPOCH_MS + this.now / MS);
    Object.defineProperty(performance, "now", {
      configurable: true,
      value: () => this.#process?.steady(this.now) ?? this.now / MS,
    });
    Math.random = this.#random;
    return () => {
      for (const [name, value] of saved) host[name] = value;
      Date.now = real.Date;
      Math.random = real.random;
      Reflect.deleteProperty(performance, "now");
    };
  }
}
