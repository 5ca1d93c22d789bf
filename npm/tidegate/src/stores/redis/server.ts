/** The server as the parts of the store share it: its keys, what waits for it, its clock and what it denied. */

import type { Decision, State } from "../../limit/decision.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Deadline } from "../contract.ts";
import { Call } from "./line.ts";
import type { Link } from "./client.ts";
import { ServerClock } from "../server-clock.ts";
import type { Denials } from "./denials.ts";
import { serverKey, slotOf } from "./key.ts";
import type { Line, Owner } from "./line.ts";
import type { Options } from "./options.ts";
import { Outbox } from "./outbox.ts";
import type { Program } from "./program.ts";
import { Spec, type SpecOp } from "./spec.ts";
import { type Member, Unit } from "./unit.ts";

/** Denials of limits with more shards than these are not remembered. */
const MOST_SHARDS = 64;

/** Slots that count as one node while the client has not found their master: 64 nodes in all. */
const SLOTS_TOGETHER = 256;

/** A request on one key, as {@link Server.ask} takes it. */
export interface Ask {
  readonly op: SpecOp;
  readonly limit: Limit;
  readonly key: string | undefined;
  readonly shard?: number | undefined;
  readonly start: number;
  readonly count: number;
  readonly reserve: boolean;
}

export class Server {
  readonly link: Link;
  readonly denials: Denials;
  readonly clock: ServerClock = new ServerClock();
  readonly #options: Options;
  readonly #outbox: Outbox;
  /** A limit's commonest spec: takes one token. */
  readonly #takesOne = new WeakMap<Limit, Spec>();

  constructor(link: Link, options: Options, denials: Denials) {
    this.link = link;
    this.denials = denials;
    this.#options = options;
    this.#outbox = new Outbox(link, this.clock, {
      answered: (program, sentAt) => this.#remember(program, sentAt),
    });
  }

  /** Runs what brings tokens back to a place: what was denied there meanwhile is not remembered. */
  async bringsBack<T>(place: string, run: () => Promise<T>): Promise<T> {
    this.denials.open(place);
    try {
      return await run();
    } finally {
      this.denials.close(place);
    }
  }

  /** Where a limit (or one shard of it) stands on the server. */
  keyOf(limit: Limit, key: string | undefined, shard?: number): string {
    const { prefix, tag } = this.#options;
    return serverKey(prefix, limit.name, shard, key, tag(limit.name, key));
  }

  /** Whether these keys are on one server for sure, so that one script call can be about all of them. */
  together(keys: readonly string[]): boolean {
    if (!this.link.cluster) return true;
    const [first, ...rest] = keys.map((key) => slotOf(this.link.keyPrefix + key));
    return rest.every((slot) => slot === first);
  }

  /** The master that has a limit and key, or the part of the slots that they are in. */
  nodeOf(limit: Limit, key: string | undefined): string {
    if (limit.policy.shards > 1 && !this.shardsTogether(limit, key)) return "the masters of all shards";
    const slot = slotOf(this.link.keyPrefix + this.keyOf(limit, key, limit.policy.shards > 1 ? 0 : undefined));
    return this.link.masterOf(slot) ?? `slots from ${slot - (slot % SLOTS_TOGETHER)}`;
  }

  /** Sends one request on one key, with whatever else leaves in this turn. */
  ask(place: string, ask: Ask, now: number | undefined, deadline: Deadline): Promise<Call> {
    return new Promise((resolve, reject) => {
      const program = this.#outbox.program(place, now);
      const line = this.#outbox.line(program, place, ask);
      line.calls.push(new Call(this.#spec(line, ask), ask.limit, deadline, resolve, reject));
      program.size++;
    });
  }

  /** The same, for whoever needs only the decision. */
  decide(place: string, ask: Ask, now: number | undefined, deadline: Deadline): Promise<Decision> {
    return new Promise((resolve, reject) => {
      const program = this.#outbox.program(place, now);
      const line = this.#outbox.line(program, place, ask);
      const answer = (call: Call) => resolve(call.decision as Decision);
      line.calls.push(new Call(this.#spec(line, ask), ask.limit, deadline, answer, reject));
      program.size++;
    });
  }

  /** Sends requests that are carried out together or not at all; `build` adds the lines to the program. */
  askUnit(
    place: string,
    now: number | undefined,
    deadline: Deadline,
    build: (line: (place: string, of: Owner) => Line) => readonly Member[],
  ): Promise<Unit> {
    return new Promise((resolve, reject) => {
      const program = this.#outbox.program(place, now);
      const members = build((at, of) => this.#outbox.line(program, at, of));
      program.units.push(new Unit(members, deadline, resolve, reject));
      program.size += members.length;
    });
  }

  #spec(line: Line, { op, limit, shard, start, count, reserve }: Ask): Spec {
    const oneShard = shard !== undefined;
    // A request that is the same as the one before it on this key is told as "once more".
    const last = line.calls.at(-1);
    if (last?.limit === limit && last.spec.is(op, count, reserve, oneShard, start)) return last.spec;
    const usual = op === "take" && count === 1 && !reserve && !oneShard && limit.policy.kind === "token bucket";
    const known = usual ? this.#takesOne.get(limit) : undefined;
    if (known !== undefined) return known;
    const spec = new Spec(op, count, reserve, oneShard, start, limit.policy);
    if (usual) this.#takesOne.set(limit, spec);
    return spec;
  }

  /** Whether one script call can be about all shards of this limit and key. */
  shardsTogether(limit: Limit, key: string | undefined): boolean {
    const { cluster, keyPrefix } = this.link;
    return !cluster || this.#options.tag(limit.name, key) !== undefined || /^[^{]*\{[^}]+\}/.test(keyPrefix);
  }

  /** Remembers the shards that denied together; the first of their script calls left at `sentAt`. */
  rememberShards(
    limit: Limit,
    key: string | undefined,
    states: readonly (State | null)[],
    passed: boolean,
    sentAt: number,
  ): void {
    if (states.length <= MOST_SHARDS) this.denials.keep(this.keyOf(limit, key), { states, passed }, sentAt);
  }

  #remember(program: Program, sentAt: number): void {
    const passed = program.now !== undefined;
    for (const line of program.lines.values()) {
      const last = line.calls.at(-1);
      if (last === undefined || line.corrupt || last.spec.oneShard) continue;
      if (last.decision?.ok === false) this.denials.keep(line.place, { states: [line.state], passed }, sentAt);
      else this.denials.forget(line.place);
    }
    for (const { members, decisions } of program.units) {
      for (const [i, { ask, place, lines }] of members.entries()) {
        if (decisions[i]?.ok !== false || ask === "pair" || lines.length > MOST_SHARDS) continue;
        this.denials.keep(place, { states: lines.map((line) => line.state), passed }, sentAt);
      }
    }
  }
}
