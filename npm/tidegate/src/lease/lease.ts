/** What is leased on one limit and key: what the store last told that it holds, and what is in hand. */
import type { Decision, State } from "../decision.ts";
import type { Limit } from "../limit.ts";
import type { Call } from "../store.ts";
import { ServerClock } from "../stores/server-clock.ts";
import { Demand } from "./demand.ts";
import type { Lending } from "./options.ts";

/** A request that waits until the store has told. */
export interface Waiting {
  readonly call: Call;
  resolve(decision: Decision): void;
  reject(error: unknown): void;
}

/** The moment before a request left. */
export interface Mark {
  readonly wall: number;
  readonly steady: number;
  readonly raises: number;
}

export class Lease {
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly waiting: Waiting[] = [];
  /** The round trips under way, and when the last of them began, by this process's clock. */
  asking: Promise<void> | undefined;
  askingSince = 0;
  /** Until when nothing is taken ahead, since the store failed, by this process's clock. */
  quietUntil = 0;
  /** No longer kept: what is still under way on it comes to nobody else. */
  dropped = false;
  /** When somebody asked last, by the store's clock. */
  usedAt = 0;
  readonly #start: number;
  readonly #clock = new ServerClock();
  readonly #lending: Lending;
  readonly #demand: Demand;
  /** What the store last told; nothing, before it has. */
  #kept: State | undefined;
  /** Tokens that were lent and are not spent. */
  #hand = 0;
  /** Tokens in hand below which more are taken ahead. */
  #low = 0;
  /** Of the store's clock: when it last told, and when it last lent. */
  #toldAt = Number.NEGATIVE_INFINITY;
  #lentAt = Number.NEGATIVE_INFINITY;
  /** Counts what may have brought tokens back, so that older answers are not believed to deny. */
  #raises = 0;

  constructor(limit: Limit, key: string | undefined, lending: Lending) {
    this.limit = limit;
    this.key = key;
    this.#start = limit.start(key);
    this.#lending = lending;
    this.#demand = new Demand(lending);
  }

  /** Whether the store has told anything yet. */
  get known(): boolean {
    return this.#kept !== undefined;
  }

  /** Whether it is time to take more ahead. */
  get isLow(): boolean {
    return this.#hand < this.#low;
  }

  /** The time on the store's clock, at the latest; a clock that was passed in is everybody's. */
  now(passed: number | undefined): number {
    return passed ?? this.#clock.latest() ?? Date.now();
  }

  /**
   * Takes out of hand, or denies by what the store told a moment ago. `undefined`: only the store can tell. With `write`
   * false nothing is taken.
   */
  spend(count: number, passed: number | undefined, write = true): Decision | undefined {
    const now = passed ?? this.#clock.usual() ?? Date.now();
    const decision = this.#spend(count, now, write);
    if (decision === undefined || decision.ok || passed !== undefined) return decision;
    // A denial has to hold by the latest that the store's clock can be.
    const latest = this.now(passed);
    return latest > now ? this.#spend(count, latest, write) : decision;
  }

  #spend(count: number, now: number, write: boolean): Decision | undefined {
    // No state tells more about what exceeds the capacity.
    if (this.#kept === undefined) return this.limit.never({ op: "take", count, reserve: false }, now);
    this.#age(now);
    const { decision, hand, settled } = this.limit.spend(this.#kept, this.#hand, count, now, this.#start);
    if (!settled) return undefined;
    if (!decision.ok) {
      const old = now - this.#toldAt >= this.#lending.ahead && decision.reason !== "exceeds capacity";
      return old ? undefined : decision;
    }
    if (write) {
      this.usedAt = now;
      this.#hand = hand;
      this.#demand.spent += count;
    }
    return decision;
  }

  /** What a request would come to if the store still holds what it told: after it was looked at just now. */
  would(count: number, now: number): Decision {
    return this.limit.spend(this.#kept as State, this.#hand, count, now, this.#start).decision;
  }

  /** How many tokens to ask the store for: what those who wait lack, and some ahead. 0: none. */
  size(now: number, firstOnly: boolean): number {
    this.#age(now);
    const kept = this.#kept === undefined ? undefined : this.limit.project(this.#kept, now, this.#start).value;
    const room = kept ?? this.limit.policy.capacity;
    let need = 0;
    for (const { call } of this.waiting) {
      if (need + call.count <= this.#hand + room) need += call.count;
      if (firstOnly) break;
    }
    const lacks = Math.max(need - this.#hand, 0);
    // Whole tokens where there are so many: fractions in hand are of no use to anyone.
    const asked = Math.ceil(lacks) <= room ? Math.ceil(lacks) : lacks;
    if (firstOnly || kept === undefined) return asked;
    const wanted = this.#demand.ahead(now, need) - (this.#hand + asked - need);
    return asked + Math.max(Math.floor(Math.min(wanted, this.#lending.share * (kept - asked))), 0);
  }

  /** Nothing more to take ahead for now: asked again when half of what is in hand is spent. */
  rest(): void {
    this.#low = this.#hand / 2;
  }

  /** Marks the moment before a request leaves. */
  mark(): Mark {
    return { ...this.#clock.mark(), raises: this.#raises };
  }

  /** Learns what the store holds after a step in which it lent so many tokens. */
  told({ value, ts, now, reason }: Decision, lent: number, mark: Mark): void {
    this.#clock.learn(mark, now);
    // Decided before any state was read.
    if (reason === "exceeds capacity") return;
    this.#age(now);
    this.#kept = { value, ts };
    this.#toldAt = mark.raises === this.#raises ? now : Number.NEGATIVE_INFINITY;
    if (lent > 0) this.#lentAt = now;
    this.usedAt = Math.max(this.usedAt, now);
    this.#hand += lent;
    this.#demand.begin(now);
    this.rest();
  }

  /** Tokens may have come back to the store: what was asked before does not deny any more. */
  raised(): void {
    this.#raises++;
    this.#toldAt = Number.NEGATIVE_INFINITY;
  }

  /** What is in hand, given up: whoever calls brings it back. */
  empty(now: number): number {
    this.#age(now);
    const hand = this.#hand;
    this.#hand = 0;
    return hand;
  }

  /** What was lent long ago is not spent any more. */
  #age(now: number): void {
    if (now - this.#lentAt >= this.#lending.expiry) this.#hand = 0;
  }
}
