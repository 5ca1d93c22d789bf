/** Limits of a server on a page: their states, and the offset of its clock. */
import { check, checkObject, functionThat } from "../limit/checks.ts";
import type { Config } from "../limit/config.ts";
import type { State } from "../limit/decision.ts";
import { delayFor } from "../limit/duration.ts";
import { InputError } from "../limit/errors.ts";
import { project } from "../limit/evaluate.ts";
import { ClockOffset, EXCHANGES } from "./clock-offset.ts";

/** A limit's state on the server: `{ ...(await limits.getValue(name, { key })), now: Date.now() }`. */
export interface ServerState extends State {
  /** The complete limit, as `getValue` returns it. */
  config: Config;
  /** Epoch ms on the server when it read the state. */
  now: number;
}

/** What {@link RemoteLimits.learn} takes: a {@link ServerState}, or a decision of the server's, whose limit is known by then. */
export interface Learned extends State {
  /** The limit's numbers; by default those that are known. */
  config?: Config | undefined;
  /** Epoch ms on the server's clock. */
  now: number;
  /** A decision's `reason`. */
  reason?: string | undefined;
  /** Whether the decision was made without the store; its numbers are then not learned. */
  degraded?: boolean | undefined;
}

interface Entry {
  state: ServerState | undefined;
  error: unknown;
  /** The instant of the server's clock at which each is called next, if nothing changes before. */
  readonly watchers: Map<() => void, number>;
  running: Promise<void> | undefined;
  again: boolean;
}

const LOAD = /* @__PURE__ */ functionThat("a function that loads a limit from the server");
/** What a state must be. */
export const STATE = "{ value, ts, config, now }, as a server sends it";
/** A state that is older by more than this is no late response: the server's clock was set back. */
const OVERTAKEN_MS = 60_000;

/** Limits that a server keeps, as this page has them. Made by {@link remoteLimits}; one for a page. */
export class RemoteLimits {
  readonly #load: (name: string) => ServerState | Promise<ServerState>;
  readonly #clock: ClockOffset = new ClockOffset();
  readonly #entries = new Map<string, Entry>();
  #watchers = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** When the timer is due, by `performance.now`. */
  #timerAt = Infinity;

  constructor(load: (name: string) => ServerState | Promise<ServerState>) {
    check("load", load, LOAD);
    this.#load = load;
  }

  /** The newest state from the server. */
  state(name: string): ServerState | undefined {
    return this.#entries.get(name)?.state;
  }

  /** Why the last request failed; `undefined` after the next response. */
  error(name: string): unknown {
    return this.#entries.get(name)?.error;
  }

  /** Epoch ms on the server, estimated. */
  now(): number {
    return this.#clock.now();
  }

  /** The instant on this machine's clock at which it is `at` on the server's. */
  here(at: number): number {
    return this.#clock.here(at);
  }

  /**
   * Takes the state from another response of the server, such as a decision in its body, which saves a request. State
   * that is older than the present one is ignored, and so is a decision that read no state: a denial for its size, or one in
   * place of a store that failed.
   */
  learn(name: string, learned: Learned): void {
    const entry = this.#entry(name);
    checkObject("learned", learned, STATE);
    const config = learned.config ?? entry.state?.config;
    if (config === undefined || learned.reason === "exceeds capacity" || learned.degraded === true) return;
    this.#take(entry, { ...learned, config });
    this.#clock.heard(learned.now);
    this.#notify(name);
  }

  /** Loads the state. If a request is already in flight, another one follows it, as the first may be too early. Never rejects. */
  refresh(name: string): Promise<void> {
    const entry = this.#entry(name);
    entry.again = true;
    entry.running ??= this.#request(name, entry);
    return entry.running;
  }

  /** Calls `changed` after each change, until the returned function is called. The first watcher of a limit loads it. */
  watch(name: string, changed: () => void): () => void {
    const entry = this.#entry(name);
    entry.watchers.set(changed, Infinity);
    if (this.#watchers++ === 0) this.#listen("addEventListener");
    if (entry.watchers.size === 1) entry.running ??= this.#request(name, entry);
    return () => {
      if (!entry.watchers.delete(changed)) return;
      if (--this.#watchers === 0) {
        this.#listen("removeEventListener");
        clearTimeout(this.#timer);
        this.#timerAt = Infinity;
      }
    };
  }

  /** Calls a watcher at an instant of the server's clock, unless it left. One timer is for all: those of one instant render together. */
  wake(name: string, changed: () => void, at: number): void {
    const entry = this.#entry(name);
    if (!entry.watchers.has(changed)) return;
    entry.watchers.set(changed, at);
    const delay = at - this.now();
    const timerAt = performance.now() + delay;
    if (timerAt >= this.#timerAt) return;
    clearTimeout(this.#timer);
    this.#timerAt = timerAt;
    this.#timer = setTimeout(() => {
      this.#timerAt = Infinity;
      this.#measureAgain();
      for (const limit of this.#entries.keys()) this.#notify(limit, this.now());
    }, delayFor(delay));
  }

  /** Measures the clock again after the machine slept or its time was set; returns whether it was. */
  #measureAgain(): boolean {
    const jumped = this.#clock.jumped();
    if (jumped) this.#refreshWatched();
    return jumped;
  }

  #entry(name: string): Entry {
    let entry = this.#entries.get(name);
    if (entry === undefined) {
      if (typeof name !== "string") throw new InputError("name", "the name of a limit", name);
      entry = { state: undefined, error: undefined, watchers: new Map(), running: undefined, again: false };
      this.#entries.set(name, entry);
    }
    return entry;
  }

  async #request(name: string, entry: Entry): Promise<void> {
    let left = EXCHANGES;
    do {
      entry.again = false;
      left--;
      const sentAt = performance.now();
      try {
        // Asynchronous even if `load` throws, so that `running` is set before it is cleared.
        const state = await (async () => this.#load(name))();
        this.#take(entry, state);
        // Across a jump the round trip measures nothing: another one follows.
        if (!this.#measureAgain()) this.#clock.exchanged(state.now, performance.now() - sentAt);
        entry.error = undefined;
      } catch (error) {
        entry.error = error;
        left = 0;
      }
      this.#notify(name);
    } while (entry.again || (left > 0 && this.#clock.isRough()));
    entry.running = undefined;
  }

  /** Keeps the state, if it is newer. Projecting it checks it: an invalid one throws an `InputError`. */
  #take(entry: Entry, state: ServerState): void {
    checkObject("state", state, STATE);
    const { value, ts, config, now } = state;
    project({ value, ts }, config, now);
    const behind = (entry.state?.now ?? 0) - now;
    if (behind <= 0 || behind > OVERTAKEN_MS) entry.state = { value, ts, config, now };
  }

  /**
   * Calls the watchers whose instant has come, by default all. The error of one is reported as one of an event's listener is: it
   * stops nothing else.
   */
  #notify(name: string, now = Infinity): void {
    for (const [changed, at] of [...this.#entry(name).watchers]) {
      try {
        if (at > now) this.wake(name, changed, at);
        else changed();
      } catch (error) {
        queueMicrotask(() => {
          throw error;
        });
      }
    }
  }

  #listen(how: "addEventListener" | "removeEventListener"): void {
    globalThis.document?.[how]?.("visibilitychange", this.#shown);
    globalThis.window?.[how]?.("online", this.#refreshWatched);
  }

  /** The page is visible again: timers were paused, and another tab may have spent tokens. */
  readonly #shown = (): void => {
    this.#clock.jumped();
    if (document.visibilityState === "visible") this.#refreshWatched();
  };

  readonly #refreshWatched = (): void => {
    for (const [name, entry] of this.#entries) {
      if (entry.watchers.size === 0) continue;
      this.#notify(name);
      entry.running ??= this.#request(name, entry);
    }
  };
}

/**
 * Limits that a server keeps, for {@link useRateLimit}: one for a page, made outside of components. `load` requests
 * a limit's two numbers, its config and the server's clock; it is called when a component first shows the limit, when the
 * page becomes visible or online again, and after the machine slept or its time was set. On a slow connection two more calls
 * follow then, to measure the server's clock. Between these the numbers are projected, without requests.
 *
 * ```ts
 * // In the page.
 * const limits = remoteLimits((name) => fetch(`/limits/${name}`).then((response) => response.json()));
 * // On the server, for GET /limits/:name
 * return Response.json({ ...(await limits.getValue(name, { key: userId })), now: Date.now() });
 * ```
 *
 * A limit has one request at a time. One that may hang needs a timeout, such as `fetch(…, { signal: AbortSignal.timeout(10_000) })`.
 *
 * While rendering on a server it loads and stores nothing, so all requests can share it.
 */
export function remoteLimits(load: (name: string) => ServerState | Promise<ServerState>): RemoteLimits {
  return new RemoteLimits(load);
}
