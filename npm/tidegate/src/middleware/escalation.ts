/** The option `block`: counts the denials of a key, and blocks it. */
import { MAX_COUNT, MAX_NAME_BYTES } from "../engine/generated/bounds.ts";
import type { Config } from "../limit/config.ts";
import { check, checkFields, durationFrom, fieldTable, integerFrom, msOf } from "../limit/checks.ts";
import { isPromise } from "../limit/realms.ts";
import type { AllDecision, Decision } from "../limit/decision.ts";
import { DAY, type Duration } from "../limit/duration.ts";
import { InputError, isStoreError } from "../limit/errors.ts";
import { unobserved } from "../limiter/check-limiter.ts";
import type { Limiter } from "../limiter/limiter.ts";
import { type CallOptions, keyed, type LimitRequest } from "../limiter/options.ts";
import { combined } from "../limit/combined.ts";
import { follow, type MaybePromise, together } from "../limit/maybe-promise.ts";

/** Blocks a key that is denied repeatedly, for longer each time. */
export interface EscalatingBlock {
  /** Denials of a key after which it is blocked: an integer from 1 to 1,000,000. */
  after: number;
  /**
   * How long: integer ms from 1 to 2^40, or a string such as `"10m"`. Of several, the first block lasts for the first, and so
   * on; the last one is repeated.
   */
  for: Duration | readonly Duration[];
  /**
   * Ms, or a string, in which denials and earlier blocks are counted, from the first of them; default one day. The time of
   * the blocks is added for blocks, of each length once.
   */
  within?: Duration | undefined;
}

/** What it requires of a limiter. */
type Blocker = Pick<Limiter, "limit" | "block" | "reset">;

/** Counts a denial, and returns its decision, with the end of a block that it began. */
export type Escalation = (limiter: Blocker, denied: LimitRequest<string>, decision: Decision) => MaybePromise<Decision>;

const FIELDS = fieldTable("after", "for", "within");
const AFTER = integerFrom("an integer from 1 to 1000000", 1, 1e6);
const LENGTH = durationFrom(1, MAX_COUNT, true);
const MOST_LENGTHS = 100;
/** The limit of the denials has a longer name. */
const MOST_NAME: number = MAX_NAME_BYTES - ".denials".length;

function lengthsOf(given: EscalatingBlock["for"]): number[] {
  const lengths = [given].flat();
  if (lengths.length === 0 || lengths.length > MOST_LENGTHS) {
    throw new InputError("block.for", `a length, or an array of 1 to ${MOST_LENGTHS} of them`, given);
  }
  return lengths.map((length) => msOf(check("block.for", length, LENGTH)));
}

/** `answer`, after `run`. If the store failed, which the limiter has logged, too: the request is denied in any case. */
function answerAfter<T>(run: () => MaybePromise<unknown>, answer: T): MaybePromise<T> {
  const failed = (error: unknown): T => {
    if (!isStoreError(error)) throw error;
    return answer;
  };
  try {
    const result = run();
    return isPromise(result) ? result.then(() => answer, failed) : answer;
  } catch (error) {
    return failed(error);
  }
}

/** Ms in which a key has one block at most: until it is stored that none begins while it lasts. */
const BEGINS = 1000;

/** The calls on a limit of a key's denials or blocks. */
const counterOf = (limiter: Blocker, name: string, at: CallOptions & { config: Config }) => ({
  take: () => limiter.limit(name, at),
  block: (length: number) => limiter.block(name, { ...at, for: length }),
  /** Calls when it is full again. */
  anew: <T>(call: () => MaybePromise<T>) => follow(limiter.reset(name, at), call),
});

/** Checks the option once, with the names that are known, and returns the function that counts denials. */
export function escalation(block: EscalatingBlock, names: readonly string[]): Escalation {
  checkFields(block, FIELDS, "block");
  const { after, within = DAY } = block;
  check("block.after", after, AFTER);
  check("block.within", within, LENGTH);
  const lengths = lengthsOf(block.for);
  const window = { kind: "fixed window", period: msOf(within), start: "first request" } as const;
  /** Ms in which this many blocks count: besides them, or the last could never begin, or never be repeated. */
  const countedFor = (blocks: number) => lengths.slice(0, blocks).reduce((sum, length) => sum + length, window.period);
  // The limits that count a key's denials and its blocks, and let one begin at a time.
  const denials: Config = { ...window, rate: after };
  const period = Math.min(countedFor(lengths.length), MAX_COUNT);
  const blocks: Config = { ...window, period, rate: lengths.length };
  const begins: Config = { kind: "token bucket", rate: 1, period: Math.min(BEGINS, ...lengths) };
  for (const name of names) {
    if (name.length > MOST_NAME) throw new InputError("name", `at most ${MOST_NAME} characters with \`block\``, name);
  }
  return (limiter, request, decision) => {
    if (decision.degraded === true || decision.retryAt === undefined) return decision;
    const counter = (what: string, config: Config) =>
      // A denial that counts is one decision: observers would have up to eight of it.
      counterOf(unobserved(limiter), `${request.name}.${what}`, { ...keyed(request.key), config });
    const counts = counter("denials", denials);
    /** No denial counts for so long, and then they are counted anew. */
    const pause = (length: number) => counts.anew(() => counts.block(length));
    return follow(counts.take(), (counted) => {
      // One request alone takes the last token, so one alone begins the block; while it lasts there are no tokens to take.
      if (!counted.ok || counted.degraded === true || counted.remaining > 0) return decision;
      const begin = counter("begins", begins);
      return follow(begin.take(), (first) => {
        // Denials from before a block are counted while it begins: they begin no other, and the count is new after it.
        if (!first.ok && first.degraded !== true) {
          const { retryAfter = 1 } = first;
          return answerAfter(() => pause(retryAfter), decision);
        }
        const begun = counter("blocks", blocks);
        // Denied if each length had its turn. A charge would owe tokens then, and remember blocks beyond `within`.
        return follow(begun.take(), ({ ok, degraded, value, now, ts }) => {
          const earlier = degraded === true ? 0 : lengths.length - value - Number(ok);
          // If the earlier ones no longer count: the limit remembers them for as long as all lengths take.
          const isFirst = now - ts >= countedFor(earlier);
          const length = lengths[isFirst ? 0 : Math.min(earlier, lengths.length - 1)] as number;
          return follow(blocked(limiter, request, length, decision), (answer) => {
            // While it lasts, no other block begins and no denial counts.
            const held = () => follow(begin.block(length), () => pause(length));
            return answerAfter(() => follow(held(), () => isFirst && begun.anew(begun.take)), answer);
          });
        });
      });
    });
  };
}

/** Blocks the key. Returns the decision, with the end of the block if that is later. */
function blocked(
  limiter: Blocker,
  { name, key, config }: LimitRequest<string>,
  length: number,
  decision: Decision,
): MaybePromise<Decision> {
  const { retryAt: earlierRetryAt = 0 } = decision;
  return follow(limiter.block(name, { ...keyed(key), for: length, config }), (block) => {
    const longer = block.degraded !== true && (block.retryAt ?? 0) > earlierRetryAt;
    return longer ? { ...block, ok: false } : decision;
  });
}

/** Counts the denials among the decisions on a request. `count` counts one. */
export function escalated<D extends Decision | AllDecision>(
  taken: readonly LimitRequest<string>[],
  decided: D,
  count: (request: LimitRequest<string>, decision: Decision) => MaybePromise<Decision>,
): MaybePromise<D> {
  if (decided.ok) return decided;
  if (!("decisions" in decided)) return count(taken[0] as LimitRequest<string>, decided) as MaybePromise<D>;
  const counted = decided.decisions.map((decision, i) =>
    decision.ok ? decision : count(taken[i] as LimitRequest<string>, decision),
  );
  return follow(together(counted), (decisions) => ({
    ...decided,
    ...combined(decisions, (decisions[0] as Decision).now),
  }));
}
