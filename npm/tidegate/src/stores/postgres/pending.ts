/** One call that waits for its answer. */
import type { AllDecision, Decision, State } from "../../decision.ts";
import { StoreError } from "../../errors.ts";
import type { Limit } from "../../limit.ts";
import type { Call } from "../../store.ts";

/** What is asked: one call, several all or nothing, to forget, or the two numbers. */
export type Asked =
  | { readonly kind: "one"; readonly call: Call }
  | { readonly kind: "all"; readonly calls: readonly Call[] }
  | { readonly kind: "reset" | "value"; readonly limit: Limit; readonly key: string | undefined };

/** A call in the queue. */
export class Pending {
  /** Identities (without shard) that it is about: what is asked on one of them is answered in order. */
  readonly about: readonly string[];
  /** Whether one row settles it with the functions made for that: see {@link Pending.plain}. */
  readonly plain: boolean;
  /** Whether it only looks, at one row. */
  readonly reads: boolean;
  /** Set where the plain way found that something came in between. */
  again = false;

  constructor(
    readonly asked: Asked,
    readonly now: number | undefined,
    readonly resolve: (answer: Decision | AllDecision | State | undefined) => void,
    readonly reject: (error: unknown) => void,
  ) {
    const calls = asked.kind === "one" ? [asked.call] : asked.kind === "all" ? asked.calls : [asked];
    this.about = calls.map(({ limit, key }) => limit.identity(key));
    const call = asked.kind === "one" && asked.call.limit.policy.shards === 1 ? asked.call : undefined;
    this.reads = asked.kind === "value" || (call !== undefined && (call.op === "check" || call.count === 0));
    this.plain = call !== undefined && call.op === "take" && call.count > 0 && !call.reserve;
  }

  /** What it does, in the words of the errors. */
  get operation(): string {
    const { asked } = this;
    if (asked.kind === "one") return asked.call.op;
    return asked.kind === "all" ? "limitAll" : asked.kind === "value" ? "getValue" : "reset";
  }

  /** Rejects with a `StoreError` that names it. */
  fail(what: string, cause?: unknown, identity: string = this.about.join(",")): void {
    this.reject(new StoreError(what, { store: "postgres", operation: this.operation, identity, cause }));
  }

  /** Rejects since what is stored under this identity is not two finite numbers. */
  corrupt(identity: string = this.about.join(",")): void {
    this.fail("what is stored is not two finite numbers", undefined, identity);
  }
}
