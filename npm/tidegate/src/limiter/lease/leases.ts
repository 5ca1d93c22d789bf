/**
 * A store behind leases: calls are decided on leased tokens where possible. `lease.ts` has what is known of one key
 * and decides on that, `refill.ts` how it gets tokens.
 */
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { InputError, isInputError } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { ResilientStore } from "../resilience.ts";
import type { Call, Key, Now } from "../../stores/contract.ts";
import { combined } from "../../limit/combined.ts";
import type { LeaseDecision } from "./lease.ts";
import { type Lender, RefilledLease } from "./refill.ts";

/** One call in 64 checks for an idle lease. */
const SWEEP_ONE_IN = 64;

/** Ends when no refill of the lease is in flight: the next one starts for requests that still wait. */
async function decided(lease: RefilledLease): Promise<void> {
  while (lease.refilling !== undefined) await lease.refilling.catch(() => {});
}

export class Leases {
  readonly name: string;
  readonly sync = false;
  readonly #store: ResilientStore;
  readonly #lender: Lender;
  readonly #named = new Map<string, Map<string | undefined, RefilledLease>>();
  /** The same leases, those checked longest ago first. */
  readonly #all = new Set<RefilledLease>();
  #untilSweep = SWEEP_ONE_IN;
  #last: RefilledLease | undefined;

  constructor(lender: Lender) {
    this.name = lender.resilient.name;
    this.#store = lender.resilient;
    this.#lender = lender;
  }

  /** Throws if the limit has shards: a lease needs its whole state, which no shard has. */
  checkLimit({ name, policy: { shards } }: Limit): void {
    if (shards === 1) return;
    const rule = `1 in the limit ${JSON.stringify(name)}, whose store leases: leases spread a hot key by themselves`;
    throw new InputError("shards", rule, shards);
  }

  /** Takes available tokens: leased ones, or else from the store. */
  take(limit: Limit, key: Key, count: number, now: Now): Promise<Decision> {
    const lease = this.#lease(limit, key);
    // Waiting requests go first, as at the store.
    const decision = lease.waiting.size === 0 ? lease.spend(count, now) : lease.behind(count, now);
    if (decision === undefined) return lease.wait(count);
    if (lease.isLow) lease.refill();
    return Promise.resolve(decision);
  }

  async decide(call: Call, now: Now): Promise<Decision> {
    const { op, limit, key, count, reserve } = call;
    if (op === "take" && !reserve) return this.take(limit, key, count, now);
    const lease = this.#find(limit, key);
    if (op === "block") return this.#block(lease, call, now);
    if (lease === undefined || lease.limit !== limit) return this.#store.decide(call, now);
    if (op === "check" && !reserve) return this.#check(lease, call, now);
    if (op === "give" || op === "charge") {
      const sent = lease.mark();
      const decision = await this.#store.decide(call, now);
      const mark = op === "give" ? lease.returned(sent) : sent;
      if (decision.degraded !== true && lease.hasState) lease.learn(decision, 0, mark);
      return decision;
    }
    // A reservation depends on all tokens, so they return to the store first.
    return this.#store.decide(call, now, undefined, this.#settle([lease]));
  }

  /** Leased tokens return to the store first: given back later, they would shorten the block. */
  async #block(lease: RefilledLease | undefined, call: Call, now: Now): Promise<Decision> {
    const decision = await this.#store.decide(call, now, undefined, lease && this.#settle([lease]));
    // Tokens that were leased meanwhile are lost, for the same reason.
    this.#drop(this.#find(call.limit, call.key));
    return decision;
  }

  async #check(lease: RefilledLease, call: Call, now: Now): Promise<Decision> {
    const decision = lease.decide(call.count, now)?.decision;
    if (decision !== undefined) return decision;
    try {
      const seen = await this.#look(lease, now);
      return lease.would(call.count, now ?? seen.now);
    } catch (error) {
      if (isInputError(error)) throw error;
      return this.#store.without(call, now, error);
    }
  }

  /** Reads the store's state. */
  #look(lease: RefilledLease, now: Now): Promise<Decision> {
    const { limit, key } = lease;
    const mark = lease.mark();
    // Also after the deadline: a state that arrives late still decides on later requests.
    const learn = (seen: Decision): void => lease.learn(seen, 0, mark);
    return this.#store.attempt({ op: "check", limit, key, count: 0, reserve: false }, now, learn);
  }

  /** On leased tokens if those settle all calls; else in one step at the store, after the leases have returned. */
  async decideAll(calls: readonly Call[], now: Now): Promise<AllDecision> {
    const leases = calls.map(({ limit, key }) => this.#find(limit, key)).filter((lease) => lease !== undefined);
    const decided = this.#onLeases(leases, calls, now);
    if (decided !== undefined) return decided;
    return this.#store.decideAll(calls, now, undefined, this.#settle(leases));
  }

  #onLeases(leases: readonly RefilledLease[], calls: readonly Call[], now: Now): AllDecision | undefined {
    // With one for each call, they are in the order of the calls.
    if (leases.length < calls.length) return undefined;
    const decided = leases.map((lease, i) => {
      const { limit, count, reserve } = calls[i] as Call;
      return reserve || lease.limit !== limit ? undefined : lease.decide(count, now);
    });
    const spent = decided.filter((one) => one !== undefined);
    if (spent.length < calls.length) return undefined;
    const decisions = spent.map(({ decision }) => decision);
    const all = combined(decisions, Math.max(...decisions.map((decision) => decision.now)));
    if (!all.ok || calls[0]?.op !== "take") return all;
    for (const [i, lease] of leases.entries()) {
      lease.commit(spent[i] as LeaseDecision, (calls[i] as Call).count);
      if (lease.isLow) lease.refill();
    }
    return all;
  }

  async reset(limit: Limit, key: Key): Promise<void> {
    this.#drop(this.#find(limit, key));
    try {
      await this.#store.reset(limit, key);
    } finally {
      // A refill in flight may report the state from before.
      this.#drop(this.#find(limit, key));
    }
  }

  /** The store's state and this process's balance. Other processes' balances are unknown. */
  async getValue(limit: Limit, key: Key, now: Now): Promise<State> {
    const lease = this.#find(limit, key);
    if (lease === undefined || lease.limit !== limit || !lease.hasState) {
      return this.#store.getValue(limit, key, now);
    }
    const seen = await this.#look(lease, now);
    const { value, ts } = lease.would(0, now ?? seen.now);
    return { value, ts };
  }

  /** Returns all leased tokens to the store. */
  release(): Promise<void> {
    return this.#settle(this.#all);
  }

  /** Drops leases, and returns their balances once their waiting requests are decided. */
  async #settle(leases: Iterable<RefilledLease>): Promise<void> {
    await Promise.all(
      [...new Set(leases)].map(async (lease) => {
        this.#drop(lease);
        if (lease.refilling !== undefined) {
          await new Promise<void>((resolve) => {
            const cancel = this.#store.atDeadline("give", lease, () => resolve());
            void decided(lease).then(resolve).then(cancel);
          });
        }
        // If the store fails, the limit refills in time.
        await this.#giveBack(lease).catch(() => {});
      }),
    );
  }

  async #giveBack(lease: RefilledLease): Promise<void> {
    if (!lease.hasState) return;
    const { limit, key } = lease;
    const count = lease.empty(lease.now(this.#lender.time()));
    if (count <= 0) return;
    await this.#store.attempt({ op: "give", limit, key, count, reserve: false }, this.#lender.time());
  }

  #lease(limit: Limit, key: Key): RefilledLease {
    if (--this.#untilSweep < 0) this.#sweep();
    const last = this.#last;
    if (last?.limit === limit && last.key === key) return last;
    const found = this.#find(limit, key);
    this.#last = found?.limit === limit ? found : this.#replace(found, new RefilledLease(limit, key, this.#lender));
    return this.#last;
  }

  #find(limit: Limit, key: Key): RefilledLease | undefined {
    return this.#named.get(limit.name)?.get(key);
  }

  /** Adds a lease; the previous one, of another config of the name, returns its balance. */
  #replace(previous: RefilledLease | undefined, lease: RefilledLease): RefilledLease {
    if (previous !== undefined) this.#inBackground(previous);
    const { name } = lease.limit;
    const keys = this.#named.get(name) ?? new Map<string | undefined, RefilledLease>();
    this.#named.set(name, keys.set(lease.key, lease));
    this.#all.add(lease);
    if (this.#all.size > this.#lender.settings.maxKeys) this.#sweep();
    return lease;
  }

  /** Checks the lease that was checked longest ago: an idle one returns its balance. */
  #sweep(): void {
    this.#untilSweep = SWEEP_ONE_IN;
    const [lease] = this.#all;
    if (lease === undefined) return;
    this.#all.delete(lease);
    this.#all.add(lease);
    if (lease.refilling !== undefined) return;
    const idle = lease.now(this.#lender.time()) - lease.usedAt >= this.#lender.settings.expiry / 2;
    if (idle || this.#all.size > this.#lender.settings.maxKeys) this.#inBackground(lease);
  }

  #inBackground(lease: RefilledLease): void {
    this.#lender.during(this.#settle([lease]));
  }

  #drop(lease: RefilledLease | undefined): void {
    if (lease === undefined) return;
    if (this.#last === lease) this.#last = undefined;
    this.#all.delete(lease);
    const keys = this.#named.get(lease.limit.name);
    if (keys?.get(lease.key) === lease) keys.delete(lease.key);
    if (keys?.size === 0) this.#named.delete(lease.limit.name);
  }
}
