import { HOUR } from "../../limit/duration.ts";
import { keyed } from "../../limiter/options.ts";
import { holds, same, shown } from "../expectation.ts";
import { ODD_KEYS } from "../keys.ts";
import { type Cases, needs } from "../subject.ts";

const once = { kind: "token bucket", rate: 1, period: HOUR } as const;
const named = (key: string | undefined): string => (key === undefined ? "no key" : `the key ${shown(key)}`);

/** Different keys have different states, and the same key has the same state again. */
export const KEYS: Cases = {
  "keeps every odd key apart from every other": async ({ limits }) => {
    const subject = limits({ once });
    for (const [i, key] of ODD_KEYS.entries()) {
      const { ok } = await subject.limit("once", keyed(key));
      if (ok) continue;
      for (const earlier of ODD_KEYS.slice(0, i)) {
        // If this key is free again, the reset was that of a key that it was confused with.
        await subject.reset("once", keyed(earlier));
        holds(!(await subject.check("once", keyed(key))).ok, `${named(key)} is taken for ${named(earlier)}`);
      }
      throw new Error(`${named(key)} is denied before it was ever used`);
    }
    for (const key of ODD_KEYS) {
      holds(
        !(await subject.limit("once", keyed(key))).ok,
        `${named(key)} is not found again: a second call is granted`,
      );
    }
  },
  "reset clears one key and no other": async ({ limits }) => {
    const subject = limits({ once });
    for (const key of ODD_KEYS) await subject.limit("once", keyed(key));
    for (const [i, key] of ODD_KEYS.entries()) if (i % 2 === 0) await subject.reset("once", keyed(key));
    for (const [i, key] of ODD_KEYS.entries()) {
      same((await subject.check("once", keyed(key))).ok, i % 2 === 0, `${named(key)}, after every other key was reset`);
    }
  },
  "keeps a limit's name apart from its key": needs("shards", async ({ limits }) => {
    const subject = limits({
      a: once,
      "a.b": once,
      "a-b": once,
      a_b: once,
      ab: once,
      constructor: once,
      parts: { ...once, rate: 2, shards: 2 },
      "parts-0": once,
    });
    const pairs = [];
    for (const name of ["a", "a.b", "a-b", "a_b", "ab", "constructor", "parts-0"] as const) {
      for (const key of [undefined, "b", "b:c", ":b", "b:", ".b", "-b", "_b", "/0", "/0:b", "0:b", "a", "a:b"]) {
        pairs.push({ name, key });
      }
    }
    for (const key of [undefined, "b", "0:b", "/0:b"]) {
      const { ok } = await subject.limit("parts", { ...keyed(key), count: 2 });
      holds(ok, `parts with ${named(key)}, in two shards, was taken for something else`);
    }
    for (const { name, key } of pairs) {
      holds(
        (await subject.limit(name, keyed(key))).ok,
        `${name} with ${named(key)} was taken for another limit and key`,
      );
    }
    for (const { name, key } of pairs) {
      holds(!(await subject.limit(name, keyed(key))).ok, `${name} with ${named(key)} is not found again`);
    }
  }),
};
