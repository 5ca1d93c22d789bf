/** All that is leased here: the store's calls, answered out of hand where they can be. */
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { isInputError } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { ResilientStore } from "../resilience.ts";
import type { Call } from "../../stores/contract.ts";
import { settle } from "../../stores/transactional.ts";
import { ask, type Lender, wait } from "./ask.ts";
import { Lease } from "./lease.ts";
import type { Lending } from "./options.ts";

/** One call in so many looks for a lease that nobody uses. */
const SWEEP_ONE_IN = 64;

export class Leases {
  readonly name: string;
  readonly sync = false;
  readonly #store: Lender;
  readonly #lending: Lending;
  readonly #named = new Map<string, Map<string | undefined, Lease>>();
  /** The same, those looked at longest ago first. */
  readonly #all = new Set<Lease>();
  #untilSweep = SWEEP_ONE_IN;
  #last: Lease | undefined;

  constructor(store: ResilientStore, lending: Lending, time: () => number | undefined, during: Lender["during"]) {
    this.name = store.name;
    this.#store = { resilient: store, time, during };
    this.#lending = lending;
  }

  /** Takes tokens that are there: out of hand, or else by asking the store. */
  take(limit: Limit, key: string | undefined, count: number, now: number | undefined): Promise<Decision> {
    const lease = this.#lease(limit, key);
    // Who waits goes first, as they would at the store.
    const decision = lease.waiting.length === 0 ? lease.spend(count, now) : lease.behind(count, now);
    if (decision === undefined) return wait(this.#store, lease, { op: "take", limit, key, count, reserve: false });
    if (lease.isLow) ask(this.#store, lease);
    return Promise.resolve(decision);
  }

  async decide(call: Call, now: number | undefined): Promise<Decision> {
    const { op, limit, key, count, reserve } = call;
    if (op === "take" && !reserve) return this.take(limit, key, count, now);
    const lease = this.#named.get(limit.name)?.get(key);
    if (lease === undefined || lease.limit !== limit) return this.#store.resilient.decide(call, now);
    if (op === "check" && !reserve) return this.#check(lease, call, now);
    if (op === "give" || op === "charge") {
      const mark = lease.mark();
      const decision = await this.#store.resilient.decide(call, now);
      if (op === "give") lease.raised();
      if (decision.degraded !== true && lease.known) lease.told(decision, 0, op === "give" ? lease.mark() : mark);
      return decision;
    }
    // What may be owed depends on all that there is: it has to be in one place.
    await this.#settle([lease]);
    return this.#store.resilient.decide(call, now);
  }

  async #check(lease: Lease, call: Call, now: number | undefined): Promise<Decision> {
    const known = lease.spend(call.count, now, false);
    if (known !== undefined) return known;
    try {
      const seen = await this.#look(lease, now);
      return lease.would(call.count, lease.now(now ?? seen.now));
    } catch (error) {
      if (isInputError(error)) throw error;
      return this.#store.resilient.without(call, Math.floor(now ?? Date.now()), error);
    }
  }

  /** Asks the store what it holds. */
  async #look(lease: Lease, now: number | undefined): Promise<Decision> {
    const { limit, key } = lease;
    const mark = lease.mark();
    const seen = await this.#store.resilient.attempt({ op: "check", limit, key, count: 0, reserve: false }, now);
    lease.told(seen, 0, mark);
    return seen;
  }

  /** Out of hand where all of them are settled there; else in one step at the store, with all of it in one place. */
  async decideAll(calls: readonly Call[], now: number | undefined): Promise<AllDecision> {
    const leases = calls.map(({ limit, key }) => this.#named.get(limit.name)?.get(key));
    const held = leases.filter((lease, i) => lease !== undefined && lease.limit === calls[i]?.limit) as Lease[];
    const plain = calls.every((call) => !call.reserve) && new Set(held).size === calls.length;
    if (plain) {
      const known = held.map((lease, i) => lease.spend((calls[i] as Call).count, now, false));
      const decisions = known.filter((decision) => decision !== undefined);
      if (decisions.length === calls.length) {
        const at = decisions.reduce((latest, decision) => Math.max(latest, decision.now), 0);
        const taken = calls[0]?.op === "take" && decisions.every((decision) => decision.ok);
        if (!taken) return settle(decisions, at);
        const spent = held.map((lease, i) => lease.spend((calls[i] as Call).count, now) as Decision);
        for (const lease of held) if (lease.isLow) ask(this.#store, lease);
        return settle(spent, at);
      }
    }
    await this.#settle(leases.filter((lease) => lease !== undefined));
    return this.#store.resilient.decideAll(calls, now);
  }

  async reset(limit: Limit, key: string | undefined): Promise<void> {
    this.#drop(this.#named.get(limit.name)?.get(key));
    try {
      await this.#store.resilient.reset(limit, key);
    } finally {
      // What was asked meanwhile may tell of the time before.
      this.#drop(this.#named.get(limit.name)?.get(key));
    }
  }

  /** What the store holds and what is in hand here; what others have in hand is nowhere told. */
  async getValue(limit: Limit, key: string | undefined, now: number | undefined): Promise<State> {
    const lease = this.#named.get(limit.name)?.get(key);
    if (lease === undefined || lease.limit !== limit || !lease.known) {
      return this.#store.resilient.getValue(limit, key, now);
    }
    const seen = await this.#look(lease, now);
    const { value, ts } = lease.would(0, lease.now(now ?? seen.now));
    return { value, ts };
  }

  /** Brings back all that is in hand. */
  async release(): Promise<void> {
    await this.#settle([...this.#all]);
  }

  /** Drops leases, once what is under way on them has ended and what they had in hand is back. */
  async #settle(leases: readonly Lease[]): Promise<void> {
    await Promise.all(
      [...new Set(leases)].map(async (lease) => {
        const { limit, key, asking } = lease;
        const call: Call = { op: "give", limit, key, count: 0, reserve: false };
        if (asking !== undefined) await this.#store.resilient.within(call, asking).catch(() => {});
        await this.#bringBack(lease);
      }),
    );
  }

  async #bringBack(lease: Lease): Promise<void> {
    this.#drop(lease);
    if (!lease.known) return;
    const { limit, key } = lease;
    const count = lease.empty(lease.now(this.#store.time()));
    if (count <= 0) return;
    // Where the store does not answer they are gone until they refill.
    const give: Call = { op: "give", limit, key, count, reserve: false };
    await this.#store.resilient.attempt(give, this.#store.time()).catch(() => {});
  }

  #lease(limit: Limit, key: string | undefined): Lease {
    if (--this.#untilSweep < 0) this.#sweep();
    const last = this.#last;
    if (last !== undefined && last.limit === limit && last.key === key && !last.dropped) return last;
    const keys = this.#named.get(limit.name) ?? new Map<string | undefined, Lease>();
    this.#named.set(limit.name, keys);
    let lease = keys.get(key);
    if (lease?.limit !== limit) {
      // Another config of this name: what the one before has in hand goes back.
      if (lease !== undefined) this.#inBackground(lease);
      lease = new Lease(limit, key, this.#lending);
      keys.set(key, lease);
      this.#all.add(lease);
      if (this.#all.size > this.#lending.maxKeys) this.#sweep();
    }
    this.#last = lease;
    return lease;
  }

  /** Looks at the lease that was looked at longest ago: what nobody asks for any more goes back. */
  #sweep(): void {
    this.#untilSweep = SWEEP_ONE_IN;
    const [lease] = this.#all;
    if (lease === undefined) return;
    this.#all.delete(lease);
    this.#all.add(lease);
    if (lease.asking !== undefined) return;
    const idle = lease.now(this.#store.time()) - lease.usedAt >= this.#lending.expiry / 2;
    if (idle || this.#all.size > this.#lending.maxKeys) this.#inBackground(lease);
  }

  #inBackground(lease: Lease): void {
    this.#drop(lease);
    this.#store.during(this.#settle([lease]));
  }

  #drop(lease: Lease | undefined): void {
    if (lease === undefined) return;
    lease.dropped = true;
    this.#all.delete(lease);
    const keys = this.#named.get(lease.limit.name);
    if (keys?.get(lease.key) === lease) keys.delete(lease.key);
    if (keys?.size === 0) this.#named.delete(lease.limit.name);
  }
}
