/** The contract of a store as tests: cases/ has them, subject.ts what each gets. */
import { type Check, check, checkTable, FUNCTION, STRING } from "../limit/checks.ts";
import type { Store } from "../stores/contract.ts";
import { CONCURRENCY } from "./cases/concurrency.ts";
import { CORRUPT } from "./cases/corrupt.ts";
import { DENIALS } from "./cases/denials.ts";
import { KEYS } from "./cases/keys.ts";
import { OPERATIONS } from "./cases/operations.ts";
import { SEVERAL } from "./cases/several.ts";
import { SHARDED } from "./cases/shards.ts";
import { holds } from "./expectation.ts";
import { type Ability, type Cases, stage } from "./subject.ts";
import { isSharded, runVector, type Stored, type VectorFile } from "./vectors.ts";

/**
 * If a store does not keep the contract in full. Each is a sentence with the reason, and becomes the title of a test.
 */
export interface Deviations {
  /** Under concurrent calls it may grant more than the capacity, or lose a write. Leaves out the tests of concurrency. */
  readonly approximate?: string | undefined;
  /** It has no atomic step on several limits, and rejects `limitAll`. Leaves out all other tests of `limitAll`. */
  readonly refusesLimitAll?: string | undefined;
  /** It rejects limits with `shards`. Leaves out all other tests of `shards`. */
  readonly refusesShards?: string | undefined;
  /** It keeps the rows of a limit's shards apart. Leaves out the vectors with `shards`, which are of one bucket. */
  readonly shardsApart?: string | undefined;
}

/** What {@link storeSuite} needs. */
export interface StoreSuiteOptions extends Deviations {
  /** The runner's own function that defines a test: of vitest, `node:test`, jest, mocha, `bun:test`, or `Deno.test`. */
  readonly test: (name: string, body: () => Promise<void>) => unknown;
  /** The runner's own function that puts tests under a heading, if it has one. */
  readonly describe?: ((name: string, body: () => void) => unknown) | undefined;
  /** Returns an empty store, for one test. It must use the `now` of each call, not its own clock. */
  readonly create: () => Store | Promise<Store>;
  /** Closes what {@link create} opened, after each test, passed or failed. */
  readonly destroy?: ((store: Store) => unknown) | undefined;
  /** The shared vectors, by name of their file: the parsed JSON of the project's `tests/vectors`. */
  readonly vectors?: Readonly<Record<string, VectorFile>> | undefined;
  /**
   * Reads the database directly: returns the state under an identity (`name:key`), `null` for none. With it, the vectors
   * also compare what is stored.
   */
  readonly stored?: ((store: Store) => Stored) | undefined;
  /**
   * Overwrites, directly in the database, what is stored under an identity (`name:key`) with something that is not a
   * state. With it, the suite tests that calls on such a key fail, and no others.
   */
  readonly corrupt?: ((store: Store) => (identity: string) => unknown) | undefined;
}

const OPTIONS: Readonly<Record<keyof StoreSuiteOptions, Check>> = {
  test: FUNCTION,
  describe: FUNCTION,
  create: FUNCTION,
  destroy: FUNCTION,
  vectors: {
    expects: "an object of vectors, by name of their file",
    accepts: (files) => typeof files === "object" && files !== null,
  },
  stored: FUNCTION,
  corrupt: FUNCTION,
  approximate: STRING,
  refusesLimitAll: STRING,
  refusesShards: STRING,
  shardsApart: STRING,
};

/** The most differences in the message of a failed test. */
const SHOWN = 5;

/**
 * The contract of a store, as tests for any runner. They cover decisions to the bit, odd keys, denials and checks that
 * write nothing, `limitAll`, shards, and exact totals under concurrency. The package's own stores pass it.
 *
 * ```ts
 * import { test, describe } from "vitest"; // or node:test, bun:test, jest, mocha; or test: Deno.test
 * import { storeSuite } from "tidegate/testing";
 *
 * storeSuite({ test, describe, create: () => myStore(connection), destroy: () => connection.flush() });
 * ```
 *
 * Each test calls `create` for its own store. It fails with an `Error` that names what was expected, what was
 * returned, and the limit and key. If a store cannot keep a part of the contract, set the {@link Deviations} with the
 * reason.
 */
export function storeSuite(options: StoreSuiteOptions): void {
  checkTable("storeSuite", options, OPTIONS, "an object with test and create");
  for (const field of ["test", "create"] as const) check(field, options[field], FUNCTION);
  const { test, describe = (_name: string, body: () => void) => body(), create, destroy } = options;
  const { approximate, refusesLimitAll, refusesShards, shardsApart, vectors = {}, stored, corrupt } = options;

  async function onStore(body: (store: Store) => Promise<void>): Promise<void> {
    const store = await create();
    try {
      await body(store);
    } finally {
      await destroy?.(store);
    }
  }

  const can = {
    shards: refusesShards === undefined,
    limitAll: refusesLimitAll === undefined,
    corrupt: corrupt !== undefined,
  };
  /** `needed`: what every test of the group needs. */
  const group = (heading: string, all: Cases, needed?: Ability): void => {
    const has = (ability: Ability | undefined): boolean => ability === undefined || can[ability];
    const cases = Object.entries(all).filter(([, { needs }]) => has(needed) && has(needs));
    // Runners refuse a group without a test.
    if (cases.length === 0) return;
    describe(heading, () => {
      for (const [title, run] of cases) test(title, () => onStore((store) => run(stage(store, corrupt?.(store)))));
    });
  };

  group("keys", KEYS);
  group("denials and checks", DENIALS);
  group("operations", OPERATIONS);
  group("several limits", SEVERAL, "limitAll");
  group("shards", SHARDED, "shards");
  group("corrupt states", CORRUPT, "corrupt");
  if (approximate === undefined) group("concurrency", CONCURRENCY);

  const files = Object.entries(vectors);
  if (files.length > 0)
    describe("vectors", () => {
      for (const [file, { vectors: all }] of files) {
        const run = all.filter((vector) => {
          if (vector.steps === undefined) return false;
          if (refusesLimitAll !== undefined && vector.limit === undefined) return false;
          return !isSharded(vector) || (refusesShards === undefined && shardsApart === undefined);
        });
        if (run.length === 0) continue;
        test(`${file}: ${run.length} histories, to the bit`, () =>
          onStore(async (store) => {
            const wrong: string[] = [];
            for (const vector of run) wrong.push(...(await runVector(store, vector, stored?.(store))));
            const rest = wrong.length > SHOWN ? `\n… and ${wrong.length - SHOWN} more` : "";
            holds(wrong.length === 0, wrong.slice(0, SHOWN).join("\n") + rest);
          }));
      }
    });

  const deviations = { approximate, refusesLimitAll, refusesShards, shardsApart };
  for (const [deviation, reason] of Object.entries(deviations)) {
    if (reason === undefined) continue;
    test(`deviates (${deviation}): ${reason}`, () =>
      onStore(async (store) => {
        holds(typeof reason === "string" && reason.length > 0, `\`${deviation}\` must say why`);
        if (deviation === "refusesLimitAll") await refuses(store, "limitAll");
        if (deviation === "refusesShards") await refuses(store, "shards");
      }));
  }
}

/** A store must reject what it does not support, and take nothing. */
async function refuses(store: Store, what: "limitAll" | "shards"): Promise<void> {
  const { limits } = stage(store);
  const config = { kind: "token bucket", rate: 10, period: 1000 } as const;
  const subject = limits({ a: config, b: config, parts: { ...config, shards: 2 } });
  let refused = false;
  try {
    if (what === "limitAll") await subject.limitAll([{ name: "a" }, { name: "b" }]);
    else await subject.limit("parts");
  } catch {
    refused = true;
  }
  holds(refused, `the store should reject ${what}, and did not`);
  if (what === "limitAll")
    holds((await subject.getValue("a")).value === 10, "limitAll was rejected, and took from the first limit");
}
