/** Sends requests: those made in one turn of the event loop go out as one call of the script. */

import type { Decision, State } from "../../limit/decision.ts";
import { messageOf, readable, StoreError, withoutPassword } from "../../limit/errors.ts";
import { LOOK } from "../../limit/evaluator.ts";
import { overdueTimers } from "../../limit/monotonic.ts";
import type { Deadline, Now, Operation } from "../contract.ts";
import { type Moment, ServerClock } from "../server-clock.ts";
import { idsOf, KeyError, type Target, TOO_BUSY } from "../failure.ts";
import type { Link } from "./clients.ts";
import { slotOf } from "./key.ts";
import { type Before, encode, type Reply, type Rule, readLate, readReply, SCRIPT, SCRIPT_SHA1 } from "./script.ts";

/** The store's name in errors. */
export const STORE = "redis";

export interface Request extends Target {
  readonly redisKey: string;
  readonly rule: Rule;
}

/** What came of a request. */
export interface Answer {
  readonly decision: Decision;
  /** What the key held before. */
  readonly before: State | null;
  /** The clock by which it was decided, ms. */
  readonly now: number;
}

/** One request, or several that are all granted or none, until they are answered. */
interface Entry {
  readonly requests: readonly Request[];
  readonly deadline: Deadline;
  readonly resolve: (answers: readonly Answer[]) => void;
  readonly reject: (error: unknown) => void;
}

/** One call of the script, while it is collected. */
interface Batch {
  /** The clock that was passed in; absent: the server's. */
  readonly now: Now;
  /** The slot of its keys; 0 without a cluster. */
  readonly slot: number;
  readonly entries: Entry[];
  size: number;
}

/** One call of the script that was sent. */
interface Sent extends Omit<Batch, "size"> {
  readonly clock: ServerClock;
  readonly keys: string[];
  readonly args: string[];
}

/**
 * Called with each answer before its caller gets it. The script was called at `sentAt` (`performance.now()`); its clock was
 * `passed` in, or is the server's.
 */
export type OnAnswer = (request: Request, answer: Answer, sentAt: number, passed: boolean) => void;

/** Most requests of one script call, save for one `limitAll`: a server's other clients wait for some 100 microseconds. */
const MOST_REQUESTS = 64;
/** Masters whose clocks are kept; a cluster has fewer, but over years their addresses change. */
const MOST_CLOCKS = 1000;
const TOO_LATE = "it reached the server after its deadline; nothing was taken";

export class Pipeline {
  /** The clock of the server; of a cluster, the latest of its masters. */
  readonly clock: ServerClock = new ServerClock();
  readonly #masterClocks = new Map<string, ServerClock>();
  readonly #link: Link;
  readonly #onAnswer: OnAnswer;
  /** By slot: its calls are carried out in their order. */
  readonly #open = new Map<number, Batch>();
  #scheduled = false;
  #sentScript = false;

  constructor(link: Link, onAnswer: OnAnswer) {
    this.#link = link;
    this.#onAnswer = onAnswer;
  }

  /** Sends an entry, whose keys are of one slot, at the end of this turn. */
  send(entry: Entry, now: Now): void {
    const batch = this.#batch((entry.requests[0] as Request).redisKey, now);
    batch.entries.push(entry);
    batch.size += entry.requests.length;
  }

  #batch(redisKey: string, now: Now): Batch {
    const slot = this.#link.cluster ? slotOf(this.#link.keyPrefix + redisKey) : 0;
    const open = this.#open.get(slot);
    if (open !== undefined) {
      if (open.now === now && open.size < MOST_REQUESTS) return open;
      this.#run(open);
    }
    const batch: Batch = { now, slot, entries: [], size: 0 };
    this.#open.set(slot, batch);
    if (!this.#scheduled) {
      this.#scheduled = true;
      // After all that is ready to run in this turn of the event loop, promises included.
      void settled.then(() => later(this.#flush));
    }
    return batch;
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    for (const [slot, batch] of this.#open) {
      this.#open.delete(slot);
      this.#run(batch);
    }
  };

  #run({ now, slot, entries: all }: Omit<Batch, "size">): void {
    const clock = this.#clockOf(slot);
    const mark = clock.mark();
    const entries: Entry[] = [];
    for (const entry of all) {
      if (mark.monotonic >= deadlineOf(entry)) fail(entry, TOO_BUSY);
      else entries.push(entry);
    }
    if (entries.length === 0) return;
    const sent = { entries, now, slot, clock, ...encode(entries, this.#link.form, now) };
    this.#call(sent, !this.#sentScript, mark);
  }

  /**
   * Calls the script: `whole`, which the first call of all does, or by its digest. A client may hold a call back and send
   * it when it is connected again, long after. So the script compares the first of the callers' deadlines with the server's
   * clock, and does nothing if it has passed.
   */
  #call(sent: Sent, whole: boolean, mark: Moment): void {
    const { entries, now, slot, clock, keys, args } = sent;
    const deadline = firstDeadline(entries);
    if (deadline !== Infinity) {
      args[1] = String(Math.ceil((clock.latest(mark) ?? mark.wall) + deadline - mark.monotonic));
    }
    this.#sentScript = true;
    const failed = (thrown: unknown) => {
      const error = withoutCommand(readable(thrown));
      const message = messageOf(error);
      // A missing script has done nothing. Whatever else failed may have been carried out, and is not repeated.
      if (!whole && signals(message, MISSING_SCRIPT)) this.#call(sent, true, clock.mark());
      // Nor has a call with a key that the server refused: its entries are sent one by one.
      else if (entries.length > 1 && signals(message, OF_KEYS)) {
        for (const entry of entries) this.#run({ now, slot, entries: [entry] });
      } else for (const entry of entries) fail(entry, error);
    };
    const replied = (reply: unknown) => {
      try {
        const late = readLate(reply);
        if (late === undefined) return this.#settle(sent, readReply(reply, keys.length), mark);
        clock.learn(mark, late);
        void this.#callAgain(sent);
      } catch (error) {
        for (const entry of entries) fail(entry, error);
      }
    };
    try {
      void this.#link.run(whole, whole ? SCRIPT : SCRIPT_SHA1, keys, args).then(replied, failed);
    } catch (error) {
      failed(error);
    }
  }

  /** After the server has found it late: the estimate of its clock was wrong, or a deadline has passed or moved. */
  async #callAgain(sent: Sent): Promise<void> {
    const { entries, now, slot } = sent;
    await overdueTimers(firstDeadline(entries));
    const at = performance.now();
    const inTime: Entry[] = [];
    for (const entry of entries) {
      if (at < deadlineOf(entry)) inTime.push(entry);
      else fail(entry, new Error(TOO_LATE));
    }
    this.#run({ now, slot, entries: inTime });
  }

  #clockOf(slot: number): ServerClock {
    const master = this.#link.cluster ? this.#link.masterOf(slot) : undefined;
    if (master === undefined) return this.clock;
    let clock = this.#masterClocks.get(master);
    if (clock === undefined) {
      if (this.#masterClocks.size >= MOST_CLOCKS) this.#masterClocks.clear();
      clock = new ServerClock();
      this.#masterClocks.set(master, clock);
    }
    return clock;
  }

  /** Evaluates in the core what the script did, by what the keys held before, and answers the callers. */
  #settle({ entries, now: given, clock, keys }: Sent, reply: Reply, mark: Moment): void {
    const { now } = reply;
    const passed = given !== undefined;
    if (!passed) {
      this.clock.learn(mark, now);
      if (clock !== this.clock) clock.learn(mark, now);
    }
    const [entry] = entries as [Entry];
    if (entries.length === 1 && entry.requests.length === 1) {
      // The usual call, without the lists that several need.
      const [request] = entry.requests as [Request];
      const outcome = outcomeOf(request, reply.before[0] as Before, now);
      if (outcome instanceof StoreError) throw outcome;
      checkGranted(reply, outcome.decision.ok ? 1 : 0);
      this.#onAnswer(request, outcome, mark.monotonic, passed);
      entry.resolve([outcome]);
      return;
    }
    const held = new Map<string, Before>();
    for (let i = keys.length - 1; i >= 0; i--) held.set(keys[i] as string, reply.before[i] as Before);
    const results = entries.map(({ requests }) => outcomesOf(requests, held, now));
    let granted = 0;
    for (const outcomes of results) {
      if (!(outcomes instanceof StoreError)) for (const { decision } of outcomes) if (decision.ok) granted++;
    }
    checkGranted(reply, granted);
    for (let i = 0; i < entries.length; i++) {
      const { requests, resolve, reject } = entries[i] as Entry;
      const outcomes = results[i] as Outcome[] | StoreError;
      if (outcomes instanceof StoreError) reject(outcomes);
      else {
        for (let at = 0; at < requests.length; at++) {
          this.#onAnswer(requests[at] as Request, outcomes[at] as Outcome, mark.monotonic, passed);
        }
        resolve(outcomes);
      }
    }
  }
}

/** When its caller stops waiting (`performance.now()`, ms); infinite: never. */
const deadlineOf = ({ deadline }: Entry): number => deadline?.at ?? Infinity;

function firstDeadline(entries: readonly Entry[]): number {
  let first = Infinity;
  for (const entry of entries) first = Math.min(first, deadlineOf(entry));
  return first;
}

/** An answer, and what the key holds after it. */
interface Outcome extends Answer {
  readonly after: State | null;
}

/** What the script did on this key, or the error of a key that holds no state. */
function outcomeOf(request: Request, found: Before, now: number): Outcome | StoreError {
  const { limit, rule } = request;
  const isReset = rule.op === "reset";
  const before = isReset ? null : found;
  if (typeof before === "string") return corrupt(request, before);
  const { decision, state } = limit.evaluate(before, isReset ? LOOK : (rule as Operation), now, rule);
  return { decision, before, now, after: state };
}

/** What the script did for an entry, by what its keys held; that is updated. */
function outcomesOf(requests: readonly Request[], held: Map<string, Before>, now: number): Outcome[] | StoreError {
  const outcomes: Outcome[] = [];
  for (const request of requests) {
    const outcome = outcomeOf(request, held.get(request.redisKey) as Before, now);
    if (outcome instanceof StoreError) return outcome;
    outcomes.push(outcome);
  }
  if (outcomes.every(({ decision }) => decision.ok)) {
    for (let i = 0; i < outcomes.length; i++)
      held.set((requests[i] as Request).redisKey, (outcomes[i] as Outcome).after);
  }
  return outcomes;
}

/** No sound server differs from the core. */
function checkGranted(reply: Reply, granted: number): void {
  if (granted === reply.granted) return;
  throw new Error(`the server granted ${reply.granted} of these requests, the core grants ${granted}`);
}

/**
 * What clients put before the server's message, which begins with its error code. GLIDE has names instead of the codes.
 * What a message quotes further on may be a caller's key.
 */
const WORDS_OF_CLIENT =
  /^(?:An error was signalled by the server: - |(?:Too many Cluster redirections\. Last error: )?(?:(?![A-Z]{2,} )[\w[\] ]*(?:failed|Error): )*)/;
const MISSING_SCRIPT = /^(?:NOSCRIPT(?: |$)|NoScriptError: )/;
/**
 * The server refused some of the keys before it ran the script. They have moved to another master with their slot, and
 * others have not, or the user's ACL withholds them.
 */
const OF_KEYS =
  /^(?:(?:MOVED|ASK|TRYAGAIN) |(?:Moved|Ask|TryAgain): |(?:NOPERM |PermissionDenied: ).*\baccess (?:a key|one of the keys))/;

/** The user's ACL withholds a command or a key, also inside the script. */
const WITHHELD = /^(?:NOPERM |PermissionDenied: )|can't run this command|ACL failure/;

const signals = (message: string, code: RegExp): boolean => code.test(message.replace(WORDS_OF_CLIENT, ""));

/** What a key holds is not a state. It is never taken for a fresh key. */
const corrupt = (request: Request, what: string): StoreError =>
  new StoreError(`corrupt state: ${what}`, {
    store: STORE,
    operation: request.rule.op,
    identity: request.limit.identity(request.key, request.shard),
    scope: "key",
  });

/** `SET` in the script takes `PXAT` since Redis 6.2. */
const TOO_OLD = /user_script.*\bERR syntax error/;

function fail({ requests, reject }: Entry, cause: unknown): void {
  const operation = (requests[0] as Request).rule.op;
  const identity = idsOf(requests).join(", ");
  const reported = messageOf(cause);
  let message = reported;
  if (TOO_OLD.test(reported)) message = `the server must be Redis 6.2 or newer (${reported})`;
  if (signals(reported, WITHHELD)) {
    message = `${reported}; its ACL needs +evalsha +eval +time +get +set +del on the store's keys`;
  }
  const scope = cause instanceof KeyError || signals(message, OF_KEYS) ? "key" : "store";
  reject(
    cause instanceof StoreError ? cause : new StoreError(message, { store: STORE, operation, identity, cause, scope }),
  );
}

/** The server, or Upstash's client, quotes the command, which has the script and the keys of other callers. */
const QUOTED = /, (?:with args beginning with|command was): .*/s;

function withoutCommand(error: unknown): unknown {
  const message = messageOf(error);
  const kept = message.replace(QUOTED, "");
  return kept === message ? withoutPassword(error) : new Error(kept);
}

const settled = Promise.resolve();
const host = globalThis as {
  process?: { nextTick?: (run: () => void) => void };
  setImmediate?: (run: () => void) => void;
};
const task = (run: () => void) => void setTimeout(run, 0);
// Node.js, Bun and Deno run a tick when the promises are done, before any I/O; elsewhere a separate task is closest.
const soon: (run: () => void) => void = host.process?.nextTick ?? host.setImmediate ?? task;

function later(run: () => void): void {
  try {
    soon(run);
  } catch {
    // Where `next start` runs the edge runtime, both of Node.js's functions are there, and throw.
    task(run);
  }
}
