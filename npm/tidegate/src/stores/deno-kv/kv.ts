/** What is used of `Deno.Kv`, by shape. */

export type KvKey = readonly string[];

export interface KvEntry {
  readonly value: unknown;
  readonly versionstamp: string | null;
}

export interface KvAtomic {
  check(...checks: { key: KvKey; versionstamp: string | null }[]): KvAtomic;
  set(key: KvKey, value: unknown, options?: { expireIn?: number }): KvAtomic;
  delete(key: KvKey): KvAtomic;
  commit(): Promise<{ ok: boolean }>;
}

export interface KvLike {
  // As `Deno.Kv` declares them, so that it is one.
  get(key: never): Promise<KvEntry>;
  atomic(): unknown;
}

/** The same, as it is called here. */
export interface Kv {
  get(key: KvKey): Promise<KvEntry>;
  atomic(): KvAtomic;
}
