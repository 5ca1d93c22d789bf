import type { State } from "../../decision.ts";
import type { Limit } from "../../limit.ts";
import type { Before } from "./answer.ts";
import type { Call } from "./call.ts";

/** Whose key it is. */
export interface Owner {
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly shard?: number | undefined;
}

/** One key of one script call: what is asked of it in turn, and then what it held. */
export class Line {
  /** Which key of the call it is, from 1; 0 until that is settled. */
  index = 0;
  calls: Call[] = [];
  /** What it held before, once the answer is there. */
  before: Before = null;
  /** What it holds at this point of the replay. */
  state: State | null = null;
  /** Whether what it holds at this point is no state. */
  corrupt = false;
  /** Where it stands on the server. */
  readonly place: string;
  readonly #of: Owner;

  constructor(place: string, of: Owner) {
    this.place = place;
    this.#of = of;
  }

  /** The limit's name, shard and key, for errors. */
  get identity(): string {
    const { limit, key, shard } = this.#of;
    return limit.identity(key, shard);
  }

  /** Takes over what the server found. */
  found(before: Before): void {
    this.before = before;
    this.corrupt = typeof before === "string";
    this.state = typeof before === "string" ? null : before;
  }
}
