/** The server's side: one request at a time, in order, because the order is part of the decision. */
import type { Config } from "tidegate";
import type { SandboxCall } from "../../../server/sandbox.mjs";
import type { Row, Decided } from "./reading.ts";

/** A response: the status, all fields, the body. */
export interface Wire {
  status: number;
  statusText: string;
  fields: [name: string, value: string][];
  body: unknown;
}

/** The body of a response to a call, whatever its status: see `examples/server/visitors.mjs`. */
export interface Answer {
  decision: Decided;
  rows: Row[];
}

/** The names as they are written; a browser returns them in lower case. */
const NAMES = ["RateLimit", "RateLimit-Policy", "Retry-After", "Content-Type", "Content-Length", "Date", "Connection"];
const written = new Map(NAMES.map((name) => [name.toLowerCase(), name]));

/** The request failed, or was not sent: the server is offline, or has dropped this page's sandbox. */
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
  /** The server's clock minus the page's, in ms, from the exchange that took the least time, and that time. */
  offset = 0;
  roundTrip = Number.POSITIVE_INFINITY;

  constructor(id: string) {
    this.#path = `/api/sandbox?id=${id}`;
  }

  /** Requests that wait for earlier ones. */
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
        // Later calls would be decided on another state than in the page.
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

  /** Halfway through the exchange the server's clock was this. A faster exchange has a smaller error. */
  #measure(sent: number, got: number, clock: number | undefined): void {
    if (clock === undefined) return;
    // Expires slowly, so that a clock that is set while the page is open is noticed.
    this.roundTrip += 0.05;
    if (got - sent > this.roundTrip) return;
    this.roundTrip = got - sent;
    this.offset = clock - (sent + got) / 2;
  }
}
