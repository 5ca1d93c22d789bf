/** The rows and the kinds of request that one program is about, each once; see `schema/program.sql`. */
import type { Limit } from "../../limit/limit.ts";
import type { Call } from "../contract.ts";
import { byteasOf, inOrder } from "./identity.ts";
import { startOf } from "./plain.ts";

const OPS = { take: 0, check: 1, give: 2, charge: 3 } as const;
/** No reservation ends here: every finite number is above it. */
const NO_FLOOR = -Number.MAX_VALUE;

/** A stretch of rows: one, or all shards of a limit and key. */
export interface Stretch {
  /** Place of the first, from 1. */
  readonly first: number;
  readonly size: number;
}

/** Collects them while a program is made. */
export class Places {
  total = 0;
  /** Rows to read at once: place by identity. What a pool adds is read where it comes to it. */
  readonly #read = new Map<string, number>();
  readonly #stretches = new Map<string, Stretch & { limit: Limit; key: string | undefined }>();
  readonly #specs = new Map<string, number>();
  readonly #numbers: string[] = [];

  /** Where the rows of this limit and key stand. */
  stretch(limit: Limit, key: string | undefined): Stretch {
    const { shards } = limit.policy;
    const id = `${limit.identity(key)}/${shards}`;
    let stretch = this.#stretches.get(id);
    if (stretch === undefined) {
      stretch = { first: this.total + 1, size: shards, limit, key };
      this.total += shards;
      this.#stretches.set(id, stretch);
      if (shards === 1) this.#read.set(limit.identity(key), stretch.first);
    }
    return stretch;
  }

  /** Where this shard stands; it is read at once. */
  shard(limit: Limit, key: string | undefined, shard: number): number {
    const place = this.stretch(limit, key).first + shard;
    this.#read.set(limit.identity(key, shard), place);
    return place;
  }

  /** Which spec this request is: by the limit as a whole, or by one of its shards. */
  spec(call: Call, oneShard: boolean): number {
    const { op, limit, key, count, reserve } = call;
    const { rate, period, capacity, maxReserved, shards } = limit.policy;
    const by = oneShard ? shards : 1;
    // One shard lends nothing: what it does not hold is asked of the pool.
    const floor = !reserve || oneShard ? 0 : maxReserved === undefined ? NO_FLOOR : -maxReserved;
    const start = startOf(limit, key) ?? "NaN";
    const numbers = [OPS[op], rate / by, period, capacity / by, floor, start, count].join(",");
    let spec = this.#specs.get(numbers);
    if (spec === undefined) {
      this.#numbers.push(numbers);
      spec = this.#numbers.length;
      this.#specs.set(numbers, spec);
    }
    return spec;
  }

  /** The values that `run` takes, the program excepted. */
  values(): { ids: string; places: string; specs: string; pools: readonly [string, string, string, string] } {
    const read = [...this.#read].sort(([a], [b]) => inOrder(a, b));
    const pools = [...this.#stretches.values()].filter(({ size }) => size > 1);
    const list = (items: readonly (string | number)[]): string => `{${items.join(",")}}`;
    return {
      ids: byteasOf(read.map(([id]) => id)),
      places: list(read.map(([, place]) => place)),
      specs: list(this.#numbers),
      pools: [
        byteasOf(pools.map(({ limit }) => `${limit.name}/`)),
        byteasOf(pools.map(({ key }) => (key === undefined ? "" : `:${key}`))),
        list(pools.map(({ first }) => first)),
        list(pools.map(({ size }) => size)),
      ],
    };
  }

  /** The identity that stands at a place, for errors. */
  identityAt(place: number): string {
    for (const { first, size, limit, key } of this.#stretches.values()) {
      if (place >= first && place < first + size) return limit.identity(key, place - first);
    }
    return "";
  }
}
