/**
 * What every middleware does with a request: chooses its limits (rule.ts), takes from them, and makes the response of a
 * denial. A framework's file calls it through node-response.ts or fetch-response.ts.
 */
import { appendChecked, appendFields, type HeaderTarget, rateLimitHeaders } from "../http/fields.ts";
import { PROBLEM_JSON, type Problem, problem } from "../http/problem.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import type { RetryOptions } from "../http/quota.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { unknownName } from "../limiter/check-limiter.ts";
import type { LimitOptions, LimitRequest } from "../limiter/options.ts";
import { type Choose, compileRules, isOne, type Taken } from "./rule.ts";
import { clientKey, type Incoming, sharerOf } from "./client-key.ts";
import { bindingDecision } from "./request-decision.ts";
import {
  type CheckedOptions,
  checkGateOptions,
  checkMounted,
  type Denial,
  type Options,
  type Outcome,
  type RequestDecision,
} from "./options.ts";
import { escalated, escalation } from "./escalation.ts";
import { follow, type MaybePromise } from "../limit/maybe-promise.ts";
import { checkSelection, isSelection } from "./selection.ts";
import { settleUp, type Worth } from "../limiter/settlement.ts";
import type { PerObject } from "./private-field.ts";

/** A request that was decided. */
export class Admission<R> {
  readonly decision: RequestDecision;
  readonly #decided: Decision | AllDecision;
  readonly #gate: Gate<R>;
  readonly #taken: readonly LimitRequest<string>[];
  readonly #request: R;
  readonly #incoming: Incoming;
  #denied: Readonly<Record<string, string>> | undefined;

  constructor(
    gate: Gate<R>,
    request: R,
    incoming: Incoming,
    taken: readonly LimitRequest<string>[],
    decided: Decision | AllDecision,
  ) {
    this.#gate = gate;
    this.#request = request;
    this.#incoming = incoming;
    this.#taken = taken;
    this.#decided = decided;
    this.decision = bindingDecision(decided);
  }

  /** Whether the handler must not run. */
  get blocked(): boolean {
    return !this.decision.ok && !this.#gate.options.shadow;
  }

  /** The options of a denial's wait: the jitter is that of the keys, or the client's if all share the limits. */
  #spread(): RetryOptions {
    const { jitter, client } = this.#gate.options;
    if (jitter.fraction === 0) return {};
    const isShared = this.#taken.every(({ key }) => key === undefined);
    const key = isShared ? sharerOf(this.#incoming, client) : this.#taken.map(({ key = "" }) => key).join("\n");
    return { jitter: { ...jitter, key } };
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

  denial(): MaybePromise<Denial> {
    const { statusCode, never, message } = this.#gate.options;
    const details = problem(this.#decided, { ...this.#spread(), never }) as Problem;
    const status = details.status === 429 ? statusCode : details.status;
    const denial = { decision: this.decision, status, headers: this.#fields(), problem: { ...details, status } };
    const body = typeof message === "function" ? message(this.#request, denial) : message;
    return follow(body, (body): Denial => {
      if (body === undefined) return { body: JSON.stringify(denial.problem), contentType: PROBLEM_JSON, ...denial };
      if (typeof body === "string") return { body, contentType: "text/plain; charset=utf-8", ...denial };
      return { body: JSON.stringify(body), contentType: "application/json; charset=utf-8", ...denial };
    });
  }

  /** Corrects what was taken to what the request was worth. Never rejects, because the response has been sent. */
  async settle(end: Pick<Outcome<R>, "status" | "aborted" | "error" | "result">): Promise<void> {
    const { options, limiter } = this.#gate;
    if (options.settle === undefined || !this.decision.ok) return;
    try {
      const worth = await options.settle({ ...end, request: this.#request, decision: this.decision });
      this.#gate.checkNames(worth);
      await settleUp(limiter, this.#taken, this.decision.decisions, worth);
    } catch (error) {
      await this.#gate.report(error);
    }
  }
}

/**
 * What all middleware share: it chooses a request's limits, takes from them by one call of the limiter, counts denials
 * towards a block, and reports the decision.
 */
export class Gate<R> {
  readonly options: CheckedOptions<R>;
  readonly limiter: Limiter;
  readonly #choose: Choose<R>;
  /** Counts one denial by the option `block`, except on a limit that the selection itself blocks; returns its decision. */
  readonly #countDenial: ((denied: LimitRequest<string>, decision: Decision) => MaybePromise<Decision>) | undefined;
  readonly #decided: PerObject<true>;
  /** All names that a request's limits can have; `undefined` if a function or policies choose them. */
  readonly #names: readonly string[] | undefined;
  #reported = false;

  /**
   * Throws an `InputError` that names the option. `setting` is the framework's own setting for proxies; `decided` remembers
   * which requests the gate has decided.
   */
  constructor(
    limiter: Limiter,
    options: Options<R, string, unknown>,
    setting?: string,
    decided: PerObject<true> = new WeakMap<object, true>(),
  ) {
    checkMounted(limiter);
    this.options = checkGateOptions(options);
    this.limiter = limiter;
    this.#decided = decided;
    const { limits, client, block } = options;
    const { shadow } = this.options;
    const address = clientKey(client, setting);
    const selection = isSelection<R>(limits) ? limits : undefined;
    if (selection !== undefined) checkSelection(selection, limiter);
    const given = givenNames(options);
    const fixed = given.filter((name) => typeof name === "string");
    if (block !== undefined && !shadow) {
      const count = escalation(block, fixed);
      this.#countDenial = (denied, decision) =>
        selection?.blocks?.(denied) === true ? decision : count(limiter, denied, decision);
    }
    // A limiter that the application wrote may have no names.
    const { names }: { names?: readonly string[] } = limiter;
    if (names !== undefined && fixed.length === given.length) this.#names = [...new Set([...fixed, ...names])];
    this.#choose = compileRules(options, names, address, shadow);
  }

  /**
   * Decides, synchronously if everything it calls is. `undefined` if the request is not limited, or if this gate
   * has already decided it: `once` is the object of the request that is the same in all places where the gate is mounted.
   */
  admit(request: R, incoming: Incoming, once?: object): MaybePromise<Admission<R> | undefined> {
    if (once !== undefined) {
      if (this.#decided.get(once) === true) return undefined;
      this.#decided.set(once, true);
    }
    // Node.js keeps an address that was read: a client that leaves while a function of the options is awaited keeps its key.
    void incoming.socket?.remoteAddress;
    const { skip } = this.options;
    if (skip === undefined) return this.#decide(request, incoming);
    return follow(skip(request), (skipped) => (skipped ? undefined : this.#decide(request, incoming)));
  }

  #decide(request: R, incoming: Incoming): MaybePromise<Admission<R> | undefined> {
    return follow(this.#choose(request, incoming), (taken) => this.#take(request, incoming, taken));
  }

  #take(request: R, incoming: Incoming, taken: Taken): MaybePromise<Admission<R> | undefined> {
    if (isOne(taken)) {
      return follow(this.limiter.limit(taken.name, callOptions(taken)), (decided) =>
        this.#admission(request, incoming, [taken], decided),
      );
    }
    if (taken.length === 0) return undefined;
    return follow(this.limiter.limitAll(taken), (decided) => this.#admission(request, incoming, taken, decided));
  }

  #admission(
    request: R,
    incoming: Incoming,
    taken: readonly LimitRequest<string>[],
    found: Decision | AllDecision,
  ): MaybePromise<Admission<R>> {
    const { onDecision } = this.options;
    const counted = this.#countDenial === undefined ? found : escalated(taken, found, this.#countDenial);
    return follow(counted, (decided) => {
      const admission = new Admission(this, request, incoming, taken, decided);
      if (onDecision === undefined) return admission;
      return follow(onDecision(admission.decision, request), () => admission);
    });
  }

  /** Throws if `settle` returned tokens of a name that no limit has: it would change nothing. */
  checkNames(worth: Worth): void {
    const names = this.#names;
    if (names === undefined || typeof worth !== "object") return;
    for (const name of Object.keys(Object(worth))) if (!names.includes(name)) throw unknownName(name, names, "settle");
  }

  /** Reports an error that no response can carry. Never rejects. */
  async report(error: unknown): Promise<void> {
    const { onError = (error: unknown) => this.#log(error) } = this.options;
    try {
      await onError(error);
    } catch (failure) {
      this.#log(failure);
    }
  }

  #log(error: unknown): void {
    if (!this.#reported) console.error("tidegate: a request failed; further errors are not logged:", error);
    this.#reported = true;
  }
}

/** The options of a call. Field by field, since they are made for each request: a rest pattern takes longer. */
function callOptions({ key, count, reserve, config }: LimitRequest<string>): LimitOptions {
  return key === undefined ? { count, reserve, config } : { key, count, reserve, config };
}

/** The names of the limits: a function if it is chosen for each request, absent if the limits are. */
function givenNames({ limits, ...rule }: { readonly limits?: unknown }): unknown[] {
  const rules: unknown[] = Array.isArray(limits) ? limits : [rule];
  return rules.map((rule) => (rule as { name?: unknown } | null)?.name);
}
