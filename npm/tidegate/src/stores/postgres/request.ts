/** One request of the limiter that waits for its reply. */
import type { AllDecision, Decision } from "../../limit/decision.ts";
import { StoreError } from "../../limit/errors.ts";
import type { Call, Deadline, Now } from "../contract.ts";
import { idsOf, TOO_BUSY } from "../failure.ts";
import { overdueTimers } from "../../limit/monotonic.ts";

/** A call, or a reset, which deletes the row. */
export type RowCall = Call | (Omit<Call, "op"> & { readonly op: "reset" });

/** An operation of the store. */
export interface Request {
  /** Its name in errors; the calls of `limitAll` are all granted or none is. */
  readonly operation: string;
  readonly calls: readonly RowCall[];
  readonly now: Now;
  readonly deadline: Deadline;
}

type Reply = Decision | AllDecision | undefined;

const ignore = (): void => {};

/** A request in the queue or in a statement. */
export class PendingRequest {
  readonly calls: readonly RowCall[];
  readonly now: Now;
  /** The id of the row of each of its calls. Requests on one row are decided in their order. */
  readonly ids: readonly string[];
  /** Whether all of its calls have one decision. */
  readonly isJoint: boolean;
  /** Whether it is one take that writes if it is granted, and owes nothing. */
  readonly takes: boolean;
  /** Whether it reads one row and writes nothing. */
  readonly reads: boolean;
  /** Whether it made a row. */
  created = false;
  /** Whether the server has replied to a statement of it. */
  answered = false;
  /** Whether nothing but this process has delayed it: it was made when no statement was out, and was not sent yet. */
  undelayed = false;
  /** `performance.now()`, ms, when its statement is given up. */
  latest: number = Infinity;
  readonly #operation: string;
  /** Its caller's; `why` is set if the cause is known. */
  #caller: NonNullable<Deadline>;
  #resolve: (reply: Reply) => void;
  #reject: (error: unknown) => void;

  constructor(request: Request, resolve: (reply: Reply) => void, reject: (error: unknown) => void) {
    const { operation, calls, now, deadline } = request;
    const [{ op, count, reserve }] = calls as [RowCall];
    this.#operation = operation;
    this.calls = calls;
    this.now = now === undefined ? undefined : Math.floor(now);
    this.ids = idsOf(calls);
    this.isJoint = operation === "limitAll";
    this.reads = !this.isJoint && (op === "check" || (op !== "reset" && count === 0));
    this.takes = !this.isJoint && op === "take" && count > 0 && !reserve;
    this.#caller = deadline ?? { at: Infinity };
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** `performance.now()`, ms, when it is no longer waited for: its caller's deadline moves. */
  get deadline(): number {
    return Math.min(this.#caller.at, this.latest);
  }

  resolve(reply: Reply): void {
    const resolve = this.#resolve;
    this.#settle();
    resolve(reply);
  }

  fail(what: string, cause?: unknown, scope: "key" | "store" = "store", identity?: string): void {
    this.#fail(this.#error(what, cause, scope, identity));
  }

  #fail(error: Error): void {
    const reject = this.#reject;
    this.#settle();
    reject(error);
  }

  /**
   * Releases its caller, and so its error: the stack of a server's error holds the requests of its statement. Through those,
   * each error on a row that is locked again and again would hold all errors before it.
   */
  #settle(): void {
    this.#caller = { at: this.#caller.at };
    this.#resolve = this.#reject = ignore;
  }

  #error(what: string, cause: unknown, scope: "key" | "store", identity: string = this.ids.join(",")): StoreError {
    return new StoreError(what, { store: "postgres", operation: this.#operation, identity, cause, scope });
  }

  /** Rejects because the state under this id is not two finite numbers. */
  corrupt(id?: string): void {
    this.fail("the stored state is not two finite numbers", undefined, "key", id);
  }

  /** Notes what delays it. Late for its keys alone, it is no failure of the store. */
  failAtDeadline(what: string, cause: unknown, scope: "key" | "store" = "key"): void {
    const error = this.#error(what, cause, scope);
    // Read when the caller stops waiting: by then the server may have replied.
    if (scope === "key") Object.defineProperty(error, "answered", { get: () => this.answered });
    this.#caller.why ??= error;
  }

  /** Rejects because of its deadline. */
  expire(): void {
    const { why } = this.#caller;
    if (why !== undefined) this.#fail(why);
    else if (this.undelayed) this.fail(TOO_BUSY.message, TOO_BUSY, "key");
    else this.fail("its deadline passed, and nothing was taken");
  }
}

/** Not by `Math.max(…)`: all that wait for locked rows may be more than a function takes arguments. */
export const lastDeadline = (requests: readonly PendingRequest[]): number =>
  requests.reduce((last, { deadline }) => Math.max(last, deadline), -Infinity);

/** As `overdueTimers`, of the deadlines of these requests. One that only this process has delayed fails at its deadline. */
export const overdue = (requests: readonly PendingRequest[]): Promise<void> | undefined =>
  overdueTimers(requests.reduce((at, { undelayed, deadline }) => (undelayed ? at : Math.min(at, deadline)), Infinity));

/** The requests that still wait. One whose deadline has passed, less `margin` ms, is rejected and never sent. */
export function stillWaiting(requests: readonly PendingRequest[], margin = 0): PendingRequest[] {
  const now = performance.now() + margin;
  return requests.filter((pending) => {
    if (pending.deadline > now) return true;
    pending.expire();
    return false;
  });
}
