/** What is leased on one limit and key: what the store last told that it holds, and what is in hand. */
import type { Decision, State } from "../../limit/decision.ts";
import type { Limit, Spent } from "../../limit/limit.ts";
import { type Moment, ServerClock } from "../../stores/server-clock.ts";
import { Demand } from "./demand.ts";
import type { Lending } from "./options.ts";
import { Queue } from "./waiting.ts";

/** The moment before a request left. */
export interface Mark extends Moment {
  readonly raises: number;
}

export class Lease {
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly waiting: Queue = new Queue();
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
  /** How much of what the store could hold at the most it held, lately: the rest went to others. */
  #found = 1;
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
    const spent = this.#settled(this.#kept, count, now);
    if (spent === undefined) return undefined;
    if (write && spent.decision.ok) {
      this.usedAt = now;
      this.#hand = spent.hand;
      this.#demand.spent += count;
    }
    return spent.decision;
  }

  /** What it comes to, unless only the store can tell. */
  #settled(kept: State, count: number, now: number): Spent | undefined {
    this.#age(now);
    const spent = this.limit.spend(kept, this.#hand, count, now, this.#start);
    if (!spent.settled) return undefined;
    const { ok, reason } = spent.decision;
    const old = !ok && now - this.#toldAt >= this.#lending.ahead && reason !== "exceeds capacity";
    return old ? undefined : spent;
  }

  /** Denies whoever comes behind those who wait, where there is too little even if none of them is denied. */
  behind(count: number, passed: number | undefined): Decision | undefined {
    // Somebody who waits for more may be denied, and leave this one what it needs.
    if (this.#kept === undefined || count < this.waiting.most) return undefined;
    const kept = { value: this.#kept.value - this.waiting.tokens, ts: this.#kept.ts };
    const decision = this.#settled(kept, count, this.now(passed))?.decision;
    return decision?.ok === false ? decision : undefined;
  }

  /** What a request would come to if the store still holds what it told: after it was looked at just now. */
  would(count: number, now: number): Decision {
    return this.limit.spend(this.#kept as State, this.#hand, count, now, this.#start).decision;
  }

  /** How many tokens to ask the store for: what those who wait lack, and some ahead. 0: none. */
  size(now: number, firstOnly: boolean): number {
    this.#age(now);
    const kept = this.#holds(now);
    const room = kept ?? this.limit.policy.capacity;
    let need = 0;
    for (const { call } of this.waiting) {
      if (need + call.count <= this.#hand + room * (need === 0 ? 1 : this.#found)) need += call.count;
      if (firstOnly) break;
    }
    const lacks = Math.max(need - this.#hand, 0);
    // Whole tokens where there are so many: fractions in hand are of no use to anyone.
    const asked = Math.ceil(lacks) <= room ? Math.ceil(lacks) : lacks;
    if (firstOnly || kept === undefined) return asked;
    const left = Math.max(kept * this.#found - asked, 0);
    const wanted = this.#demand.ahead(now, need) - (this.#hand + asked - need);
    const share = Math.min(Math.max(this.#lending.share * left, this.#demand.perMs), left);
    return asked + Math.max(Math.floor(Math.min(wanted, share)), 0);
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
    const most = this.#holds(now);
    if (most !== undefined && most > 0) {
      this.#found = (this.#found + Math.min(Math.max((value + lent) / most, 0), 1)) / 2;
    }
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

  /** The most that the store can hold by now, where it has told anything. */
  #holds(now: number): number | undefined {
    return this.#kept === undefined ? undefined : this.limit.project(this.#kept, now, this.#start).value;
  }

  /** What was lent long ago is not spent any more. */
  #age(now: number): void {
    if (now - this.#lentAt >= this.#lending.expiry) this.#hand = 0;
  }
}
