/**
 * What the WebAssembly module exports: see crates/wasm. Nothing but numbers goes across; keys and answers lie in its memory.
 * A status is a word of `tidegate_table::wire`; a flag is 0 or 1; a `value` of NaN stands for no state.
 */
export interface Exports {
  readonly memory: WebAssembly.Memory;
  /** Where a key or a name is written, and where the eight numbers of an answer are. */
  key_at(): number;
  numbers_at(): number;
  /** Its number, or a status below 0. */
  limit_new(
    table: number,
    nameLength: number,
    kind: number,
    given: number,
    rate: number,
    period: number,
    capacity: number,
    maxReserved: number,
    start: number,
    shards: number,
  ): number;
  limit_drop(limit: number): void;

  /** The algebra on a state of the caller's. */
  start(limit: number, keyLength: number): number;
  evaluate(
    limit: number,
    oneShard: number,
    start: number,
    value: number,
    ts: number,
    now: number,
    count: number,
    flags: number,
  ): number;
  project(limit: number, start: number, value: number, ts: number, now: number): number;
  /** The same where some of the state's tokens are in hand; the sixth number is what is left there. */
  lease_spend(
    limit: number,
    start: number,
    value: number,
    ts: number,
    hand: number,
    now: number,
    count: number,
  ): number;
  full_at(limit: number, oneShard: number, start: number, value: number, ts: number, now: number): number;

  /** The same on the states of several shards, which lie at {@link Exports.pool_at}. */
  pool_at(states: number): number;
  pool_pick(limit: number, random: number): number;
  pool_decide(
    limit: number,
    states: number,
    pair: number,
    start: number,
    now: number,
    count: number,
    flags: number,
  ): number;
  pool_value(limit: number, states: number, start: number, now: number): number;

  /** The table: bounded, in the module's memory. */
  table_new(maxKeys: number): number;
  table_drop(table: number): void;
  decide(
    table: number,
    limit: number,
    keyLength: number,
    now: number,
    count: number,
    flags: number,
    random: number,
  ): number;
  value(table: number, limit: number, keyLength: number, now: number): number;
  reset(table: number, limit: number, keyLength: number): number;
  stats(table: number): number;
  all_clear(): void;
  all_stage(limit: number, keyLength: number, count: number, reserve: number, random: number): number;
  all_commit(table: number, now: number, takes: number): number;
  /** A dump: address and length are the first two numbers of the answer. */
  dump(table: number): number;
  room(bytes: number): number;
  restore(maxKeys: number): number;
}

/** The module, ready to be called: it imports nothing. */
export function instantiate(module: WebAssembly.Module): Exports {
  return new WebAssembly.Instance(module).exports as unknown as Exports;
}
