/** A circuit breaker and log lines for each node of a store. */
import { hasMethods } from "../limit/checks.ts";
import { InputError, isStoreError, messageOf, shortened, type StoreError } from "../limit/errors.ts";
import { notify } from "../limit/notify.ts";
import { monotonicNow } from "../limit/monotonic.ts";
import { isAnswered } from "../stores/failure.ts";

interface Lines {
  /** A node of the store failed; `cause` is the client's own error, if there is one. */
  error(message: string, cause: unknown): unknown;
  /** The node answers again. */
  info(message: string): unknown;
}

/** Gets one line when a store fails, and one when it answers again: `console`, pino, or the `Logger` of NestJS. */
export type Log = Lines | { error: Lines["error"]; log: Lines["info"] };

/** The global console, looked up for each line, so that a test or a tool can replace it. */
const CONSOLE: Lines = {
  error: (message, cause) => console.error(message, cause),
  info: (message) => console.info(message),
};

/** The log, or `undefined` for `false`; throws an `InputError` for anything else. */
export function checkLog(log: unknown): Lines | undefined {
  if (log === undefined) return CONSOLE;
  if (log === false) return undefined;
  const given = Object(log) as Lines & { log?: Lines["info"] };
  if (hasMethods(given, "error", "info")) return given;
  if (hasMethods(given, "error", "log"))
    return { error: (message, cause) => given.error(message, cause), info: (message) => given.log?.(message) };
  throw new InputError("log", "false, or an object with error and info, or error and log, such as console", log);
}

/** Consecutive failures after which only probes go to the node. */
const FAILURES_TO_OPEN = 5;
/** ms until the first probe, and at most between two. */
const PROBE_AFTER = 100;
const PROBE_AFTER_MOST = 5000;
/** Least ms between two logged failures of a node. */
const LOG_EVERY = 60_000;
/** The most failed nodes that are kept. */
const MOST_NODES = 1000;

/** A node that fails, or failed recently. Times are of the monotonic clock, in ms. */
interface Node {
  /** Consecutive ones. */
  failures: number;
  /** From when the next probe may be sent, and how long that is after the last one. */
  probeAt: number;
  wait: number;
  /** When its last failure was logged, and whether its recovery has not been logged yet. */
  loggedAt: number;
  isLogged: boolean;
}

/** How a call goes to a node: as any other, or to find out whether the node works again. */
export type Admitted = "call" | "probe";

/** The failed nodes of one store, by name; `""` if the store is one node. */
export class Outages {
  readonly #store: string;
  readonly #log: Lines | undefined;
  readonly #nodes = new Map<string, Node>();
  /** When an error of a single key was last logged. */
  #keyLoggedAt = -Infinity;

  constructor(store: string, log: Lines | undefined) {
    this.#store = store;
    this.#log = log;
  }

  /** How a call may go to the node, if it may: after repeated failures only as a probe, now and then. */
  admit(name: string): Admitted | undefined {
    const node = this.#nodes.get(name);
    if (node === undefined || node.failures < FAILURES_TO_OPEN) return "call";
    const now = monotonicNow();
    if (now < node.probeAt) return undefined;
    node.wait = Math.min(node.wait * 2, PROBE_AFTER_MOST);
    node.probeAt = now + node.wait;
    return "probe";
  }

  succeeded(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    node.failures = 0;
    node.wait = PROBE_AFTER;
    if (node.isLogged) {
      node.isLogged = false;
      notify(() => this.#log?.info(`tidegate: ${this.#store}${on(name)} answers again`));
    }
  }

  /** Counts a failure and logs it; `instead` is how calls are decided meanwhile, such as "denied". */
  failed(name: string, error: unknown, instead: string): void {
    if (isStoreError(error) && error.scope === "key") this.#keyFailed(name, error, instead);
    else this.#nodeFailed(name, error, instead);
  }

  /** Makes the next call the probe: the last one ended unanswered, as would later ones on the same busy key. */
  probeAgain(name: string): void {
    const node = this.#nodes.get(name);
    if (node === undefined) return;
    node.probeAt = 0;
    node.wait = Math.max(node.wait / 2, PROBE_AFTER);
  }

  #nodeFailed(name: string, error: unknown, instead: string): void {
    const now = monotonicNow();
    const node = this.#node(name);
    if (++node.failures === FAILURES_TO_OPEN) node.probeAt = now + node.wait;
    if (node.isLogged || now - node.loggedAt < LOG_EVERY) return;
    node.isLogged = true;
    node.loggedAt = now;
    this.#report(error, `until ${this.#store}${on(name)} answers again, its calls are ${instead}`);
  }

  #keyFailed(name: string, error: StoreError, instead: string): void {
    if (isAnswered(error)) this.succeeded(name);
    const now = monotonicNow();
    // If the node's failure is logged, it covers this call, which waited for those that failed.
    if (this.#nodes.get(name)?.isLogged || now - this.#keyLoggedAt < LOG_EVERY) return;
    this.#keyLoggedAt = now;
    this.#report(error, `calls on this key are ${instead}, others only if they fail, too`);
  }

  #node(name: string): Node {
    let node = this.#nodes.get(name);
    if (node === undefined) {
      if (this.#nodes.size >= MOST_NODES) this.#nodes.delete(this.#nodes.keys().next().value as string);
      node = { failures: 0, probeAt: 0, wait: PROBE_AFTER, loggedAt: -Infinity, isLogged: false };
      this.#nodes.set(name, node);
    }
    return node;
  }

  #report(error: unknown, effect: string): void {
    const found = messageOf(error);
    const what = found.startsWith(`${this.#store}: `) ? found : `${this.#store}: ${found}`;
    // A log that throws or rejects must not change what a call returns, nor end the process.
    notify(() => this.#log?.error(`tidegate: ${what}; ${effect}`, causeOf(error)));
  }
}

const on = (node: string): string => (node === "" ? "" : ` (node ${node})`);

/** The client's own error, or a part of its message if that is long: its stack has it, too. */
function causeOf(error: unknown): unknown {
  const cause = (error as { cause?: unknown } | null | undefined)?.cause ?? error;
  const message = messageOf(cause);
  const logged = shortened(message);
  return logged === message ? cause : logged;
}
