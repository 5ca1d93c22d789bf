/** Patterns of requests. They only send; the limit decides. */
import { jitter } from "tidegate";
import type { Decided } from "./reading.ts";

export const PATTERNS = ["off", "steady", "sixty", "bursty", "herd", "herd with jitter"] as const;
export type Pattern = (typeof PATTERNS)[number];

export interface Traffic {
  pattern: Pattern;
  /** Requests per second, if steady. */
  perSecond: number;
  /** Requests of one burst; clients of a herd. */
  size: number;
}

/** What is sent, and the answer to it. */
export type Send = () => Promise<Decided>;

const BURST_EVERY_MS = 4_000;
/** Granted clients return all together. */
const HERD_EVERY_MS = 12_000;
/** A generator that did not run for long (a page in the background) does not catch up. */
const LONGEST_STEP_MS = 250;

export class Generator {
  #traffic: Traffic = { pattern: "off", perSecond: 5, size: 30 };
  #last = 0;
  #due = 0;
  #nextAt = 0;
  /** When each client of the herd sends its next request; absent while it waits for a response or is done. */
  #herd: (number | undefined)[] = [];

  set(traffic: Traffic): void {
    const other = traffic.pattern !== this.#traffic.pattern || traffic.size !== this.#traffic.size;
    this.#traffic = traffic;
    if (!other) return;
    this.#due = 0;
    this.#nextAt = 0;
    this.#herd = [];
  }

  /** Sends what is due at `now`. */
  tick(now: number, send: Send): void {
    const { pattern, perSecond, size } = this.#traffic;
    const step = Math.min(Math.max(now - this.#last, 0), LONGEST_STEP_MS);
    this.#last = now;
    if (pattern === "steady" || pattern === "sixty") {
      this.#due += ((pattern === "sixty" ? 60 : perSecond) * step) / 1000;
      for (; this.#due >= 1; this.#due--) void send();
    } else if (pattern === "bursty" && now >= this.#nextAt) {
      this.#nextAt = now + BURST_EVERY_MS;
      for (let i = 0; i < size; i++) void send();
    } else if (pattern === "herd" || pattern === "herd with jitter") {
      if (now >= this.#nextAt) {
        this.#nextAt = now + HERD_EVERY_MS;
        this.#herd = Array.from({ length: size }, () => now);
      }
      for (const [client, at] of this.#herd.entries()) {
        if (at !== undefined && at <= now) void this.#visit(this.#herd, client, pattern === "herd with jitter", send);
      }
    }
  }

  /** One request of a client. If it is denied, the client retries at its `retryAt`, or with jitter somewhat later. */
  async #visit(herd: (number | undefined)[], client: number, spread: boolean, send: Send): Promise<void> {
    herd[client] = undefined;
    const decision = await send();
    if (decision.ok || decision.retryAt === undefined) return;
    herd[client] = spread ? jitter(decision, { key: `client ${client}`, fraction: 1 }) : decision.retryAt;
  }
}
