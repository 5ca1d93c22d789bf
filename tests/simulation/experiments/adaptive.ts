/** Instances with `adaptiveRate` in front of one server, whose capacity drops to a half and comes back. */
import { defineLimits } from "tidegate";
import { type AdaptiveRate, adaptiveRate } from "tidegate/adaptive";
import { Events } from "../engine/events.ts";
import { exponential, stream } from "../engine/random.ts";
import { EPOCH_MS } from "../engine/world.ts";
import { jain, quantile, rounded } from "../fleet/figures.ts";

/** ms of each of three phases: full capacity, half, full again. The second half of each is measured. */
const PHASE = 60_000;
/** The server refuses a request that would wait longer than this, ms. */
const BACKLOG = 1_000;
/** A longer request counts as failed, ms. */
const LATENCY = 300;

export interface Adapted {
  /** Instances with equal demand: together twice the server's capacity. */
  readonly instances: number;
  /** The increase of a successful step, as a fraction of the range from floor to ceiling; `null`: rates do not adapt. */
  readonly increase: number | null;
  readonly phases: readonly Phase[];
  /** Jain's index of the rates at the end; their initial values are random. */
  readonly jain: number;
}

export interface Phase {
  /** The server's capacity, requests per second. */
  readonly capacity: number;
  /** Requests served in time, as a fraction of that. */
  readonly good: number;
  /** The fraction of requests that were refused or late. */
  readonly bad: number;
  readonly p99: number;
}

export function adaptive(seed: number, instances: number, capacity: number, increase: number | null): Adapted {
  const random = stream(seed, "experiment");
  const events = new Events();
  let now = 0;
  const clock = (): number => Math.floor(EPOCH_MS + now);
  const share = capacity / instances;
  const [floor, ceiling] = [share / 10, share * 2];
  const step = increase === null ? {} : { increase: increase * (ceiling - floor) };
  const start = (): number => floor + random() * (ceiling - floor);
  const options = { floor, ceiling, period: 1000, latency: LATENCY, ...step, now: clock };
  const fixed = { kind: "token bucket", rate: ceiling, period: 1000 } as const;
  const counts = Array.from({ length: 3 }, () => ({ good: 0, bad: 0, took: [] as number[] }));
  const capacityAt = (at: number): number => (Math.floor(at / PHASE) === 1 ? capacity / 2 : capacity);
  let free = 0;

  const instance = (): AdaptiveRate | undefined => {
    const rate = increase === null ? undefined : adaptiveRate({ ...options, start: start() });
    const limits = defineLimits({ upstream: fixed }, { now: clock });
    const request = (): void => {
      if (now < 3 * PHASE) events.add(now + exponential(random, (2 * share) / 1000), undefined, request);
      if (!limits.limit("upstream", rate === undefined ? {} : { config: rate.config() }).ok) return;
      const done = rate?.begin();
      const sent = now;
      const failed = free > now + BACKLOG;
      if (!failed) free = Math.max(free, now) + 1000 / capacityAt(now);
      events.add(failed ? now + 1 : free, undefined, () => {
        done?.({ failed });
        count(sent, failed);
      });
    };
    events.add(exponential(random, (2 * share) / 1000), undefined, request);
    return rate;
  };
  const count = (sent: number, failed: boolean): void => {
    const phase = counts[Math.floor(sent / PHASE)];
    if (phase === undefined || sent % PHASE < PHASE / 2) return;
    const took = now - sent;
    if (failed || took > LATENCY) phase.bad++;
    else phase.good++;
    if (!failed) phase.took.push(took);
  };

  const rates = Array.from({ length: instances }, instance);
  for (let event = events.next(); event !== undefined; event = events.next()) {
    now = event.at;
    void event.run?.();
  }
  const phases = counts.map(({ good, bad, took }, i): Phase => {
    const able = capacityAt(i * PHASE);
    return {
      capacity: able,
      good: rounded(good / (PHASE / 2000) / able),
      bad: rounded(bad / Math.max(good + bad, 1)),
      p99: rounded(quantile(Float64Array.from(took).sort(), 0.99)),
    };
  });
  return { instances, increase, phases, jain: rounded(jain(rates.map((rate) => rate?.rate ?? ceiling))) };
}
