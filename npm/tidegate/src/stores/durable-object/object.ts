/** The Durable Object that holds states, which the store in durable-object.ts calls. */
import { Base } from "#workers";
import { messageOf } from "../../limit/errors.ts";
import { tagOf } from "../../limit/realms.ts";
import { shardingBy } from "../../limit/shards.ts";
import { dropAtOf, readRecord, wellFormed, writeRecord } from "../record.ts";
import { Steps, type Transaction } from "../steps.ts";
import { NOT_SENT } from "../failure.ts";
import type { ObjectContext, ObjectNamespace, ObjectStorage, ObjectStub } from "./shapes.ts";
import {
  type Answer,
  NAME,
  onShards,
  received,
  refused,
  type Reply,
  type Request,
  sender,
  withoutPolicy,
} from "./wire.ts";

/** Alarms are set on a grid of this many ms, so that a busy object is woken, and writes its alarm, rarely. */
const ALARM_EVERY = 10_000;
/** ms that a full state is kept on: by then it is full by the clocks of all callers. */
const SLACK = 30_000;
/** The most entries that one call on a storage takes. */
const BATCH = 128;
const SHARDING = shardingBy(() => Math.random());
const ignore = (): void => {};

/**
 * The Durable Object that holds states: export it from the Worker, and bind a namespace to it.
 *
 * ```ts
 * export { TidegateObject } from "tidegate/durable-object";
 * ```
 *
 * ```jsonc
 * // wrangler.jsonc
 * "durable_objects": { "bindings": [{ "name": "LIMITS", "class_name": "TidegateObject" }] },
 * "migrations": [{ "tag": "v1", "new_sqlite_classes": ["TidegateObject"] }]
 * ```
 *
 * It works on SQLite-backed storage and on the older one (`new_classes`). A state is 16 bytes, and 8 more are the time
 * until which it is kept. Only grants write. An alarm deletes states that have been full for half a minute. States are not
 * kept in memory, so eviction and restarts lose nothing. The object runs its calls one after another, each from its read to
 * its write, so a subclass may await before `super.handle`. Answers leave it when their writes are durable.
 */
export class TidegateObject extends Base {
  /** The brand that `DurableObjectNamespace<TidegateObject>` requires. */
  declare readonly __DURABLE_OBJECT_BRAND: never;
  readonly #storage: ObjectStorage;
  /** The end of the last call or page of the alarm. */
  #last: Promise<void> = Promise.resolve();
  /** The namespace of this object; `undefined` until a binding of its Worker to it is found. */
  #siblings: ObjectNamespace | undefined;
  /** The alarm that is set; `undefined` until it is read. */
  #alarmAt: number | null | undefined;
  /** Steps that wrote. */
  #written = 0;

  constructor(ctx: ObjectContext, env: unknown) {
    super(ctx, env);
    this.#storage = ctx.storage;
  }

  /** One request of a store that {@link durableObject} makes, or of the object of another shard. */
  async handle(request: Request): Promise<Reply> {
    const { objects, timeout } = request;
    if (objects === undefined) return this.#step(request);
    this.#siblings ??= this.#findSiblings(objects);
    const siblings = this.#siblings;
    if (siblings === undefined) return { alone: true };
    const send = sender((object, one) => {
      const id = siblings.idFromName(wellFormed(object));
      return String(id) === String(this.ctx.id) ? this.#step(one) : (siblings.get(id) as ObjectStub).handle(one);
    });
    // Not in turn: two objects that both waited for each other in a turn of their own would wait forever.
    try {
      const deadline = timeout === undefined ? undefined : { at: performance.now() + timeout };
      return { answer: await onShards(request, objects, send, deadline) };
    } catch (error) {
      return refused(error);
    }
  }

  /** The binding of this object's Worker to this object's namespace, if there is one: that in which one of these is it. */
  #findSiblings(objects: readonly string[]): ObjectNamespace | undefined {
    const own = String(this.ctx.id);
    for (const binding of Object.values(Object(this.env) as Record<string, unknown>)) {
      // A binding of another kind may be a proxy, which has any method.
      if (tagOf(binding) !== "[object DurableObjectNamespace]") continue;
      const namespace = binding as ObjectNamespace;
      if (objects.some((object) => String(namespace.idFromName(wellFormed(object))) === own)) return namespace;
    }
    return undefined;
  }

  /** Runs calls and pages of the alarm one after another: the object's input gate alone does not keep them apart. */
  #inTurn<T>(run: () => Promise<T>): Promise<T> {
    const answer = this.#last.then(run);
    this.#last = answer.then(ignore, ignore);
    return answer;
  }

  async #step(request: Request): Promise<Reply> {
    const { timeout = Infinity } = request;
    const until = performance.now() + timeout;
    try {
      const answer = await this.#inTurn(async () => {
        if (performance.now() >= until) throw NOT_SENT;
        return this.#answer(request);
      });
      return { answer };
    } catch (error) {
      return refused(error, "key");
    }
  }

  async #answer({ operation, calls, shard, now = Date.now() }: Request): Promise<Answer> {
    const all = calls.map(received);
    const [call] = all;
    if (call === undefined) throw new TypeError("a call is missing");
    return this.#transaction(now, async (steps): Promise<Answer> => {
      if (operation === "reset") return void (await steps.reset(call.limit, call.key, shard));
      if (operation === "getValue") return steps.getValue(call.limit, call.key);
      if (operation === "decideAll") {
        const { decisions, ...rest } = await steps.decideAll(all);
        return { ...rest, decisions: decisions.map(withoutPolicy) };
      }
      if (shard === undefined) return withoutPolicy(await steps.decide(call));
      const { before, decision } = await steps.decideShard(call, shard);
      return { before, decision: withoutPolicy(decision) };
    });
  }

  /** Deletes what is full, and sets the next alarm if something is left. */
  async alarm(): Promise<void> {
    // It has gone off: a call that writes meanwhile sets another.
    this.#alarmAt = null;
    const now = Date.now();
    const written = this.#written;
    let nextAt = Infinity;
    let startAfter: string | undefined;
    let isEmpty = true;
    do {
      // Each page has a turn: no call writes between the read of a state and its deletion, and none waits for all pages.
      const page = await this.#inTurn(() => this.#sweep(startAfter, now));
      nextAt = Math.min(nextAt, page.nextAt);
      isEmpty &&= page.isEmpty;
      startAfter = page.last;
    } while (startAfter !== undefined);
    await this.#inTurn(async () => {
      // What a call wrote on a page that had been read is kept: a later alarm looks at it.
      if (!isEmpty || this.#written !== written) await this.#alarmFor(isEmpty ? now : nextAt, now);
      else if (!this.#hasTables()) await this.#storage.deleteAll();
    });
  }

  /** Deletes what is full of one page; `last` is the key that the next page starts after, absent if there is none. */
  async #sweep(startAfter: string | undefined, now: number) {
    const page = await this.#storage.list({ limit: BATCH, ...(startAfter === undefined ? {} : { startAfter }) });
    const dropAts = [...page].map(([id, bytes]) => ({ id, dropAt: dropAtOf(bytes) }));
    const full = dropAts.filter(({ dropAt }) => dropAt <= now).map(({ id }) => id);
    if (full.length > 0) void this.#storage.delete(full);
    return {
      // When the first of its other states may be dropped, ms.
      nextAt: Math.min(...dropAts.map(({ dropAt }) => dropAt).filter((dropAt) => dropAt > now)),
      isEmpty: full.length === page.size,
      last: page.size < BATCH ? undefined : dropAts.at(-1)?.id,
    };
  }

  /** Whether there are tables, which are a subclass's: `deleteAll` would delete them. The runtime's own begin with `_cf_`. */
  #hasTables(): boolean {
    try {
      const names = this.#storage.sql?.exec("SELECT 1 FROM sqlite_master WHERE name NOT GLOB '_cf_*'");
      return [...(names ?? [])].length > 0;
    } catch (error) {
      // The older storage throws this, and has no tables.
      return !/SQL is not enabled/.test(messageOf(error));
    }
  }

  async #transaction<T>(at: number, body: (steps: Steps) => Promise<T>): Promise<T> {
    const storage = this.#storage;
    const writes = new Map<string, Uint8Array | undefined>();
    const now = Date.now();
    let nextAt = Infinity;
    const states: Transaction = {
      async get(id) {
        const bytes = await storage.get(wellFormed(id));
        return bytes === undefined ? null : readRecord(bytes as Uint8Array).state;
      },
      set(id, state, fullAt) {
        const dropAt = now + Math.max(fullAt - at, 0) + SLACK;
        writes.set(wellFormed(id), writeRecord(state, dropAt));
        nextAt = Math.min(nextAt, dropAt);
      },
      delete: (id) => void writes.set(wellFormed(id), undefined),
    };
    const result = await body(new Steps(states, NAME, at, SHARDING));
    if (writes.size === 0) return result;
    this.#written++;
    if (this.#alarmAt === undefined) this.#alarmAt = await storage.getAlarm();
    // No `await` from here on: what is written in one go becomes durable together. A failure breaks the object, and
    // with it the answer.
    const entries = [...writes];
    const put = entries.filter(([, bytes]) => bytes !== undefined) as [string, Uint8Array][];
    const deleted = entries.filter(([, bytes]) => bytes === undefined).map(([id]) => id);
    for (let i = 0; i < put.length; i += BATCH) void storage.put(Object.fromEntries(put.slice(i, i + BATCH)));
    for (let i = 0; i < deleted.length; i += BATCH) void storage.delete(deleted.slice(i, i + BATCH));
    if (put.length > 0) void this.#alarmFor(nextAt, now);
    return result;
  }

  /** Sets an alarm for soon after that time, unless there is an earlier one. */
  #alarmFor(dropAt: number, now: number): Promise<void> | undefined {
    const at = Math.ceil(dropAt / ALARM_EVERY) * ALARM_EVERY;
    const alarmAt = Math.min(at, MAX_ALARM);
    if (typeof this.#alarmAt === "number" && this.#alarmAt <= alarmAt && this.#alarmAt > now) return undefined;
    this.#alarmAt = alarmAt;
    return this.#storage.setAlarm(alarmAt);
  }
}

/** The latest ms, rounded down (the year 2255), whose nanoseconds fit into 64 bits, which is how alarms are kept. */
const MAX_ALARM = 9_000_000_000_000;
