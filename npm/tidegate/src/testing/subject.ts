/** What each test of the contract gets: limits on the store, and a clock. */
import type { Config } from "../limit/config.ts";
import { defineLimits, type Limiter } from "../limiter/limiter.ts";
import type { AsyncStore, Store } from "../stores/contract.ts";
import { type FakeClock, fakeClock } from "./clock.ts";

/** Ms that a call is waited for: on a busy machine too, only a store that never answers fails by it. */
const PATIENCE = 600_000;

const OPERATIONS = [
  "limit",
  "check",
  "give",
  "charge",
  "block",
  "unblock",
  "limitAll",
  "checkAll",
  "reset",
  "getValue",
] as const;

/** Limits on the store under test, as a user calls them. A failure of the store rejects: it is not a denial. */
export type Subject<N extends string> = Pick<Limiter<N, AsyncStore>, (typeof OPERATIONS)[number]>;

/** Overwrites what is stored under an identity (`name:key`). */
type Corrupt = (identity: string) => unknown;

/** What each test has: a store, its own clock, and limits on both. */
export interface Stage {
  readonly clock: FakeClock;
  /** Makes what is stored under an identity no state. */
  readonly corrupt?: Corrupt | undefined;
  limits<const N extends string>(configs: Readonly<Record<N, Config>>): Subject<N>;
}

export function stage(store: Store, corrupt?: Corrupt): Stage {
  const clock = fakeClock();
  const limits = (configs: Readonly<Record<string, Config>>) => {
    const limiter = defineLimits<string, Store>(configs, { store, now: clock.now, timeout: PATIENCE, log: false });
    const call =
      (operation: keyof Subject<string>) =>
      async (...args: never[]) => {
        const result: unknown = await (limiter[operation] as (...args: never[]) => unknown).call(limiter, ...args);
        const { degraded, cause } = Object(result) as { degraded?: true; cause?: unknown };
        if (degraded === true) throw cause;
        return result;
      };
    return Object.fromEntries(OPERATIONS.map((operation) => [operation, call(operation)]));
  };
  return { clock, corrupt, limits: limits as unknown as Stage["limits"] };
}

/** What not every store can do, or not every suite. */
export type Ability = "limitAll" | "shards" | "corrupt";

/** Tests by title. Each makes calls on its stage, and throws if a result is wrong. */
export type Cases = Readonly<Record<string, ((stage: Stage) => Promise<void>) & { needs?: Ability }>>;

/** A test for stores that have this ability. */
export const needs = (ability: Ability, run: Cases[string]): Cases[string] => Object.assign(run, { needs: ability });
