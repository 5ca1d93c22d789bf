/** One call that waits for its answer. */
import type { AllDecision, Decision, State } from "../../limit/decision.ts";
import { StoreError } from "../../limit/errors.ts";
import type { Limit } from "../../limit/limit.ts";
import type { Call } from "../contract.ts";

/** A request: one call, several all or nothing, a reset, or the two numbers. */
export type Asked =
  | { readonly kind: "one"; readonly call: Call }
  | { readonly kind: "all"; readonly calls: readonly Call[] }
  | { readonly kind: "reset" | "value"; readonly limit: Limit; readonly key: string | undefined };

/** ms before a deadline at which the store acts on it: at the deadline itself the limiter has answered the caller. */
const BEFORE_DEADLINE = 2;
const MOST_BEFORE_DEADLINE = 20;

/** That many ms where so many are left: more than the event loop is usually behind. */
export function beforeDeadline(rest: number): number {
  return Math.max(BEFORE_DEADLINE, Math.min(MOST_BEFORE_DEADLINE, rest / 10));
}

/** A call in the queue. */
export class Pending {
  /** Identities (without shard) that it is about: calls on one of them are decided in their order. */
  readonly about: readonly string[];
  /** Whether one row settles it with the functions made for that: see `plain.ts`. */
  readonly plain: boolean;
  /** Whether it only reads, one row. */
  readonly reads: boolean;
  /** Whether it has to be carried out by a program, because the plain way met a concurrent change. */
  again = false;
  /** `performance.now()`, ms, when it is no longer waited for. */
  deadline: number;
  #settled = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Why it fails where its deadline passes, if that is about its keys alone. */
  #reason: { readonly what: string; readonly cause: unknown } | undefined;
  readonly #resolve: (answer: Decision | AllDecision | State | undefined) => void;
  readonly #reject: (error: unknown) => void;

  constructor(
    readonly asked: Asked,
    readonly now: number | undefined,
    deadline: number | undefined,
    resolve: (answer: Decision | AllDecision | State | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    const calls = asked.kind === "one" ? [asked.call] : asked.kind === "all" ? asked.calls : [asked];
    this.about = calls.map(({ limit, key }) => limit.identity(key));
    const call = asked.kind === "one" && asked.call.limit.policy.shards === 1 ? asked.call : undefined;
    this.reads = asked.kind === "value" || (call !== undefined && (call.op === "check" || call.count === 0));
    this.plain = call !== undefined && call.op === "take" && call.count > 0 && !call.reserve;
    this.deadline = deadline ?? Number.POSITIVE_INFINITY;
    this.#resolve = resolve;
    this.#reject = reject;
  }

  /** Whether it has its answer or its error. */
  get settled(): boolean {
    return this.#settled;
  }

  /** The operation, as errors name it. */
  get operation(): string {
    const { asked } = this;
    if (asked.kind === "one") return asked.call.op;
    return asked.kind === "all" ? "limitAll" : asked.kind === "value" ? "getValue" : "reset";
  }

  /** Each row that it may lock, with the identity in {@link about} that the row belongs to. */
  rows(): (readonly [row: string, about: string])[] {
    const { asked } = this;
    const parts = asked.kind === "one" ? [asked.call] : asked.kind === "all" ? asked.calls : [asked];
    return parts.flatMap(({ limit, key }) =>
      Array.from(
        { length: limit.policy.shards },
        (_, shard) => [limit.identity(key, shard), limit.identity(key)] as const,
      ),
    );
  }

  resolve(answer: Decision | AllDecision | State | undefined): void {
    this.#settle();
    this.#resolve(answer);
  }

  /** Rejects with a `StoreError` that names it. */
  fail(what: string, cause?: unknown, scope: "key" | "store" = "store", identity: string = this.about.join(",")): void {
    this.#settle();
    this.#reject(new StoreError(what, { store: "postgres", operation: this.operation, identity, cause, scope }));
  }

  /** Rejects because the state under this identity is not two finite numbers. */
  corrupt(identity: string = this.about.join(",")): void {
    this.fail("the stored state is not two finite numbers", undefined, "key", identity);
  }

  /**
   * Notes that only its keys hold it up, for this reason: it is rejected for that before the limiter's own timer, which
   * would take it for a failure of the store, by more than the event loop is usually behind.
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
    const { what = "its deadline passed, and nothing was taken", cause } = this.#reason ?? {};
    this.fail(what, cause, this.#reason === undefined ? "store" : "key");
  }

  #settle(): void {
    this.#settled = true;
    clearTimeout(this.#timer);
  }
}
