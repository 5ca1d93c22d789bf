/** The store on Deno KV: which keys it uses. `tests/hosts/deno` runs it on a real one. */
import { expect, test } from "vitest";
import { defineLimits, MINUTE } from "../src/index.ts";
import { denoKv } from "../src/stores/deno-kv.ts";

type KvKey = readonly string[];

/** The bytes of a key as Deno KV stores it: each part with a byte before and after it, and another after each NUL. */
const bytesOf = (key: KvKey): number =>
  key.reduce((sum, part) => sum + 2 + new TextEncoder().encode(part.replaceAll("\0", "\0\0")).length, 0);

/** A database as Deno KV is, which refuses keys of more than 2048 bytes. */
function database() {
  const entries = new Map<string, unknown>();
  const idOf = (key: KvKey): string => {
    if (bytesOf(key) > 2048) throw new TypeError("Key too large for write (max 2048 bytes)");
    return JSON.stringify(key.map((part) => Buffer.from(part).toString()));
  };
  const atomic = () => {
    const writes: [string, unknown][] = [];
    const operation = {
      check: () => operation,
      set(key: KvKey, value: unknown) {
        writes.push([idOf(key), value]);
        return operation;
      },
      delete: () => operation,
      async commit() {
        for (const write of writes) entries.set(...write);
        return { ok: true };
      },
    };
    return operation;
  };
  const get = async (key: KvKey) => ({
    value: entries.get(idOf(key)),
    versionstamp: entries.has(idOf(key)) ? "1" : null,
  });
  return { entries, kv: { get, atomic } as never };
}

const once = { kind: "token bucket", rate: 1, period: MINUTE } as const;
const name = "n".repeat(64);

test.each([
  ["NUL", "\0".repeat(1024), `${"\0".repeat(1023)}a`],
  ["half of a character", "\ud800".repeat(341), "\ud801".repeat(341)],
  ["a three-byte character", "€".repeat(341), `${"€".repeat(340)}¢`],
])("the longest keys of %s are stored and differ, with the longest name and prefix", async (_, key, other) => {
  const { entries, kv } = database();
  for (const prefix of ["p".repeat(128), "\0".repeat(128), "€".repeat(128)]) {
    const limits = defineLimits(
      { [name]: once, shards: { ...once, rate: 2, shards: 2 } },
      { store: denoKv(kv, { prefix }), log: false },
    );
    for (const each of [key, other]) expect(await limits.limit(name, { key: each })).toMatchObject({ ok: true });
    const denied = await limits.limit(name, { key });
    expect([denied.ok, denied.cause]).toEqual([false, undefined]);
    expect(await limits.limit("shards", { key })).toMatchObject({ ok: true });
  }
  expect(entries.size).toBe(9);
});

test("a longer prefix is a mistake, since long keys would fail with it", () => {
  const expected = "`prefix` must be a string of at most 128 characters; got ";
  expect(() => denoKv(database().kv, { prefix: "p".repeat(129) })).toThrow(expected);
  expect(() => denoKv(database().kv, { prefix: 5 as never })).toThrow(`${expected}5`);
});
