import { appendChecked, appendFields, type HeaderTarget, rateLimitHeaders } from "../http/fields.ts";
import { PROBLEM_JSON, type Problem, problem, statusOf } from "../http/problem.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { InputError } from "../limit/errors.ts";
import type { RetryOptions } from "../http/quota.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { type LimitRequest, MAX_REQUESTS } from "../limiter/options.ts";
import { clientKey, type Incoming } from "./client.ts";
import { bindingDecision } from "./decision.ts";
import {
  type CheckedOptions,
  checkGateOptions,
  checkMounted,
  type Denial,
  type Options,
  type Outcome,
  type RequestDecision,
  type Several,
} from "./options.ts";
import { type Blocker, escalated, escalation } from "./escalation.ts";
import { follow, type Pending, together } from "../limit/pending.ts";
import { type CompiledRule, compile, type Rule, RULE_FIELDS } from "./rule.ts";
import { checkSelection, isSelection } from "./selection.ts";
import { type Ledger, settleUp } from "../limiter/settlement.ts";
import type { Slot } from "./slot.ts";

/** A request that was decided. */
export class Admission<R> {
  readonly decision: RequestDecision;
  readonly #decided: Decision | AllDecision;
  readonly #gate: Gate<R>;
  readonly #taken: readonly LimitRequest<string>[];
  readonly #request: R;
  #denied: Readonly<Record<string, string>> | undefined;

  constructor(gate: Gate<R>, request: R, taken: readonly LimitRequest<string>[], decided: Decision | AllDecision) {
    this.#gate = gate;
    this.#request = request;
    this.#taken = taken;
    this.#decided = decided;
    this.decision = bindingDecision(decided);
  }

  /** Not to be handled. */
  get blocked(): boolean {
    return !this.decision.ok && !this.#gate.options.shadow;
  }

  /** The options of a denial's wait: the jitter is that of the keys. */
  #spread(): RetryOptions {
    const { jitter } = this.#gate.options;
    if (jitter.fraction === 0) return {};
    return { jitter: { ...jitter, key: this.#taken.map(({ key = "" }) => key).join("\n") } };
  }

  /** The fields of a denied request. */
  #fields(): Readonly<Record<string, string>> {
    const { headers } = this.#gate.options;
    this.#denied ??= headers === undefined ? {} : rateLimitHeaders(this.#decided, { ...headers, ...this.#spread() });
    return this.#denied;
  }

  setFields(target: HeaderTarget): void {
    const { headers, shadow } = this.#gate.options;
    if (headers === undefined || shadow) return;
    if (this.decision.ok) appendChecked(target, this.#decided, headers);
    else appendFields(target, this.#fields(), this.decision.now);
  }

  denial(): Pending<Denial> {
    const { statusCode, never, message } = this.#gate.options;
    const found = statusOf(this.#decided, { never });
    const status = found === 429 ? statusCode : found;
    const details = problem(this.#decided, { ...this.#spread(), never }) as Problem;
    const denial = {
      decision: this.decision,
      status,
      headers: this.#fields(),
      problem: { ...details, status },
    };
    const body = typeof message === "function" ? message(this.#request, denial) : message;
    return follow(body, (body): Denial => {
      if (body === undefined) return { body: JSON.stringify(denial.problem), contentType: PROBLEM_JSON, ...denial };
      if (typeof body === "string") return { body, contentType: "text/plain; charset=utf-8", ...denial };
      return { body: JSON.stringify(body), contentType: "application/json; charset=utf-8", ...denial };
    });
  }

  /** Corrects what was taken to what the request was worth. Never rejects: the response is gone. */
  async settle(end: Pick<Outcome<R>, "status" | "aborted" | "error" | "result">): Promise<void> {
    const { options, ledger, report } = this.#gate;
    if (options.settle === undefined || !this.decision.ok) return;
    try {
      const worth = await options.settle({ ...end, request: this.#request, decision: this.decision });
      await settleUp(ledger, this.#taken, this.decision.decisions, worth);
    } catch (error) {
      await report(error);
    }
  }
}

/** What all middleware share: the options, checked once, and one call of the limiter for each request. */
export interface Gate<R> {
  readonly options: CheckedOptions<R>;
  readonly ledger: Ledger;
  /** Reports an error that no response can carry. Never rejects. */
  report(error: unknown): Promise<void>;
  /**
   * Decides, synchronously where everything it calls is. `undefined` where the request is not limited, or where this gate
   * has already decided it: `once` is the object that stands for the request in all places where the gate is mounted.
   */
  admit(request: R, incoming: Incoming, once?: object): Pending<Admission<R> | undefined>;
}

/**
 * Makes the gate, or throws an `InputError` that names the option. `setting` is the framework's own for proxies; `decided`
 * keeps which requests it has decided.
 */
export function gate<R, N extends string, D>(
  limiter: Limiter<N>,
  options: Options<R, NoInfer<N>, D>,
  setting?: string,
  decided: Slot<true> = new WeakMap<object, true>(),
): Gate<R> {
  checkMounted(limiter);
  const checked = checkGateOptions(options);
  const { skip, onDecision, onError } = checked;
  const address = clientKey(options.client, setting);
  const selection = isSelection<R>(options.limits) ? options.limits : undefined;
  if (selection !== undefined) checkSelection(selection, limiter);
  const count = options.block === undefined || checked.shadow ? undefined : escalation(options.block, namesIn(options));
  const escalate = (taken: readonly LimitRequest<N>[], decided: Decision | AllDecision) =>
    count === undefined
      ? decided
      : escalated(taken, decided, (denied, decision) =>
          selection?.blocks?.(denied) === true ? decision : count(limiter as unknown as Blocker, denied, decision),
        );
  let reported = false;
  const log = (error: unknown): void => {
    if (!reported) console.error("tidegate: a request failed; further errors are not logged:", error);
    reported = true;
  };
  const made: Gate<R> = {
    options: checked,
    ledger: limiter as unknown as Ledger,
    report: async (error) => {
      try {
        await (onError ?? log)(error);
      } catch (failure) {
        log(failure);
      }
    },
    admit: (request, incoming, once) => {
      if (once !== undefined) {
        if (decided.get(once) === true) return undefined;
        decided.set(once, true);
      }
      if (skip === undefined) return decide(request, incoming);
      return follow(skip(request), (skipped) => (skipped ? undefined : decide(request, incoming)));
    },
  };
  const admitted = (
    request: R,
    taken: readonly LimitRequest<N>[],
    found: Decision | AllDecision,
  ): Pending<Admission<R>> =>
    follow(escalate(taken, found), (decided) => {
      const admission = new Admission(made, request, taken, decided);
      if (onDecision === undefined) return admission;
      return follow(onDecision(admission.decision, request) as Pending<unknown>, () => admission);
    });
  const all = (request: R, taken: readonly LimitRequest<N>[]): Pending<Admission<R>> =>
    follow(limiter.limitAll(taken) as Pending<AllDecision>, (decided) => admitted(request, taken, decided));
  const one = (request: R, taken: LimitRequest<N>): Pending<Admission<R>> => {
    const { name, ...call } = taken;
    return follow(limiter.limit(name, call) as Pending<Decision>, (decided) => admitted(request, [taken], decided));
  };
  const decide = options.limits === undefined ? single(ruleOf<R, N>(options)) : several(options.limits);

  function single(rule: Rule<R, N>): Gate<R>["admit"] {
    const compiled = compile<R, N>(rule, limiter.names, address);
    return (request, incoming) => follow(compiled(request, incoming), (taken) => one(request, taken));
  }
  function several(limits: Several<R, N>): Gate<R>["admit"] {
    if (selection !== undefined) {
      return (request, incoming) =>
        follow(selection.select(request, incoming, address, checked.shadow), (taken) =>
          taken.length === 0 ? undefined : all(request, taken as readonly LimitRequest<N>[]),
        );
    }
    const compiled = typeof limits === "function" ? undefined : rules(limits);
    return (request, incoming) => {
      const found = compiled ?? follow((limits as (request: R) => Pending<readonly Rule<R, N>[]>)(request), rules);
      return follow(found, (rules) => {
        const taken = rules.map((rule) => rule(request, incoming));
        return follow(together(taken), (taken) => all(request, taken));
      });
    };
  }
  function rules(limits: Several<R, N>): CompiledRule<R, N>[] {
    if (!Array.isArray(limits))
      throw new InputError("limits", "an array of rules, a function that returns one, or policies", limits);
    if (limits.length === 0 || limits.length > MAX_REQUESTS) {
      const got = limits.length === 0 ? "0; use `skip` for requests without a limit" : String(limits.length);
      throw new InputError("limits", `1 to ${MAX_REQUESTS} rules`, limits, got);
    }
    return Array.from(limits as readonly Rule<R, N>[], (rule) => compile<R, N>(rule, limiter.names, address));
  }
  return made;
}

/** The names of limits that are not chosen for each request. */
function namesIn({ limits, ...rule }: { readonly limits?: unknown }): string[] {
  const rules: unknown[] = Array.isArray(limits) ? limits : [rule];
  return rules.map((rule) => (rule as { name?: unknown } | null)?.name).filter((name) => typeof name === "string");
}

function ruleOf<R, N extends string>(options: object): Rule<R, N> {
  const given = options as Record<string, unknown>;
  return Object.fromEntries(
    RULE_FIELDS.filter((field) => Object.hasOwn(given, field)).map((field) => [field, given[field]]),
  ) as unknown as Rule<R, N>;
}
