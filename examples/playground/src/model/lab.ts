/** One limit on two sides: each call is decided in the page, by WebAssembly, and by the server, and the results are compared. */
import type { Config, Decision } from "tidegate";
import { problem, rateLimitHeaders, statusOf } from "tidegate/http";
import { type Op, Sandbox, type SandboxCall } from "../../../server/sandbox.mjs";
import { configOf, FIRST } from "./policy.ts";
import { differences, Reading, sameRows, type Decided } from "./reading.ts";
import { type Answer, Away, Remote, type Wire } from "./remote.ts";
import { type Outcome, Timeline } from "./timeline.ts";

export interface Entry {
  number: number;
  call: SandboxCall;
  here: Decision;
  outcome: Outcome;
  /** The header fields that the page would write. */
  fields: Record<string, string>;
  /** The server's response; `undefined` until it arrives. */
  wire: Wire | undefined;
  /** The differences between the two results; `undefined` until there are two. */
  differs: string[] | undefined;
}

const NO_COUNTS = { granted: 0, reserved: 0, denied: 0, never: 0, other: 0 };
const MOST_ENTRIES = 200;
/** Traffic that is faster than the server waits for it, so that both sides show the same time. */
const MOST_PENDING = 10;
const RECONNECT_MS = 2_000;

function outcomeOf(op: Op, { ok, reserved, reason }: Decided): Outcome {
  if (op !== "limit") return "other";
  if (ok) return reserved ? "reserved" : "granted";
  return reason === undefined ? "denied" : "never";
}

const TEXTS: Record<number, string> = { 200: "OK", 202: "Accepted", 400: "Bad Request", 429: "Too Many Requests" };

/** The response that a server would send. */
function answerOf(here: Decision, written: Record<string, string>): Wire {
  const status = here.reserved ? 202 : statusOf(here);
  const fields = Object.entries(written);
  return { status, statusText: TEXTS[status] ?? "", fields, body: problem(here) ?? { decision: here } };
}

export class Lab {
  /** Built for a site without a server: `vite build --mode site`. */
  readonly alone: boolean = import.meta.env.MODE === "site";
  readonly remote = new Remote(crypto.randomUUID());
  readonly timeline = new Timeline();
  readonly #sandbox: Sandbox;
  config: Config = configOf(FIRST);
  /** Newest first. */
  entries: Entry[] = [];
  /** The page's rows after its latest call. */
  here: Reading = new Reading(this.config, []);
  /** Both sides' rows after the latest call that both have decided; while the server is offline, the page's latest. */
  sides: { readonly here: Reading; readonly there: Reading } = { here: this.here, there: this.here };
  /** Why the server is offline; `undefined` while it responds. */
  away: string | undefined = "Connecting.";
  compared = 0;
  differing = 0;
  counts = { ...NO_COUNTS };
  #numbers = 0;
  #latest = 0;
  #listeners = new Set<() => void>();

  constructor() {
    this.#sandbox = new Sandbox(this.config);
    if (!this.alone) void this.#connect();
  }

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Estimates the server's clock when the page's clock is at `clock`; never goes back. */
  now = (clock: number = Date.now()): number => {
    this.#latest = Math.max(this.#latest, Math.floor(clock + this.remote.offset));
    return this.#latest;
  };

  get busy(): boolean {
    return this.remote.pending >= MOST_PENDING;
  }

  /** One call on both sides, at the same time and with the same random number. Returns the page's result. */
  async call(op: Op, count: number, reserve: boolean): Promise<Entry> {
    const call = { op, count, reserve, now: this.now(), random: Math.random() };
    const decided = this.#sandbox.decide(call);
    const answered = this.away === undefined ? this.remote.call(call) : undefined;
    answered?.catch(() => undefined); // handled below, and may reject before that
    const here = await decided;
    this.#decided();
    const { here: reading } = this;
    const outcome = outcomeOf(op, here);
    const entry: Entry = {
      number: ++this.#numbers,
      call,
      here,
      outcome,
      fields: rateLimitHeaders(here),
      wire: this.alone ? answerOf(here, rateLimitHeaders(here)) : undefined,
      differs: undefined,
    };
    this.counts[outcome]++;
    this.timeline.count(call.now, outcome, count);
    this.#add(entry);
    if (answered !== undefined) void this.#compare(entry, reading, answered);
    return entry;
  }

  /** Sets another policy on both sides. */
  define(config: Config): void {
    const defined = this.#sandbox.define(config);
    this.config = config;
    this.#agree(defined, () => this.remote.define(config));
  }

  reset(): void {
    this.timeline.clear();
    this.counts = { ...NO_COUNTS };
    this.#agree(this.#sandbox.reset(), () => this.remote.reset());
  }

  /** What the page has done is shown, beside the server's when it has done the same. */
  #agree(done: Promise<void>, ask: () => Promise<Wire>): void {
    const { config } = this;
    const answered = this.away === undefined ? ask().catch((error: unknown) => void this.#lose(error)) : undefined;
    void done.then(async () => {
      this.#decided();
      const { here } = this;
      this.#notify();
      const answer = await answered;
      if (!answer) return;
      this.sides = { here, there: new Reading(config, (answer.body as Answer).rows) };
      this.#notify();
    });
  }

  /** Reads the page's rows. */
  #decided(): void {
    this.here = new Reading(this.config, this.#sandbox.rows());
    if (this.alone || this.away !== undefined) this.sides = { here: this.here, there: this.sides.there };
  }

  async #compare(entry: Entry, here: Reading, answered: Promise<Wire>): Promise<void> {
    const { config } = this;
    try {
      const wire = await answered;
      const { decision, rows } = wire.body as Answer;
      this.sides = { here, there: new Reading(config, rows) };
      const fields = new Map(wire.fields);
      const unlike = Object.entries(entry.fields).filter(([name, value]) => fields.get(name) !== value);
      const stored = sameRows(here.rows, rows) ? [] : ["what is stored"];
      const differs = [...differences(entry.here, decision), ...stored, ...unlike.map(([name]) => name)];
      this.compared++;
      if (differs.length > 0) this.differing++;
      this.#replace(entry, { ...entry, wire, differs });
    } catch (error) {
      this.#lose(error);
    }
  }

  #add(entry: Entry): void {
    this.entries = [entry, ...this.entries.slice(0, MOST_ENTRIES - 1)];
    this.#notify();
  }

  #replace(old: Entry, entry: Entry): void {
    this.entries = this.entries.map((other) => (other.number === old.number ? entry : other));
    this.#notify();
  }

  /** The server failed: it gets no requests until both sides can start again. */
  #lose(error: unknown): void {
    if (this.away !== undefined) return;
    this.away = error instanceof Away ? error.message : `It failed: ${(error as Error).message}`;
    this.#decided();
    this.#notify();
    setTimeout(() => void this.#connect(), RECONNECT_MS);
  }

  async #connect(): Promise<void> {
    try {
      await this.remote.reset();
      await this.remote.define(this.config);
      this.away = undefined;
      // The policy may have changed meanwhile, and decisions made only in the page are dropped.
      this.define(this.config);
      this.reset();
      this.#notify();
    } catch (error) {
      this.away = (error as Error).message;
      this.#notify();
      setTimeout(() => void this.#connect(), RECONNECT_MS);
    }
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
