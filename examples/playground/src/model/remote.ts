/** The server's side: one request at a time, in order, because the order is part of the decision. */
import type { Config } from "tidegate";
import type { SandboxCall } from "../../../server/sandbox.mjs";
import type { Row, Decided } from "./reading.ts";

/** A response as it came: the status, every field, the body. */
export interface Wire {
  status: number;
  statusText: string;
  fields: [name: string, value: string][];
  body: unknown;
}

/** The body of an answer to a call, whatever its status: see `examples/server/visitors.mjs`. */
export interface Answer {
  decision: Decided;
  rows: Row[];
}

/** The names as they are written; a browser returns them in lower case. */
const NAMES = ["RateLimit", "RateLimit-Policy", "Retry-After", "Content-Type", "Content-Length", "Date", "Connection"];
const written = new Map(NAMES.map((name) => [name.toLowerCase(), name]));

/** The answer to a request that was sent, or was not: the server is away, or has forgotten this page. */
export class Away extends Error {}

interface Job {
  run: () => Promise<unknown>;
  give: (answer: never) => void;
  fail: (error: unknown) => void;
}

export class Remote {
  readonly #path: string;
  #jobs: Job[] = [];
  #busy = false;
  /** The server's clock less this one's, in ms, by the exchange that took the least time, and that time. */
  offset = 0;
  roundTrip = Number.POSITIVE_INFINITY;

  constructor(id: string) {
    this.#path = `/api/sandbox?id=${id}`;
  }

  /** Requests that wait for those before them. */
  get pending(): number {
    return this.#jobs.length;
  }

  define = (config: Config): Promise<Wire> => this.#enqueue("PUT", config);
  reset = (): Promise<Wire> => this.#enqueue("DELETE");
  call = (call: SandboxCall): Promise<Wire> => this.#enqueue("POST", call);

  #enqueue(method: string, body?: unknown): Promise<Wire> {
    return new Promise((give, fail) => {
      this.#jobs.push({ run: () => this.#exchange(method, body), give, fail });
      void this.#work();
    });
  }

  async #work(): Promise<void> {
    if (this.#busy) return;
    this.#busy = true;
    for (let job = this.#jobs[0]; job !== undefined; job = this.#jobs[0]) {
      try {
        const answer = await job.run();
        this.#jobs.shift();
        job.give(answer as never);
      } catch (error) {
        // What comes after it would be decided on another state than here.
        for (const { fail } of this.#jobs.splice(0)) fail(error);
      }
    }
    this.#busy = false;
  }

  async #exchange(method: string, body: unknown): Promise<Wire> {
    const sent = Date.now();
    let response: Response;
    let answer: { clock?: number; error?: string };
    try {
      response = await fetch(this.#path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
      answer = await response.json();
    } catch (error) {
      throw new Away(`The server does not answer (${(error as Error).message}).`);
    }
    this.#measure(sent, Date.now(), answer.clock);
    if (response.status === 404) throw new Away("The server has forgotten this page.");
    if (answer.clock === undefined) throw new Away(answer.error ?? `The server answers ${response.status}.`);
    const fields = [...response.headers].map(([name, value]): [string, string] => [written.get(name) ?? name, value]);
    return { status: response.status, statusText: response.statusText, fields, body: answer };
  }

  /** Halfway between question and answer, the server's clock was this. The quicker the exchange, the less it can be off. */
  #measure(sent: number, got: number, clock: number | undefined): void {
    if (clock === undefined) return;
    // Forgets slowly, so that a clock that is set while the page is open is found out.
    this.roundTrip += 0.05;
    if (got - sent > this.roundTrip) return;
    this.roundTrip = got - sent;
    this.offset = clock - (sent + got) / 2;
  }
}
