import { CALLERS } from "./callers.mjs";
import { CLIENT } from "./client.mjs";
import { HTTP } from "./http.mjs";
import { one } from "./mutant.mjs";
import { POSTGRES } from "./postgres.mjs";
import { PROMISES } from "./promises.mjs";
import { REDIS } from "./redis.mjs";
import { RUST } from "./rust.mjs";
import { STORES } from "./stores.mjs";

const LEASE = ["lease/calls.test.ts", "lease/queue.test.ts", "lease/nodes.test.ts", "lease/laws.test.ts"];
const CLOCK = ["server-clock.test.ts"];
const QUEUE = ["client/throttle.test.ts", "client/laws.test.ts"];

const OUTAGES = ["resilience.test.ts", "outages.test.ts"];
const KEYED_QUEUE = ["keyed-queue.test.ts", "transactional.test.ts"];
const SHARDED = ["sharded.test.ts"];
const NAMES = ["middleware/drop-in-names.test.ts"];

const [EXPRESS, FASTIFY] = ["middleware/express.test.ts", "middleware/fastify.test.ts"];
const NEST = "middleware/nest-contexts.test.ts";
const ELSEWHERE = "middleware/elsewhere.test.ts";
const SYNC = "resilience-sync.test.ts";

const LIST = [
  one("limiter/lease/lease.ts", "if (now - this.#lentAt >= this.#settings.expiry)", "if (false)", ...LEASE),
  one("limiter/lease/lease.ts", "Math.abs(quick - this.usedAt) < this.#settings.ahead", "true", "lease/faults.test.ts"),
  one(
    "limiter/lease/leases.ts",
    "undefined, this.#settle([lease]))",
    "void this.#settle([lease]))",
    "lease/faults.test.ts",
  ),
  one(
    "limiter/lease/leases.ts",
    "undefined, lease && this.#settle([lease])",
    "void (lease && this.#settle([lease]))",
    "lease/faults.test.ts",
  ),
  one(
    "limiter/lease/leases.ts",
    "undefined, this.#settle(leases)",
    "void this.#settle(leases)",
    "lease/faults.test.ts",
  ),
  one("limiter/resilience.ts", "task.after?.then(send) ?? sentBy(send)", "sentBy(send)", "lease/faults.test.ts"),
  one("limiter/resilience.ts", "if (deadline.at <= monotonicNow()) throw", "if (false) throw", "lease/faults.test.ts"),
  one("limiter/resilience.ts", "this.#untilConnected() + timeout", "timeout", "lease/faults.test.ts"),
  one("limiter/resilience.ts", "after ? undefined : recalled", "false ? undefined : recalled", "lease/faults.test.ts"),
  one("limiter/lease/lease.ts", "now - this.#learnedAt >= this.#settings.ahead", "false", ...LEASE),
  one("limiter/lease/lease.ts", "this.#balance += lent;", "this.#balance = lent;", ...LEASE),
  one("limiter/lease/lease.ts", "mark.returns === this.#returns ? now", "true ? now", ...LEASE),
  one("limiter/lease/lease.ts", "    this.#balance = left;\n", "", ...LEASE),
  one(
    "limiter/lease/leases.ts",
    "    this.#drop(this.#find(call.limit, call.key));\n    return decision;",
    "    return decision;",
    ...LEASE,
  ),
  one(
    "limiter/lease/lease.ts",
    "need + count <= this.#balance + room * (need === 0 ? 1 : this.#found)",
    "true",
    ...LEASE,
  ),
  one("limiter/lease/lease.ts", "this.#settings.share * left", "left", ...LEASE),
  one("limiter/lease/lease.ts", "count < this.waiting.most", "false", ...LEASE),
  one("limiter/lease/lease.ts", "this.#state.value - this.waiting.tokens", "this.#state.value", ...LEASE),
  one("limiter/lease/lease.ts", "this.#found = (this.#found +", "this.#found = 0 * (this.#found +", ...LEASE),
  one("limiter/lease/lease.ts", "    this.tokens -= count;\n", "", ...LEASE),
  one("limiter/lease/refill.ts", "LOST = 10_000", "LOST = 1e12", "lease/faults.test.ts"),
  one("limiter/lease/options.ts", "expiry = 10 * ahead", "expiry = 5 * ahead", "lease/calls.test.ts"),
  one("limit/shards.ts", "Math.max(decision.resetAt, other.resetAt)", "decision.resetAt", "shards.test.ts"),
  one("limit/shards.ts", "Math.max(decision.ts, other.ts)", "decision.ts", "shards.test.ts"),
  one("stores/server-clock.ts", "known > least && known < most", "known < most", ...CLOCK),
  one("stores/server-clock.ts", "Math.ceil(monotonic + ahead) - 1", "Math.ceil(monotonic + ahead) - 2", ...CLOCK),
  one("stores/server-clock.ts", "Math.max(monotonic - this.#at, 0) * DRIFT", "0", ...CLOCK),
  one("stores/server-clock.ts", "now - mark.wall) : now - mark.wall", "now - mark.wall) : 0", ...CLOCK),
  one(
    "limiter/lease/leases.ts",
    'op === "take" && !reserve) return this.take',
    'op === "take") return this.take',
    ...LEASE,
  ),
  one("limiter/lease/leases.ts", 'op === "give" ? lease.returned(sent) : sent', "sent", ...LEASE),
  one("limiter/lease/leases.ts", "while (lease.refilling !== undefined) await", "await", ...LEASE),
  one("limiter/lease/lease.ts", "GROWTH * Math.max(spent, 1)", "Infinity", ...LEASE),
  one(
    "limiter/lease/lease.ts",
    "elapsed < ahead ? (this.perMs + perMs) / 2 : perMs",
    "(this.perMs + perMs) / 2",
    ...LEASE,
  ),
  one("client/queue.ts", "if (this.#waiting.length < maxQueued)", "if (this.#waiting.length <= maxQueued)", ...QUEUE),
  one("client/queue.ts", "if (at > now) {", "if (at > now + 1) {", ...QUEUE),
  one("client/queue.ts", "if (at <= notAfter) return", "if (at < notAfter) return", ...QUEUE),
  one("client/queue.ts", "this.#reserve?.owe(-call.count);", "", ...QUEUE),
  one("client/queue.ts", "semaphore?.release();", "", ...QUEUE),
  one("client/queue.ts", "throwIfAborted(signal);", "", ...QUEUE),
  one("limiter/outages.ts", "node.failures < FAILURES_TO_OPEN", "node.failures <= FAILURES_TO_OPEN", ...OUTAGES),
  one("limiter/outages.ts", "if (now < node.probeAt) return undefined;", "", ...OUTAGES),
  one("limiter/outages.ts", "    node.failures = 0;\n", "", ...OUTAGES),
  one("limiter/resilience.ts", "if (decision !== undefined) {", "if (false) {", ...OUTAGES),
  one("limiter/outages.ts", "Math.min(node.wait * 2, PROBE_AFTER_MOST)", "node.wait", ...OUTAGES),
  one("limiter/outages.ts", "if (isAnswered(error)) this.succeeded(name);", "", ...OUTAGES),
  one("limiter/outages.ts", "node.isLogged || now - node.loggedAt < LOG_EVERY", "false", ...OUTAGES),
  one("limiter/outages.ts", " || now - this.#keyLoggedAt < LOG_EVERY) return;", ") return;", ...OUTAGES),
  one("limiter/outages.ts", "this.#nodes.get(name)?.isLogged || ", "", ...OUTAGES),
  one("limiter/outages.ts", "      node.isLogged = false;\n", "", ...OUTAGES),
  one("limiter/resilience.ts", "[...new Set(names)].sort()", "[names[0]]", ...OUTAGES),
  one("limiter/outages.ts", 'error.scope === "key"', "false", ...OUTAGES),
  one("limiter/outages.ts", "if (isAnswered(error)) this.succeeded", "this.succeeded", "outages.test.ts"),
  one("stores/failure.ts", "?? (cause as Partial<KeyError> | undefined)?.answered", "", "outages.test.ts"),
  one("stores/failure.ts", "answered ?? (cause", "(cause", "unanswered.test.ts"),
  one("limiter/outages.ts", "    node.probeAt = 0;\n", "", "unanswered.test.ts"),
  one("limiter/outages.ts", "node.wait = Math.max(node.wait / 2, PROBE_AFTER);", "", "unanswered.test.ts"),
  one("limiter/resilience.ts", 'admitted === "probe" && ', "", "unanswered.test.ts"),
  one("limit/errors.ts", "^([^/ ]+:", "^(\\w+:", "mistaken-clients.test.ts"),
  one("limit/errors.ts", "[=@]", "=", "mistaken-clients.test.ts"),
  one("limit/errors.ts", "[=@]", "@", "mistaken-clients.test.ts"),
  one("limit/monotonic.ts", "late < JITTER)", "true)", "busy.test.ts"),
  one("limit/monotonic.ts", "late > -EARLY && ", "", "busy.test.ts"),
  one("limit/monotonic.ts", "late < -FAKE || ", "", "busy.test.ts"),
  one("limit/monotonic.ts", "deadline.at = now + rest;", "{}", "busy.test.ts"),
  one("stores/postgres/queue.ts", "overdue(this.#waiting) ?? ", "", "postgres-deadline.test.ts"),
  one("stores/postgres/queue.ts", " ?? overdue(this.#onLocked)", "", "postgres-deadline.test.ts"),
  one("stores/postgres/queue.ts", "rows.find((id) => alone.has(id))", "rows[0]", "postgres-queue.test.ts"),
  one("stores/postgres/executor.ts", "      await overdue(batch.requests);\n", "", "postgres-deadline.test.ts"),
  one(
    "stores/postgres/queue.ts",
    "      for (const id of pending.ids) skipped.add(id);\n",
    "",
    "postgres-queue.test.ts",
  ),
  one(
    "stores/postgres/client.ts",
    '!has(client, "savepoint") && !has(client, "release")',
    '!has(client, "savepoint")',
    "postgres-inputs.test.ts",
  ),
  one("stores/workers-kv.ts", "    after.readAt = Date.now();\n", "    ", "workers-kv.test.ts"),
  one(
    "stores/workers-kv.ts",
    "new TextEncoder().encode(key).length <= MAX_KEY_BYTES",
    "key.length <= MAX_KEY_BYTES",
    "workers-kv.test.ts",
  ),
  one("limiter/resilience.ts", "connectBy ??= ", "connectBy = ", "connecting.test.ts"),
  one("limiter/resilience.ts", "at: monotonicNow() + timeout", "at: monotonicNow() + 20 * timeout", ...OUTAGES),
  one("limiter/resilience.ts", "deadline.why ?? ", "", "swap.test.ts"),
  one("stores/failure.ts", "error instanceof KeyError", "false", "swap.test.ts"),
  one("stores/failure.ts", "error instanceof NotAState", "false", ...OUTAGES),
  one("stores/keyed-queue.ts", "for (const id of ids) this.#last.set(id, entry);", "", ...KEYED_QUEUE),
  one("stores/keyed-queue.ts", "monotonicNow() > deadline.at - 1", "false", ...KEYED_QUEUE),
  one("stores/keyed-queue.ts", "deadline.at - 1", "deadline.at", ...KEYED_QUEUE),
  one("stores/sharded.ts", "call, now, undefined);", "call, now, deadline);", ...SHARDED),
  one("stores/sharded.ts", "        taken.clear();\n", "", ...SHARDED),
  one("stores/sharded.ts", "if (round > ROUNDS) return", "return", ...SHARDED),
  one("stores/sharded.ts", "reserved: after.value < 0", "reserved: true", ...SHARDED),
  one("stores/sharded.ts", "      await giveParts([...parts]).catch(() => {});\n", "", ...SHARDED),
  one("stores/sharded.ts", "if (failed !== undefined) throw failed.reason;", "", ...SHARDED),
  one("middleware/express.ts", '      checkContext("Express", response, response.setHeader);\n', "", ELSEWHERE),
  one("middleware/node.ts", '    checkContext("node:http", response, response.setHeader);\n', "", ELSEWHERE),
  one("middleware/node.ts", '      checkContext("Connect", response, response.setHeader);\n', "", ELSEWHERE),
  one("middleware/fastify.ts", '!("addHook" in instance)', "false", ELSEWHERE),
  one("middleware/fastify.ts", '!("addHook" in instance)', "true", FASTIFY),
  one("middleware/drop-in/hits.ts", "hitKey(key, String(period))", 'hitKey(key, "")', ...NAMES),
  one("middleware/drop-in/algebra.ts", ', start: "first request"', "", "middleware/drop-in-windows.test.ts"),
  one("middleware/drop-in/throttler.ts", "if (begun.ok)", "if (!begun.ok)", "middleware/drop-in-windows.test.ts"),
  one(
    "middleware/drop-in/throttler.ts",
    "      if (all.degraded === true) throw all.cause;\n",
    "",
    "middleware/drop-in.test.ts",
  ),
  one(
    "middleware/drop-in/throttler.ts",
    "wait = -blocking.value;",
    "wait = blocking.value;",
    "middleware/drop-in.test.ts",
  ),
  one(
    "middleware/drop-in/stretched.ts",
    "    if (all.degraded === true) throw all.cause;\n    const [hits, over, block] = all.decisions as [Decision, Decision, Decision];\n    if (all.ok)",
    "    const [hits, over, block] = all.decisions as [Decision, Decision, Decision];\n    if (all.ok)",
    "middleware/drop-in.test.ts",
  ),
  one("middleware/drop-in/stretched.ts", "Math.max(-hits.value, 0)", "0", "middleware/drop-in-windows.test.ts"),
  one("middleware/drop-in/stretched.ts", "max + MAX_COUNT - over.value", "max", "middleware/drop-in-windows.test.ts"),
  one("limiter/resilience.ts", "Math.min(least, limit", "Math.max(least, limit", "resilience.test.ts"),
  one("limiter/resilience.ts", "    if (isInputError(cause)) throw cause;\n", "", "resilience.test.ts"),
  one(
    "limit/config.ts",
    "local > 0 && local <= 1",
    "local >= 0 && local <= 1",
    "resilience.test.ts",
    "boundary.test.ts",
  ),
  one("limit/config.ts", "durationFrom(1, LONGEST_TIMER)", "durationFrom(0, LONGEST_TIMER)", "resilience.test.ts"),
  one("limit/config.ts", "capacity = rate,", "capacity = 1,", "boundary.test.ts", "laws.test.ts"),
  // Without the store.
  one("limiter/fallback.ts", "      value: 0,\n", "      value: policy.capacity,\n", "resilience.test.ts"),
  one("limiter/fallback.ts", "      remaining: 0,\n", "      remaining: policy.capacity,\n", "resilience.test.ts"),
  one("http/quota.ts", "degraded !== true && reason", "reason", "resilience.test.ts"),
  one("limit/config.ts", '(field === "start" && !Number.isFinite(value))', "false", "mistakes.test.ts"),
  one("limit/evaluator.ts", "policy.start === undefined ? at.start :", "true ? at.start :", "algebra.test.ts"),
  one(
    "client/source.ts",
    "{ start: startOf(key) }) > now",
    "{ start: startOf(key) }) > Infinity",
    "client/source.test.ts",
  ),
  one("limit/cached.ts", "made > MOST", "false", "cached.test.ts"),
  one("limit/cached.ts", ".to(read[field])", ".to(String(read[field]))", "cached.test.ts"),
  one("limit/cached.ts", "at.to(field).to", "at.to", "cached.test.ts"),
  one("limit/cached.ts", "root.to(name)", "root", "cached.test.ts"),
  one(
    "limiter/fallback.ts",
    "...(config as Config)",
    "...({ ...config, start: undefined } as Config)",
    "resilience.test.ts",
  ),
  one("limiter/resilience-sync.ts", "(flags & RESERVE) !== 0", "false", SYNC),
  one("limiter/resilience-sync.ts", "if (isInputError(error)) throw error;", "", SYNC),
  one("limiter/resilience-sync.ts", "now);\n        outages.succeeded(NODE);", "now);", SYNC),
  one(
    "limiter/fallback.ts",
    "[...new Set(targets.map(({ limit }) => this.#wayOf(limit)))]",
    "targets.map(({ limit }) => this.#wayOf(limit))",
    SYNC,
  ),
  one(
    "http/problem.ts",
    "decision.degraded === true && decision.retryAt === undefined",
    "decision.degraded === true",
    "resilience.test.ts",
  ),
  one("limiter/resilience.ts", "afterWaiting(timeout, late", "afterWaiting(20 * timeout, late", "resilience.test.ts"),
  one("limiter/resilience.ts", "        cancel();\n", "", "resilience.test.ts"),
  one(
    "limiter/resilience.ts",
    "    this.#timeout = settings.timeout;\n",
    "    this.#timeout = settings.timeout;\n    setInterval(() => undefined, 1000);\n",
    "resilience.test.ts",
  ),
  one(
    "middleware/count.ts",
    "Math.max(Number(text), min)",
    "Number(text)",
    "middleware/express.test.ts",
    "policies/policies.test.ts",
  ),
  // Middleware.
  one(
    "middleware/node-response.ts",
    "const isSent = response?.headersSent === true;",
    "const isSent = false;",
    "middleware/express.test.ts",
  ),
  one("middleware/express.ts", "trust === 0 ? undefined : request.ip", "trust === 0 ? undefined : undefined", EXPRESS),
  one("middleware/fastify.ts", "request.ips === undefined ? undefined : request.ip", "undefined", FASTIFY),
  one("middleware/client-key.ts", 'setting === undefined ? ""', 'setting !== undefined ? ""', EXPRESS),
  one("middleware/client-key.ts", 'setting === undefined ? ""', 'setting !== undefined ? ""', FASTIFY),
  one("middleware/hono.ts", "      context.res = undefined;\n", "", "middleware/hono.test.ts"),
  one(
    "middleware/hono.ts",
    'const response = withFields(admission, res, "handler");',
    "const response = res;",
    "middleware/hono.test.ts",
  ),
  one("middleware/nest-context.ts", ": undefined, info, type)", ": undefined, found, type)", NEST),
  one("middleware/nest-context.ts", "given?.extra?.request ?? given", "given", NEST),
  one("middleware/nest-context.ts", "? response : undefined, info", "? response : response, info", NEST),
  one("middleware/nest-context.ts", "exception: inGraphql };", "exception };", NEST),
  one("middleware/nest.ts", "isResolver ? ofResolvers.get(once) : ", "", NEST),
  one("middleware/nest-context.ts", "if (found === undefined) {", "if (false) {", NEST),
  one("middleware/nest-context.ts", "getClient<Client>(), context)", "getClient<Client>(), {})", NEST),
  one("middleware/nest-context.ts", 'if (type === "ws")', "if (false)", NEST),
  one("middleware/nest-context.ts", 'status === 400 ? "BAD_REQUEST" :', "", NEST),
  one("middleware/nest-context.ts", "trust !== false && trust !== 0", "trust !== false", NEST),
  one(
    "limiter/limiter.ts",
    "const key = checkKey(options);",
    "const { key } = options as { key: string };",
    "mistakes.test.ts",
  ),
  one("limiter/limiter.ts", "value: this[name].bind(this)", "value: this[name]", "mistakes.test.ts"),
  one("limiter/calls.ts", 'key === undefined && !("key" in options)', "key === undefined", "mistakes.test.ts"),
  one("limit/checks.ts", "InputError(shownName(field), ", "InputError(field, ", "thrown.test.ts"),
  one("limit/checks.ts", "if (tagOf(options) !== PLAIN) {", "if (Object(options) !== options) {", "boundary.test.ts"),
  one("limit/errors.ts", 'shortened(what).trim().replace(/\\s+/g, " ")', "shortened(what)", "thrown.test.ts"),
  one("limit/checks.ts", "accepts(inMs(value))", "accepts(value)", "duration.test.ts"),
];

/**
 * @typedef {object} Mutant
 * @property {string} file
 * @property {string} find
 * @property {string} replace
 * @property {string[]} tests files, each with the name of one of its tests after `::` where only that has to fail
 * @property {string} [promise] the promise of reference/promises.md whose own test detects it
 */

/** By the file that lists them. @type {Readonly<Record<string, readonly Mutant[]>>} */
export const GROUPS = {
  list: LIST,
  callers: CALLERS,
  client: CLIENT,
  http: HTTP,
  rust: RUST,
  stores: STORES,
  redis: REDIS,
  postgres: POSTGRES,
  promises: PROMISES,
};
export const MUTANTS = Object.values(GROUPS).flat();
