/**
 * Makes a store with promises always decide: a deadline and a breaker for each call, and a decision without the store
 * if it fails.
 */
import type { OnStoreError } from "../limit/config.ts";
import type { Duration } from "../limit/duration.ts";
import type { AllDecision, Decision, State } from "../limit/decision.ts";
import { isInputError, StoreError, type StoreErrorDetails } from "../limit/errors.ts";
import type { Limit } from "../limit/limit.ts";
import type { AsyncStore, Call, Deadline, Key, Now, Op } from "../stores/contract.ts";
import { failure, idsOf, isAnswered, type Target } from "../stores/failure.ts";
import { Fallback } from "./fallback.ts";
import { type Admitted, type checkLog, type Log, Outages } from "./outages.ts";
import { afterWaiting, monotonicNow } from "../limit/monotonic.ts";

/** How a limiter handles a store that fails. */
export interface Resilience {
  /**
   * What happens when the store fails or is too slow: `"deny"` (the default), `"allow"`, or `{ local: fraction }`, an in-memory
   * limit at that fraction of the rate. Such a decision has `degraded: true` and the `cause`.
   */
  onStoreError?: OnStoreError | undefined;
  /**
   * How long a call waits for the store: ms from 1 to 2^31 - 1, or a string such as `"1s"`; default 250. The first connection
   * of the store's client does not count: calls wait up to 2 s for it.
   */
  timeout?: Duration | undefined;
  /**
   * Logs when a node of the store fails, with the cause, and when it answers again. At most one pair of lines per minute
   * and node. Default the console; `false` logs nothing.
   */
  log?: Log | false | undefined;
}

/** The same, checked, with defaults; without a `log` nothing is logged. */
export interface Settings {
  readonly onStoreError: OnStoreError;
  readonly timeout: number;
  readonly log: ReturnType<typeof checkLog>;
  /** The words of the log for denied calls, if their caller does something else with a denial. */
  readonly denied?: string;
}

/** ms from the first call that waits for the client to connect. */
const LONGEST_CONNECT = 2000;

/** An operation on the store, by the name that errors have. */
interface Task<T> {
  readonly operation: string;
  readonly targets: readonly Target[];
  send(deadline: Deadline): Promise<T>;
  /** It is sent when this has ended, for which its deadline does not wait. */
  readonly after?: Promise<unknown> | undefined;
  /** The result if the store fails; without it the cause is thrown. */
  readonly without?: ((cause: unknown) => T) | undefined;
}

/** Of an error "no answer within … ms", the limiter's or the store's own, or of another timeout. */
const HALF_OPEN =
  ". If that lasts while the server is up, see the client's errors. Without any, a connection may be half-open: set its socket timeouts";

/** The node; for several, all their names: a failure of a call on several nodes does not count against each. */
function nodeOf(store: AsyncStore, targets: readonly Target[]): string {
  if (store.nodeOf === undefined) return "";
  try {
    const names = targets.map(({ limit, key }) => store.nodeOf?.(limit, key) ?? "");
    return names.length === 1 ? (names[0] as string) : [...new Set(names)].sort().join(", ");
  } catch {
    // The store rejects the call itself, with the reason.
    return "";
  }
}

/** The decision that needs no server: as an answer of the store it would close the breaker of one that is down. */
function recalled(store: AsyncStore, call: Call, now: Now): Decision | undefined {
  try {
    return store.recall?.(call, now);
  } catch {
    // The store rejects the call itself, with the reason.
    return undefined;
  }
}

/** What `send` returns; rejects with what it throws. */
function sentBy<T>(send: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(send());
  } catch (error) {
    return Promise.reject(error);
  }
}

function endWithout<T>({ without }: Task<T>, cause: unknown): T {
  if (without === undefined) throw cause;
  return without(cause);
}

/** The store behind a deadline and a breaker per node, with decisions in its place if it fails. */
export class ResilientStore implements AsyncStore {
  readonly name: string;
  readonly sync = false;
  readonly #store: AsyncStore;
  readonly #timeout: number;
  readonly #fallback: Fallback;
  readonly #outages: Outages;
  /** Until when calls wait for the client to connect. */
  #connectBy: number | undefined;

  constructor(store: AsyncStore, settings: Settings) {
    this.name = store.name;
    this.#store = store;
    this.#timeout = settings.timeout;
    this.#fallback = new Fallback(settings.onStoreError, settings.denied);
    this.#outages = new Outages(store.name, settings.log);
  }

  /** Once `after` has ended, within one deadline with it. */
  decide(call: Call, now: Now, _deadline?: Deadline, after?: Promise<unknown>): Promise<Decision> {
    return this.#decide(call, now, (cause) => this.without(call, now, cause), undefined, after);
  }

  /** Once `after` has ended, within one deadline with it. */
  decideAll(calls: readonly Call[], now: Now, _deadline?: Deadline, after?: Promise<unknown>): Promise<AllDecision> {
    return this.#run({
      operation: "limitAll",
      targets: calls,
      after,
      send: (deadline) => this.#store.decideAll(calls, now, deadline),
      without: (cause) => this.#fallback.several(calls, now, cause),
    });
  }

  reset(limit: Limit, key: Key): Promise<void> {
    return this.#run({
      operation: "reset",
      targets: [{ limit, key }],
      send: (deadline) => this.#store.reset(limit, key, deadline),
    });
  }

  getValue(limit: Limit, key: Key, now: Now): Promise<State> {
    return this.#run({
      operation: "getValue",
      targets: [{ limit, key }],
      send: (deadline) => this.#store.getValue(limit, key, now, deadline),
    });
  }

  /** The store's own decision within the deadline; rejects if there is none. `arrived` gets it later, too. */
  attempt(call: Call, now: Now, arrived?: (decision: Decision) => void): Promise<Decision> {
    return this.#decide(call, now, undefined, arrived);
  }

  /** The decision instead of the store's. */
  without(call: Call, now: Now, cause: unknown): Decision {
    return this.#fallback.one(call, now, cause);
  }

  /** Calls `late` at the latest deadline of a call that begins now; the result cancels that. */
  atDeadline(operation: Op, target: Target, late: (error: StoreError) => void): () => void {
    const timeout = this.#timeoutOf([target]);
    const atDeadline = (): void => late(this.#noAnswer(timeout, { operation, targets: [target] }));
    return afterWaiting(this.#untilConnected() + timeout, atDeadline);
  }

  #decide(
    call: Call,
    now: Now,
    without: Task<Decision>["without"],
    arrived?: (decision: Decision) => void,
    after?: Promise<unknown>,
  ): Promise<Decision> {
    // What `after` does may return tokens.
    const decision = after ? undefined : recalled(this.#store, call, now);
    if (decision !== undefined) {
      arrived?.(decision);
      return Promise.resolve(decision);
    }
    const send = (deadline: Deadline): Promise<Decision> => {
      const sent = this.#store.decide(call, now, deadline);
      if (arrived !== undefined) sent.then(arrived).catch(() => {});
      return sent;
    };
    return this.#run({ operation: call.op, targets: [call], after, send, without });
  }

  /** Runs a task once the client is connected. Rejects with the caller's own InputError, or with what `without` throws. */
  #run<T>(task: Task<T>): Promise<T> {
    const connected = this.#connection();
    if (connected === undefined) return this.#send(task);
    return connected.then(
      () => this.#send(task),
      (error) => this.#failed(task, nodeOf(this.#store, task.targets), error),
    );
  }

  /** ms that a call waits for the client to connect, at most. */
  #untilConnected(): number {
    if (this.#store.connecting === undefined) return 0;
    this.#connectBy ??= monotonicNow() + LONGEST_CONNECT;
    return Math.max(this.#connectBy - monotonicNow(), 0);
  }

  /** Ends when the client has connected, or has had its time for that; absent if no call waits for it. */
  #connection(): Promise<unknown> | undefined {
    const wait = this.#untilConnected();
    if (wait === 0) return undefined;
    return new Promise((resolve, reject) => {
      const cancel = afterWaiting(wait, () => resolve(undefined));
      void this.#store.connecting?.then(resolve, reject).then(cancel);
    });
  }

  /**
   * Sends a task if its node is in use, and ends it with the store's answer, or without it at the deadline. One promise
   * and one timer, because it runs for each call.
   */
  #send<T>(task: Task<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const node = nodeOf(this.#store, task.targets);
      const admitted = this.#outages.admit(node);
      if (admitted === undefined) {
        const reason = "it has failed repeatedly; calls go to it again later";
        resolve(endWithout(task, new StoreError(reason, this.#detailsOf(task))));
        return;
      }
      const timeout = this.#timeoutOf(task.targets);
      const deadline: NonNullable<Deadline> = { at: monotonicNow() + timeout };
      let isOver = false;
      /** Ends the call; `false` if it has ended before. */
      const end = (): boolean => {
        if (isOver) return false;
        isOver = true;
        cancel();
        return true;
      };
      const succeed = (result: T): void => {
        if (!end()) return;
        this.#outages.succeeded(node);
        resolve(result);
      };
      const fail = (error: unknown): void => {
        if (!end()) return;
        try {
          resolve(this.#failed(task, node, error, admitted));
        } catch (cause) {
          reject(cause);
        }
      };
      const late = (): void => fail(deadline.why ?? this.#noAnswer(timeout, task));
      const send = (): Promise<T> => {
        if (deadline.at <= monotonicNow()) throw this.#noAnswer(timeout, task);
        return task.send(deadline);
      };
      const sent = task.after?.then(send) ?? sentBy(send);
      // Not before the call is sent: its caller's deadline is never earlier than the store's.
      const cancel = afterWaiting(timeout, late, false, deadline);
      const ended = sent.then(succeed, fail);
      // Calls of other requests may wait for this one: in a Worker it would stop with the request that made it.
      this.#store.during?.(ended);
    });
  }

  /** Counts and logs the failure of a node, and ends the task without the store. A mistake of the caller's is thrown on. */
  #failed<T>(task: Task<T>, node: string, error: unknown, admitted?: Admitted): T {
    const cause = failure(error, this.#detailsOf(task));
    if (isInputError(cause)) throw cause;
    const instead = this.#fallback.insteadOf(task.targets);
    const halfOpen = / ms$/.test(String(cause)) ? HALF_OPEN : "";
    if (admitted === "probe" && !isAnswered(cause)) this.#outages.probeAgain(node);
    this.#outages.failed(node, cause, instead + halfOpen);
    return endWithout(task, cause);
  }

  #timeoutOf(targets: readonly Target[]): number {
    return targets.reduce((least, { limit }) => Math.min(least, limit.timeout ?? this.#timeout), Infinity);
  }

  #noAnswer(timeout: number, of: Pick<Task<unknown>, "operation" | "targets">): StoreError {
    return new StoreError(`no answer within ${timeout} ms`, this.#detailsOf(of));
  }

  #detailsOf({ operation, targets }: Pick<Task<unknown>, "operation" | "targets">): StoreErrorDetails {
    return { store: this.name, operation, identity: idsOf(targets).join(",") };
  }
}
