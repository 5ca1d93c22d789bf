/**
 * State in a local folder, for all threads and processes of a machine.
 *
 * @module
 */
import { fileURLToPath } from "node:url";
import { checkTable, durationFrom, msOf } from "../limit/checks.ts";
import { type Duration, LONGEST_TIMER } from "../limit/duration.ts";
import { type Addon, type AddonSource, here, loadAddon } from "../engine/addon.ts";
import { InputError, messageOf, show, StoreError } from "../limit/errors.ts";
import { AddonStore } from "./addon-store.ts";
import { MAX_KEYS, type MemoryStats } from "./memory.ts";

const TIME = durationFrom(1, LONGEST_TIMER, true);
const OPTIONS = {
  maxKeys: MAX_KEYS,
  sync: {
    expects: `"always", or ${TIME.expects}`,
    accepts: (sync: unknown) => sync === "always" || TIME.accepts(sync),
  },
};

/** What a folder holds, and what this process has dropped from it. */
export interface FileStats extends MemoryStats {
  /** The error of the last snapshot, if it failed: until one succeeds, a power cut loses more than `sync` allows. */
  syncError: string | undefined;
}

/** Settings of {@link file}. */
export interface FileOptions {
  /**
   * Most states held: an integer, 1 to 16,777,216; default 100,000. The file takes 16 MiB and 160 bytes for each, from the
   * start. When there is no room, the fullest state of a sample is evicted. `stats().evicted` counts those that were not
   * full: each grants its key at most one `capacity` more.
   */
  maxKeys?: number | undefined;
  /**
   * What a power cut, or a crash of the system, may lose: at most the grants of this many ms. An integer from 1 to 2^31 - 1,
   * or a string such as `"1s"`; default 1000. `"always"` syncs each write before the call returns: nothing is lost, and a
   * call that writes takes as long as the disk. A process that is killed loses nothing, whatever this setting.
   */
  sync?: Duration | "always" | undefined;
}

export type { FileStore };

/** State in a folder that all threads and processes of a machine share. Its calls return synchronously. */
class FileStore extends AddonStore {
  readonly name = "file";
  /** Where its state is. */
  readonly path: string;

  constructor(addon: Addon, path: string, maxKeys: number, sync: number) {
    super(
      addon,
      attempt("open", path, () => addon.openFile(path, maxKeys, sync)),
    );
    this.path = path;
  }

  /** What the folder holds, and what this process has dropped from it. */
  stats(): FileStats {
    const held = attempt("stats", this.path, () => this.held());
    return { ...held, syncError: held.syncError };
  }

  /**
   * Closes it on this thread: calls fail from then on. Not needed before a process ends; if no other thread of it has
   * the folder open, a snapshot is made.
   */
  close(): void {
    this.closed();
  }
}

/** Runs what throws the addon's own error if the folder cannot be used. */
function attempt<Result>(operation: string, path: string, run: () => Result): Result {
  try {
    return run();
  } catch (error) {
    throw new StoreError(messageOf(error), { store: "file", operation, identity: path, cause: error });
  }
}

/** The path of a file: URL; `undefined` if it has none, as with another host or an encoded slash. */
function pathOf(url: URL): string | undefined {
  try {
    return fileURLToPath(url);
  } catch {
    return undefined;
  }
}

/** By shape, as Node.js itself decides: in jsdom `URL` is another class. */
function isUrl(value: unknown): value is URL {
  const { href, protocol } = Object(value) as Partial<URL>;
  return typeof href === "string" && typeof protocol === "string";
}

/** The start of a URL's text: a drive of Windows has one letter. */
const SCHEME = /^[a-z][a-z\d+.-]+:(?=\/\/)/i;

/** What was passed, without a server's password. */
function shown(path: unknown): string {
  if (isUrl(path)) return path.protocol === "file:" ? path.href : `a ${path.protocol} URL`;
  const [scheme] = (typeof path === "string" && SCHEME.exec(path)) || [];
  return scheme === undefined ? show(path) : `the text of a ${scheme} URL`;
}

function checkPath(path: unknown): string {
  const plain = isUrl(path) ? pathOf(path) : path;
  if (typeof plain === "string" && plain !== "" && !plain.includes("\0") && !SCHEME.test(plain)) return plain;
  throw new InputError("path", "the path of a folder, a string or a file: URL", path, shown(path));
}

/**
 * The store in a folder of this machine: exact across all threads and processes that open it (node:cluster, PM2), without
 * a server. Synchronous, in the native addon, on LMDB.
 *
 * ```ts
 * // in every process
 * const limits = defineLimits({ api: { kind: "token bucket", rate: 100, period: SECOND } }, { store: file("./limits") });
 * ```
 * `path`: a folder on a local disk, with nothing else in it; it is created (mode 700) if it does not exist. Its files contain the
 * secret of the key hashes, so they have mode 600; files that other users could read are changed to it. A process that is
 * killed at any moment loses no decision that it returned; see {@link FileOptions.sync} for a power cut. All processes that have
 * the folder open share its settings: an omitted setting is what the others chose.
 *
 * Throws an `InputError` if an argument is out of range. Throws a `StoreError` if the addon is missing, or the folder
 * cannot be used: no rights, no room, a network file system, a damaged file, other settings. It names the path and the
 * remedy; `cause` has the whole chain.
 */
export function file(path: string | URL, options: FileOptions = {}, source: AddonSource = here()): FileStore {
  const folder = checkPath(path);
  checkTable("file", options, OPTIONS);
  const { maxKeys = 0, sync = -1 } = options;
  const found = loadAddon(source);
  if ("addon" in found) return new FileStore(found.addon, folder, maxKeys, sync === "always" ? 0 : msOf(sync));
  const { why, remedy, cause } = found;
  throw new StoreError(`tidegate's addon did not load: ${why}; ${remedy}, or use a store that a server shares`, {
    store: "file",
    operation: "open",
    identity: folder,
    cause,
  });
}
