/** One request of the limiter that waits for its reply. */
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { StoreError } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call } from "../contract.ts";
import { tooBusy } from "../turns.ts";

/** One call, several all or nothing, a reset, or the two numbers. */
export type Request =
  | { readonly kind: "one"; readonly call: Call }
  | { readonly kind: "all"; readonly calls: readonly Call[] }
  | { readonly kind: "reset" | "value"; readonly limit: Limit; readonly key: string | undefined };

/** What one statement does: reads, resets, or carries out any calls. */
export type Kind = "read" | "reset" | "call";

type Reply = Decision | AllDecision | State | undefined;

/** ms before a deadline at which the store acts on it: at the deadline itself the limiter has answered the caller. */
const BEFORE_DEADLINE = 2;
const MOST_BEFORE_DEADLINE = 20;

/** That many ms where so many are left: more than the event loop is usually behind. */
export function beforeDeadline(rest: number): number {
  return Math.max(BEFORE_DEADLINE, Math.min(MOST_BEFORE_DEADLINE, rest / 10));
}

/** A request in the queue or in a statement. */
export class PendingRequest {
  /** The id of the row of each of its calls. Requests on one row are decided in their order. */
  readonly ids: readonly string[];
  /** Whether it is one take that writes where it is granted, and owes nothing. */
  readonly takes: boolean;
  /** Whether it reads one row and writes nothing. */
  readonly reads: boolean;
  /** Whether it has made a row. */
  created = false;
  /** Whether nothing but this process has delayed it: it was made when no statement was out, and was not sent yet. */
  undelayed = false;
  /** `performance.now()`, ms, when it is no longer waited for. */
  deadline: number;
  #settled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Why it fails at its deadline, where the cause is its key alone. */
  #reason: { readonly what: string; readonly cause: unknown } | undefined;
  readonly #resolve: (reply: Reply) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    readonly request: Request,
    readonly now: number | undefined,
    deadline: number | undefined,
    resolve: (reply: Reply) => void,
    reject: (error: unknown) => void,
  ) {
    const calls = request.kind === "one" ? [request.call] : request.kind === "all" ? request.calls : [request];
    this.ids = calls.map(({ limit, key }) => limit.identity(key));
    const call = request.kind === "one" ? request.call : undefined;
    this.reads = request.kind === "value" || (call !== undefined && (call.op === "check" || call.count === 0));
    this.takes = call !== undefined && call.op === "take" && call.count > 0 && !call.reserve;
    this.deadline = deadline ?? Number.POSITIVE_INFINITY;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Whether it has its reply or its error. */
  get settled(): boolean {
    return this.#settled;
  }

  resolve(reply: Reply): void {
    this.#settle();
    this.#resolve(reply);
  }

  fail(what: string, cause?: unknown, scope: "key" | "store" = "store", identity: string = this.ids.join(",")): void {
    const { request } = this;
    const names = { all: "limitAll", value: "getValue", reset: "reset" } as const;
    const operation = request.kind === "one" ? request.call.op : names[request.kind];
    this.#settle();
    this.#reject(new StoreError(what, { store: "postgres", operation, identity, cause, scope }));
  }

  /** Rejects because the state under this id is not two finite numbers. */
  corrupt(id?: string): void {
    this.fail("the stored state is not two finite numbers", undefined, "key", id);
  }

  /**
   * Notes that only its keys delay it, for this reason. It is then rejected shortly before the limiter's own timer, which
   * would count a failure of the store.
   */
  failAtDeadline(what: string, cause: unknown): void {
    const noted = this.#reason !== undefined;
    this.#reason = { what, cause };
    if (this.#settled || noted || this.deadline === Number.POSITIVE_INFINITY) return;
    const rest = Math.max(0, this.deadline - performance.now());
    this.deadline -= beforeDeadline(rest);
    this.#timer = setTimeout(() => this.expire(), Math.max(0, Math.floor(this.deadline - performance.now())));
  }

  /** Rejects because of its deadline. */
  expire(): void {
    const { what, cause } = this.#reason ?? {};
    const busy = this.undelayed ? tooBusy() : undefined;
    if (what !== undefined) this.fail(what, cause, "key");
    else if (busy !== undefined) this.fail(busy.message, busy, "key");
    else this.fail("its deadline passed, and nothing was taken");
  }

  #settle(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
  }
}

/** The requests that still wait. One whose deadline has passed, less `margin` ms, is rejected and never sent. */
export function stillWaiting(requests: PendingRequest[], margin = 0): PendingRequest[] {
  const now = performance.now() + margin;
  return requests.filter((pending) => {
    if (pending.settled) return false;
    if (pending.deadline > now) return true;
    pending.expire();
    return false;
  });
}
