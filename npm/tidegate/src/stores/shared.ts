/**
 * One table for all threads of a Node.js process.
 *
 * @module
 */
import { type Addon, type AddonSource, here, loadAddon } from "../engine/addon.ts";
import { checkTable } from "../limit/checks.ts";
import { InputError } from "../limit/errors.ts";
import { AddonStore } from "./addon-store.ts";
import { MAX_KEYS, type MemoryStats, MemoryStore } from "./memory.ts";

export type { SharedStore };

/** State in the process's memory, in the addon: every worker thread that calls `shared()` has the same. */
class SharedStore extends AddonStore {
  readonly name = "shared";
  /** Its only errors are mistakes in calls. */
  readonly cannotFail = true;

  constructor(addon: Addon, maxKeys: number) {
    super(addon, addon.openShared(maxKeys));
  }

  /** What the process's table holds and has dropped, so far. */
  stats(): MemoryStats {
    return this.held();
  }
}

const OPTIONS = { maxKeys: MAX_KEYS };

/** Settings of {@link shared}. */
export interface SharedOptions {
  /** Most states held: an integer, 1 to 16,777,216; default 1,000,000. The first call in the process decides. */
  maxKeys?: number | undefined;
}

let opened: SharedStore | MemoryStore | undefined;

/**
 * The store that all worker threads of this process share, in the native addon. Synchronous, and exact across threads. For
 * several processes, use `file()` or a store on a server.
 *
 * ```ts
 * // in every worker
 * const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: SECOND } }, { store: shared() });
 * ```
 * If the addon is missing, broken or of another version, this thread's own memory is used instead. A warning lists the causes,
 * once in each thread, and the store's `name` is `"memory"`.
 *
 * Throws an `InputError` if an option is wrong, and if `maxKeys` is not what the process's table was made with.
 */
export function shared(options: SharedOptions = {}, source?: AddonSource): SharedStore | MemoryStore {
  checkTable("shared", options, OPTIONS);
  const { maxKeys = 1_000_000 } = options;
  if (opened === undefined) {
    // Only now: which libc this is takes milliseconds to find out.
    const found = loadAddon(source ?? here());
    if ("addon" in found) {
      opened = new SharedStore(found.addon, maxKeys);
    } else {
      process.emitWarning(`tidegate's addon did not load, so shared() is this thread's own memory: ${found.why}`, {
        code: "TIDEGATE_ADDON",
        detail: `To load it, ${found.remedy}; or use a store that a server shares.`,
      });
      opened = new MemoryStore({ maxKeys });
    }
  }
  const has = opened.stats().maxKeys;
  if (options.maxKeys !== undefined && options.maxKeys !== has) {
    throw new InputError("maxKeys", `${has}, as the process's table was made with`, options.maxKeys);
  }
  return opened;
}
