/** Clients that were denied together, and when they retry. */
import { type Decision, defineLimits, jitter } from "tidegate";
import { Events } from "../engine/events.ts";
import { below, stream } from "../engine/random.ts";
import { EPOCH_MS } from "../engine/world.ts";
import { rounded } from "../fleet/figures.ts";
import { type Bucket, configOf } from "../fleet/scenario.ts";

/** What a denied client does. */
export type Back =
  /** Retries at `retryAt`. */
  | "retryAt"
  /** Retries at the time that `jitter` returns, with this `fraction`. */
  | { readonly jitter: number }
  /** Never denied: it reserves, and runs at its own time. */
  | "reserve";

export interface Herd {
  readonly limit: Bucket;
  /** Clients, which arrive within one second and request one token each. */
  readonly clients: number;
  readonly back: Back;
  /** The most retries in one ms, and in one tenth of a second. */
  readonly peakPerMs: number;
  readonly peakPer100Ms: number;
  readonly callsPerToken: number;
  /** Seconds until the last client had its token, and the least possible time. */
  readonly doneAfter: number;
  readonly atLeast: number;
}

/** The most at one time, of times in ascending order. */
class Peak {
  most = 0;
  #at = -1;
  #count = 0;

  add(at: number): void {
    this.#count = at === this.#at ? this.#count + 1 : 1;
    this.#at = at;
    this.most = Math.max(this.most, this.#count);
  }
}

export function herd(seed: number, limit: Bucket, clients: number, back: Back): Herd {
  let now = 0;
  const limits = defineLimits({ herd: configOf(limit, 1) }, { now: () => EPOCH_MS + now });
  const random = stream(seed, "experiment");
  const events = new Events();
  const perMs = new Peak();
  const per100Ms = new Peak();
  let calls = 0;
  let done = 0;
  const backAt = (decision: Decision, client: number): number => {
    const at =
      typeof back === "object"
        ? jitter(decision, { key: `client ${client}`, fraction: back.jitter })
        : decision.retryAt;
    return (at ?? 0) - EPOCH_MS;
  };
  const call = (client: number, again: boolean): void => {
    calls++;
    if (again) {
      perMs.add(now);
      per100Ms.add(Math.floor(now / 100));
    }
    const decision = limits.limit("herd", { reserve: back === "reserve" });
    if (decision.ok) done = Math.max(done, decision.retryAt === undefined ? now : decision.retryAt - EPOCH_MS);
    else events.add(backAt(decision, client), undefined, () => call(client, true));
  };
  for (let client = 0; client < clients; client++) {
    events.add(below(random, 1000), undefined, () => call(client, false));
  }
  for (let event = events.next(); event !== undefined; event = events.next()) {
    now = event.at;
    void event.run?.();
  }
  return {
    limit,
    clients,
    back,
    peakPerMs: perMs.most,
    peakPer100Ms: per100Ms.most,
    callsPerToken: rounded(calls / clients),
    doneAfter: done / 1000,
    atLeast: rounded((Math.max(clients - limit.capacity, 0) * limit.period) / limit.rate / 1000),
  };
}
