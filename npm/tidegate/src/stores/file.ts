/**
 * State in a local folder, for all threads and processes of a machine.
 *
 * @module
 */
import { checkFields, fieldTable } from "../config.ts";
import type { AllDecision, Decision, State } from "../decision.ts";
import { fileURLToPath } from "node:url";
import { type Addon, type AddonSource, here, lent, loadAddon, packageOf } from "../engine/addon.ts";
import { decisionOf, refuse } from "../engine/answer.ts";
import { INPUT_ERROR, OPS, RESERVE } from "../engine/generated/wire.ts";
import { InputError, StoreError } from "../errors.ts";
import type { Limit } from "../limit.ts";
import type { Call, SyncStore } from "../store.ts";
import { KEY_TOO_LONG, joined, NO_KEY, settled, staged, told, tooLong, unitsOf } from "./addon-calls.ts";
import { checkMaxKeys, type MemoryStats } from "./memory.ts";

/** The addon's status for a folder that cannot be used. */
const FAILED = 2048;

/** The operations, by the lowest two bits of the flags. */
const OP_NAMES = Object.keys(OPS);
const OPTIONS = fieldTable("maxKeys", "sync");
const SYNC_MOST = 2 ** 31 - 1;

/** What a folder holds, and what this process has dropped from it. */
export interface FileStats extends MemoryStats {
  /** Why the last snapshot could not be made, where it could not: until one is, a power cut loses more than `sync` says. */
  syncError: string | undefined;
}

/** Settings of {@link file}. */
export interface FileOptions {
  /**
   * Most states held: a whole number, 1 to 16,777,216; default 100,000. The file takes 16 MiB and 160 bytes for each,
   * from the start. When there is no room, the fullest state of those looked at goes first; `stats().evicted` counts
   * those that were not full.
   */
  maxKeys?: number | undefined;
  /**
   * What a power cut, or a crash of the system, may take away: at most the grants of the last so many ms, a whole number
   * from 1 to 2^31 - 1; default 1000. `"always"` syncs each write before it is answered: nothing is lost, and a call that writes
   * takes as long as the disk. A process that is killed loses nothing, whatever this says.
   */
  sync?: number | "always" | undefined;
}

/** State in a folder that all threads and processes of a machine share. Its calls answer at once. */
export class FileStore implements SyncStore {
  readonly name = "file";
  readonly sync = true;
  /** Where its state is. */
  readonly path: string;
  readonly #addon: Addon;
  readonly #store: number;
  readonly #handles = new WeakMap<Limit, number>();
  #lastLimit: Limit | undefined;
  #lastHandle = -1;

  constructor(addon: Addon, path: string, maxKeys: number, sync: number) {
    this.#addon = addon;
    this.path = path;
    try {
      this.#store = addon.fileOpen(lent, path, maxKeys, sync);
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      throw new StoreError(what, { store: "file", operation: "open", identity: path, cause: error });
    }
  }

  decide(call: Call, now: number = Date.now()): Decision {
    const flags = OPS[call.op] | (call.reserve ? RESERVE : 0);
    return this.decideFast(call.limit, call.key, call.count, flags, now);
  }

  /** {@link decide} without an object for the call: numbers are the engine's to check. */
  decideFast(limit: Limit, key: string | undefined, count: number, flags: number, now: number): Decision {
    if (limit !== this.#lastLimit) {
      this.#lastHandle = this.#handle(limit);
      this.#lastLimit = limit;
    }
    lent[0] = now;
    lent[1] = count;
    if (limit.policy.shards > 1) lent[2] = Math.random();
    const given = key === undefined ? flags | NO_KEY : flags;
    const status = this.#addon.fileDecide(this.#lastHandle, given, key, this.#store);
    if (status >= INPUT_ERROR) {
      if (status === KEY_TOO_LONG) throw tooLong(key);
      this.#refuse(status, { count, now }, OP_NAMES[flags & 3] ?? "take", () => limit.identity(key));
    }
    return decisionOf(status, lent, limit.policy, Math.floor(now));
  }

  decideAll(calls: readonly Call[], now: number = Date.now()): AllDecision {
    const limits = Uint32Array.from(calls, (call) => this.#handle(call.limit));
    const { units, ends, answers, takes, wrong } = staged(calls);
    const [status, retryAt] = this.#addon.fileAll(this.#store, limits, units, ends, answers, now, takes);
    const identity = () => calls.map((call) => call.limit.identity(call.key)).join(",");
    this.#refuse(status, { now, count: wrong }, "limitAll", identity);
    return settled(calls, answers, status, retryAt, Math.floor(now));
  }

  /**
   * One call each on many keys, each by itself, in one transaction: what a batch of messages or log lines needs.
   *
   * Returns one decision per key, in their order.
   */
  decideMany(limit: Limit, keys: readonly string[], count = 1, now: number = Date.now()): Decision[] {
    const handle = this.#handle(limit);
    const answers = new Float64Array(new ArrayBuffer(keys.length * 64));
    if (limit.policy.shards > 1) for (let i = 0; i < keys.length; i++) answers[i * 8] = Math.random();
    const { units, ends } = joined(keys);
    const status = this.#addon.fileMany(this.#store, handle, units, ends, answers, now, count, OPS.take);
    this.#refuse(status, { count, now }, "limitMany", () => limit.name);
    return told(
      answers,
      keys.map(() => limit),
      Math.floor(now),
    );
  }

  reset(limit: Limit, key: string | undefined): void {
    const status = this.#addon.fileReset(this.#store, this.#handle(limit), unitsOf(key));
    this.#refuse(status, {}, "reset", () => limit.identity(key));
  }

  getValue(limit: Limit, key: string | undefined, now: number = Date.now()): State {
    const status = this.#addon.fileValue(this.#store, this.#handle(limit), unitsOf(key), now);
    this.#refuse(status, { now }, "getValue", () => limit.identity(key));
    return { value: lent[0] as number, ts: lent[1] as number };
  }

  /** What the folder holds, and what this process has dropped from it. */
  stats(): FileStats {
    try {
      const { keys, maxKeys, evicted, expired, bytes, syncError } = this.#addon.fileStats(this.#store);
      return { keys, maxKeys, evicted, expired, bytes, syncError };
    } catch (error) {
      const what = error instanceof Error ? error.message : String(error);
      throw new StoreError(what, { store: "file", operation: "stats", identity: this.path, cause: error });
    }
  }

  /**
   * Closes it on this thread: calls fail from then on. Not needed before a process ends; where no other thread of it has
   * the folder open, a snapshot is made.
   */
  close(): void {
    this.#addon.fileClose(this.#store);
  }

  #handle(limit: Limit): number {
    let handle = this.#handles.get(limit);
    if (handle === undefined) {
      const { kind, given, rate, period, capacity, maxReserved, start, shards } = limit.numbers;
      lent.set([rate, period, capacity, maxReserved, start, shards]);
      handle = this.#addon.fileLimitNew(this.#store, limit.name, kind, given);
      if (handle < 0) this.#refuse(-handle, limit.numbers, "limit", () => limit.name);
      this.#handles.set(limit, handle);
    }
    return handle;
  }

  #refuse(status: number, passed: Parameters<typeof refuse>[1], operation: string, identity: () => string): void {
    if (status === FAILED) {
      throw new StoreError(this.#addon.fileFault(), { store: "file", operation, identity: identity() });
    }
    refuse(status, passed);
  }
}

function checkPath(path: unknown): string {
  const plain = path instanceof URL && path.protocol === "file:" ? fileURLToPath(path) : path;
  if (typeof plain === "string" && plain !== "" && !plain.includes("\0")) return plain;
  throw new InputError("path", "the path of a folder, a string or a file: URL", path);
}

function checkSync(sync: unknown): number {
  if (sync === "always") return 0;
  if (typeof sync === "number" && Number.isInteger(sync) && sync >= 1 && sync <= SYNC_MOST) return sync;
  throw new InputError("sync", `"always", or a whole number of ms from 1 to ${SYNC_MOST}`, sync);
}

/**
 * The store in a folder of this machine, exact across all threads and processes that open it (node:cluster, PM2), with no
 * server and no messages to a primary. Synchronous, in the native addon, on LMDB.
 *
 * ```ts
 * // in every process
 * const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: SECOND } }, { store: file("./limits") });
 * ```
 *
 * `path`: a folder of its own on a local disk; it is made where it is not there. Processes killed at any moment lose
 * nothing that was answered; see {@link FileOptions.sync} for a power cut. All that have it open share its settings: who
 * leaves one out takes what the others chose.
 *
 * Throws an `InputError` where an argument is out of range, and a `StoreError` that names the path and the remedy where
 * the folder cannot be used: no rights, no room, a network file system, a damaged file, other settings; or where the
 * addon is missing (`cause` has the whole chain).
 */
export function file(path: string | URL, options: FileOptions = {}, source: AddonSource = here()): FileStore {
  const folder = checkPath(path);
  if (typeof options !== "object" || options === null) throw new InputError("options", "an object", options);
  checkFields(options, OPTIONS, "file");
  const maxKeys = options.maxKeys === undefined ? 0 : checkMaxKeys(options.maxKeys);
  const sync = options.sync === undefined ? -1 : checkSync(options.sync);
  const found = loadAddon(source);
  if ("addon" in found) return new FileStore(found.addon, folder, maxKeys, sync);
  const causes = found.causes.map(({ message }) => message).join("; caused by: ");
  throw new StoreError(
    `tidegate's addon is not there: ${causes}; it is the package ${packageOf(source)}: install it, or use a store that a server shares`,
    { store: "file", operation: "open", identity: folder, cause: found.causes[0] },
  );
}
