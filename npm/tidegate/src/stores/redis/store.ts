import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { AsyncStore, Call as StoreCall, Deadline } from "../contract.ts";
import { linkTo, type RedisLike } from "./client.ts";
import { Denials } from "./denials.ts";
import { STORE } from "./failure.ts";
import { type Options, type RedisOptions, readOptions } from "./options.ts";
import { Server } from "./server.ts";
import { decideAll } from "./several.ts";
import * as sharded from "./sharded.ts";
import * as single from "./single.ts";

/** State on a Redis or Valkey server, or a cluster of them. */
export class RedisStore implements AsyncStore {
  readonly name: string = STORE;
  readonly sync = false;
  readonly lease: RedisOptions["lease"];
  /** The master of a cluster that serves a limit and key; absent where there is one server. */
  readonly nodeOf?: (limit: Limit, key: string | undefined) => string;
  readonly #server: Server;

  constructor(client: RedisLike, options: RedisOptions = {}) {
    const settled: Options = readOptions(options);
    this.lease = options.lease;
    const link = linkTo(client);
    const server = new Server(link, settled, new Denials(settled.rememberDenials));
    this.#server = server;
    if (link.cluster) this.nodeOf = (limit, key) => server.nodeOf(limit, key);
  }

  decide(call: StoreCall, now: number | undefined, deadline?: Deadline): Promise<Decision> {
    const at = whole(now);
    return call.limit.policy.shards === 1
      ? single.decide(this.#server, call, at, deadline)
      : sharded.decide(this.#server, call, at, deadline);
  }

  decideAll(calls: readonly StoreCall[], now: number | undefined, deadline?: Deadline): Promise<AllDecision> {
    return decideAll(this.#server, calls, whole(now), deadline);
  }

  reset(limit: Limit, key: string | undefined, deadline?: Deadline): Promise<void> {
    const { reset } = limit.policy.shards === 1 ? single : sharded;
    return reset(this.#server, limit, key, deadline);
  }

  getValue(limit: Limit, key: string | undefined, now: number | undefined, deadline?: Deadline): Promise<State> {
    const { getValue } = limit.policy.shards === 1 ? single : sharded;
    return getValue(this.#server, limit, key, whole(now), deadline);
  }
}

/** A fractional clock is floored on the way in, as the core does. */
const whole = (now: number | undefined): number | undefined => (now === undefined ? undefined : Math.floor(now));
