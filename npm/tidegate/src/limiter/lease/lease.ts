/** The lease on one limit and key: the store's last reported state, and the leased tokens. */
import { decisionOf, refuse } from "../../engine/answer.ts";
import { distributed } from "../../engine/distributed.ts";
import { KINDS, UNDECIDED } from "../../engine/generated/wire.ts";
import { writePolicy } from "../../limit/config.ts";
import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import { type Moment, ServerClock } from "../../stores/server-clock.ts";
import type { LeaseSettings } from "./options.ts";
import type { Key, Now } from "../../stores/contract.ts";

/** The moment before a request was sent, and how often tokens had been returned by then. */
interface Mark extends Moment {
  readonly returns: number;
}

export class Lease {
  readonly limit: Limit;
  readonly key: Key;
  readonly waiting: WaitingRequests = new WaitingRequests();
  /** The last request, by the store's clock. */
  usedAt = 0;
  readonly #start: number;
  readonly #clock = new ServerClock();
  readonly #settings: LeaseSettings;
  readonly #demand: Demand;
  /** The store's last reported state. */
  #state: State | undefined;
  /** Unspent leased tokens. */
  #balance = 0;
  /** The balance below which more is taken ahead. */
  #low = 0;
  /** The fraction of the most that the store could hold which it held lately: other processes took the rest. */
  #found = 1;
  /** By the store's clock: its last report that can deny, and its last lease. */
  #learnedAt = -Infinity;
  #lentAt = -Infinity;
  /** How often tokens may have been returned to the store: its decisions from before cannot deny. */
  #returns = 0;

  constructor(limit: Limit, key: Key, settings: LeaseSettings) {
    this.limit = limit;
    this.key = key;
    this.#start = limit.start(key);
    this.#settings = settings;
    this.#demand = new Demand(settings);
  }

  get hasState(): boolean {
    return this.#state !== undefined;
  }

  /** Whether to take more ahead. */
  get isLow(): boolean {
    return this.#balance < this.#low;
  }

  /** The latest time that the store's clock can show; the limiter's clock, if one was given, counts for both. */
  now(now: Now): number {
    return now ?? this.#clock.latest() ?? Date.now();
  }

  /** Spends leased tokens, or denies by the store's recent state. `undefined`: the store must decide. */
  spend(count: number, now: Now): Decision | undefined {
    const spent = this.decide(count, now);
    if (spent?.decision.ok === true) this.commit(spent, count);
    return spent?.decision;
  }

  /** What {@link spend} does before it commits a grant. */
  decide(count: number, now: Now): LeaseDecision | undefined {
    // The quicker clock may be early: a grant by it is valid, a denial must hold at the latest time of the store's clock.
    if (this.#balance >= count) {
      const quick = now ?? this.#clock.usual() ?? Date.now();
      // If it was set back it is early by as much, and tokens that have expired would be spent after a pause.
      if (Math.abs(quick - this.usedAt) < this.#settings.ahead) {
        const spent = this.#settled(this.#state, count, quick);
        if (spent?.decision.ok !== false) return spent;
      }
    }
    return this.#settled(this.#state, count, this.now(now));
  }

  commit({ decision, left }: LeaseDecision, count: number): void {
    this.usedAt = decision.now;
    this.#balance = left;
    this.#demand.spent += count;
  }

  /** Denies a request behind the waiting ones, if too little is left even if all of them are granted. */
  behind(count: number, now: Now): Decision | undefined {
    // A larger waiting request may be denied, and leave enough for this one.
    if (this.#state === undefined || count < this.waiting.most) return undefined;
    const kept = { value: this.#state.value - this.waiting.tokens, ts: this.#state.ts };
    const decision = this.#settled(kept, count, this.now(now))?.decision;
    return decision?.ok === false ? decision : undefined;
  }

  /** The decision if the store still holds its last state: right after that was read. */
  would(count: number, now: number): Decision {
    return this.#onLease(this.#state as State, count, now).decision;
  }

  /** The decision if the store last held `state`, unless the store must make it. */
  #settled(state: State | undefined, count: number, now: number): LeaseDecision | undefined {
    this.#age(now);
    if (state === undefined) {
      // A count beyond the capacity is denied in any state.
      const decision = this.limit.never({ op: "take", count, reserve: false }, now);
      return decision && { decision, left: 0, settled: true };
    }
    const spent = this.#onLease(state, count, now);
    const { ok, reason } = spent.decision;
    const old = !ok && now - this.#learnedAt >= this.#settings.ahead && reason !== "exceeds capacity";
    return spent.settled && !old ? spent : undefined;
  }

  /** Takes leased tokens, or denies if the store, whose state was last `{ value, ts }`, cannot hold the rest. */
  #onLease({ value, ts }: State, count: number, now: number): LeaseDecision {
    const { policy } = this.limit;
    const algebra = distributed();
    writePolicy(algebra.numbers, policy, this.#start);
    const status = algebra.wasm.lease_spend(KINDS.indexOf(policy.kind), value, ts, this.#balance, now, count);
    refuse(status, { count, now, value, ts });
    const { numbers } = algebra;
    const decision = decisionOf(status, numbers, policy, Math.floor(now));
    return { decision, left: numbers[5], settled: (status & UNDECIDED) === 0 };
  }

  /** Tokens to request from the store: what the waiting requests lack, and some ahead. 0: none. */
  size(now: number): number {
    this.#age(now);
    const kept = this.#most(now);
    const room = kept ?? this.limit.policy.capacity;
    let need = 0;
    for (const { count } of this.waiting) {
      // One may get all that the store can hold; those after it what it held lately.
      if (need + count <= this.#balance + room * (need === 0 ? 1 : this.#found)) need += count;
    }
    const missing = this.#missing(need, room);
    if (kept === undefined) return missing;
    const left = Math.max(kept * this.#found - missing, 0);
    const spare = this.#balance + missing - need;
    const wanted = this.#demand.ahead(now, need) - spare;
    const share = Math.min(Math.max(this.#settings.share * left, this.#demand.perMs), left);
    return missing + Math.max(Math.floor(Math.min(wanted, share)), 0);
  }

  /** Tokens that the first waiting request lacks. 0: none, or more than the store can hold. */
  sizeForFirst(now: number): number {
    this.#age(now);
    const room = this.#most(now) ?? this.limit.policy.capacity;
    const { count = 0 } = this.waiting.first ?? {};
    return count <= this.#balance + room ? this.#missing(count, room) : 0;
  }

  /**
   * What the balance lacks of `need`: an integer if the store has that many, as a leased fraction serves no request.
   */
  #missing(need: number, room: number): number {
    const lacks = Math.max(need - this.#balance, 0);
    return Math.ceil(lacks) <= room ? Math.ceil(lacks) : lacks;
  }

  /** Takes nothing ahead until half of the balance is spent. */
  rest(): void {
    this.#low = this.#balance / 2;
  }

  mark(): Mark {
    return { ...this.#clock.mark(), returns: this.#returns };
  }

  /** Tokens may have been returned since `mark`, as by a request sent then: only its own decision can still deny. */
  returned(mark: Mark): Mark {
    this.#learnedAt = -Infinity;
    return { ...mark, returns: ++this.#returns };
  }

  /** Applies a decision of the store that leased `lent` tokens. */
  learn({ value, ts, now, reason }: Decision, lent: number, mark: Mark): void {
    this.#clock.learn(mark, now);
    // Decided without reading a state.
    if (reason === "exceeds capacity") return;
    this.#age(now);
    const most = this.#most(now);
    if (most !== undefined && most > 0) {
      this.#found = (this.#found + Math.min(Math.max((value + lent) / most, 0), 1)) / 2;
    }
    this.#state = { value, ts };
    this.#learnedAt = mark.returns === this.#returns ? now : -Infinity;
    if (lent > 0) this.#lentAt = now;
    this.usedAt = Math.max(this.usedAt, now);
    this.#balance += lent;
    this.#demand.begin(now);
    this.rest();
  }

  /** Clears the balance and returns it; the caller gives it to the store. */
  empty(now: number): number {
    this.#age(now);
    const balance = this.#balance;
    this.#balance = 0;
    return balance;
  }

  /** The most that the store can hold by now, if it has reported a state. */
  #most(now: number): number | undefined {
    return this.#state === undefined ? undefined : this.limit.project(this.#state, now, this.#start).value;
  }

  #age(now: number): void {
    if (now - this.#lentAt >= this.#settings.expiry) this.#balance = 0;
  }
}

export interface LeaseDecision {
  readonly decision: Decision;
  /** Leased tokens that are left. */
  readonly left: number;
  /** If `false`, only the store can decide; the decision is the one if it holds the rest. */
  readonly settled: boolean;
}

/**
 * The requests of one turn of the event loop that wait. They share a deadline, and so a timer. Those of other turns have
 * their own: Workers cancel a request that waits for nothing but another request.
 */
export interface Turn {
  /** Requests that still wait. */
  waiting: number;
  cancel(): void;
}

export interface WaitingRequest {
  readonly count: number;
  readonly turn: Turn;
  resolve(decision: Decision): void;
  reject(error: unknown): void;
}

export class WaitingRequests extends Set<WaitingRequest> {
  tokens = 0;
  /** The largest request since the queue was empty. */
  most = 0;

  get first(): WaitingRequest | undefined {
    return this.values().next().value;
  }

  override add(request: WaitingRequest): this {
    const { count, turn } = request;
    this.tokens += count;
    this.most = Math.max(this.most, count);
    turn.waiting++;
    return super.add(request);
  }

  override delete(request: WaitingRequest): boolean {
    const { count, turn } = request;
    if (!super.delete(request)) return false;
    this.tokens -= count;
    if (--turn.waiting === 0) turn.cancel();
    if (this.size === 0) this.tokens = this.most = 0;
    return true;
  }
}

/** Most growth from one refill to the next: on a stopped clock it would be unbounded. */
const GROWTH = 8;

/** The demand on a key: tokens granted in this process. */
class Demand {
  /** Tokens granted since the last refill. */
  spent = 0;
  #since: number | undefined;
  /** A running mean of tokens per ms. */
  perMs = 0;
  readonly #settings: LeaseSettings;

  constructor(settings: LeaseSettings) {
    this.#settings = settings;
  }

  begin(now: number): void {
    this.#since ??= now;
  }

  /** Tokens that the next `ahead` ms will need, by what was spent until `now` and what waiting requests `need`. */
  ahead(now: number, need: number): number {
    const spent = this.spent + need;
    const { ahead } = this.#settings;
    const elapsed = Math.max(now - (this.#since ?? now), 1);
    const perMs = spent / elapsed;
    // Over a longer time the mean is of the past: a burst would be leased again and again, and expire.
    this.perMs = elapsed < ahead ? (this.perMs + perMs) / 2 : perMs;
    this.#since = now;
    this.spent = 0;
    return Math.min(this.perMs * ahead, GROWTH * Math.max(spent, 1));
  }
}
