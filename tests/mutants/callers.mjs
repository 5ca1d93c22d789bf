// What calls a limiter, or watches one: the limiter's adaptive rates and budgets, clients, react, observe, the command line.
import { one } from "./mutant.mjs";

const [ADAPTIVE, BUDGET, OBSERVE] = ["adaptive.test.ts", "budget.test.ts", "observe.test.ts"];
const client = (...names) => names.map((name) => `client/${name}.test.ts`);
const [FETCH, FIELDS, THROTTLE] = [
  client("fetch", "fetch-server"),
  client("rate-limit-fields"),
  client("throttle", "laws"),
];
const [EXTREMES, RETRIES] = [client("fetch-extremes"), client("fetch-retries")];
const [OBJECTS, STANDSTILL] = [client("object-streams"), client("standstill")];
const [SEMAPHORE, SINGLE, STREAMS] = [client("semaphore"), client("single-flight"), client("streams")];
const [REMOTE, OBSERVER, CLOCK, PAGE] = ["remote", "view-observer", "clock-offset", "page"].map(
  (name) => `react/${name}.test.ts`,
);
const cli = (name) => `cli/${name}.test.ts`;

/** A mutant of the console, which its own tests find. */
const ofConsole = (file, find, replace, test = "keys") => ({
  file: `npm/tidegate-console/src/${file}`,
  find,
  replace,
  tests: [`npm/tidegate-console/test/${test}.test.ts`],
});

/** A mutant of log replay's package, without a line. */
const replaying = (file, find) => ({
  file: `npm/tidegate-replay/src/${file}`,
  find,
  replace: "",
  tests: ["npm/tidegate-replay/test/replay.test.ts"],
});

/** A mutant of the service, and a test of tests/serve that finds it. */
const served = (file, test) => (find, replace) => ({
  file: `npm/tidegate-serve/src/${file}.ts`,
  find,
  replace,
  tests: [`tests/serve/${test}`],
});
const still = served("clients", "stores.test.ts::a server that stands still does not keep the service from its end");
const tightest = served("grpc", "grpc.test.ts::the status of a descriptor is that of its tightest limit");
const longer = served("grpc", "grpc.test.ts::of two limits that both deny, or leave as much");
const numbers = served("grpc", "grpc.test.ts::numbers that the protocol does not have are left out");
const overHttp = served(
  "grpc",
  "grpc.test.ts::a descriptor with remote_address is limited as that client is over HTTP",
);
const unread = served("policies", "operate.test.ts::of a file that could not be read once");
const claims = served("grpc", "grpc.test.ts::the names of claims are as they are written");

/** A mutant that tests/simulation finds: a defect that was there once. */
const simulated = (file, find, replace) => ({
  file,
  find,
  replace,
  tests: ["tests/simulation/faults.test.ts"],
});

export const CALLERS = [
  // Rates that adapt, and budgets.
  one("limiter/adaptive.ts", "Math.max(floor, this.#rate * decrease)", "this.#rate * decrease", ADAPTIVE),
  one("limiter/adaptive.ts", "Math.min(ceiling, this.#rate + increase)", "this.#rate + increase", ADAPTIVE),
  one(
    "limiter/adaptive.ts",
    "      this.#rate = Math.max(floor, this.#rate * decrease);\n      this.#sent.clear();",
    "      this.#rate = Math.max(floor, this.#rate * decrease);",
    ADAPTIVE,
  ),
  one("limiter/adaptive.ts", "this.#tokens >= (this.#rate * lasted) / period / 2", "true", ADAPTIVE),
  one("limiter/adaptive.ts", "this.#bad > tolerance * this.#ended", "this.#bad >= tolerance * this.#ended", ADAPTIVE),
  one("limiter/adaptive.ts", "Math.max((rate * burst) / period, 1)", "(rate * burst) / period", ADAPTIVE),
  one("limiter/adaptive.ts", "if (lasted < 0) this.#sent.clear();\n    else ", "", ADAPTIVE),
  one("limiter/adaptive.ts", "if (lasted < 0) this.#sent.clear();", "if (lasted < 0);", ADAPTIVE),
  one("limiter/adaptive.ts", "this.#ended > 0 && ", "", ADAPTIVE),
  one("limiter/adaptive.ts", "now - request.at <= this.#set.latency", "false", ADAPTIVE),
  one("limiter/adaptive.ts", "      this.#sent.delete(request);\n", "", ADAPTIVE),
  one("limiter/budget.ts", "reserve: wait > 0", "reserve: true", BUDGET),
  one("limiter/budget.ts", "await settle(actual ?? 0).catch", "await settle(actual ?? estimate).catch", BUDGET),
  one("limiter/budget.ts", "await settle(actual ?? estimate);", "await settle(actual ?? 0);", BUDGET),
  one("limiter/budget.ts", ".catch(() => {});\n    throw", ";\n    throw", BUDGET),
  one("limiter/budget.ts", "    await settle(0);\n", "", BUDGET),
  one("limiter/budget.ts", "    throwIfAborted(signal);\n    value", "    value", BUDGET),
  one("limiter/budget.ts", "    if (signal?.aborted === true) return resolve();\n", "", BUDGET),
  one("limiter/budget.ts", "  throwIfAborted(signal);\n  const taken", "  const taken", BUDGET),
  one("limiter/budget.ts", "reserve: wait > 0", "reserve: true", BUDGET),
  // A `fetch` that waits.
  one("client/fetch.ts", "const retries = mayRepeat ? maxRetries : 0;", "const retries = maxRetries;", FETCH),
  one("client/fetch.ts", "if (at - now > maxWait) return", "if (false) return", FETCH),
  one("client/fetch.ts", "      restraint.denied(at);\n", "", FETCH),
  one("client/fetch.ts", "    if (queue.isIdle) restraint.rest();\n", "", RETRIES),
  one("client/fetch.ts", "      void discard(response);\n", "", FETCH),
  one("client/fetch.ts", '=== "false") return false;', '=== "never") return false;', FETCH),
  one("client/fetch.ts", "FIRST_WAIT * 2 ** attempt", "FIRST_WAIT", FETCH),
  one("client/fetch.ts", "const wait = required ||", "const wait = required ??", RETRIES),
  one("client/fetch.ts", "=== 0 ? response : response.clone()", "=== 0 ? response : response", FETCH),
  one(
    "client/fetch.ts",
    "--flight.callers === 0 ? response : response.clone()",
    "response.clone()",
    client("fetch-share"),
  ),
  one("client/fetch.ts", "Math.max(...resets)", "Math.min(...resets)", FETCH),
  one("client/fetch.ts", "Math.min(MAX_JITTER_MS, Math.max(0, longest - wait))", "MAX_JITTER_MS", EXTREMES),
  one("client/fetch.ts", 'check("idempotent", idempotent(url, init), FLAG)', "idempotent(url, init)", EXTREMES),
  one("client/fetch.ts", 'if (signal !== undefined) check("signal", signal, SIGNAL);', "", EXTREMES),
  one("client/restraint.ts", "Math.min(left, MAX_COUNT)", "left", EXTREMES),
  one("client/restraint.ts", "Math.min(Math.ceil(resetAfter), MAX_COUNT)", "Math.ceil(resetAfter)", EXTREMES),
  one("client/rate-limit-fields.ts", "NUMBER = /^\\d{1,15}(?:", "NUMBER = /^\\d+(?:", EXTREMES),
  one("client/restraint.ts", "Math.max(0, remaining - (this.#flying - 1))", "remaining", FETCH),
  one("client/restraint.ts", "    this.#places = Math.min(this.#places, this.#flying);\n", "", RETRIES),
  one("client/restraint.ts", "Math.min(this.#places, this.#flying)", "1", RETRIES),
  one("client/restraint.ts", "    this.#places += 1 / this.#places;\n", "", RETRIES),
  one("client/waiting.ts", "(before?.retryOf as number) > (call.retryOf as number)", "false", RETRIES),
  one("client/restraint.ts", "if (sent < this.#learned) return;", "", FETCH),
  one("client/restraint.ts", "this.#most.size >= MOST_LIMITS && !this.#most.has(name)", "false", FETCH),
  one("client/rate-limit-fields.ts", '(numberIn(fields.get("Age")) ?? 0) > 0', "false", FIELDS),
  one("client/rate-limit-fields.ts", "number < EPOCH_MS ? number * 1000 : number", "number * 1000", FIELDS),
  one("client/rate-limit-fields.ts", 'dateOf(fields.get("Date")) ?? now', "now", FIELDS),
  one("client/rate-limit-fields.ts", "  d: 86_400_000,", "  d: 8_640_000,", FIELDS),
  one("client/rate-limit-fields.ts", "  us: 1e-3,", "  us: 1,", FIELDS),
  one("client/rate-limit-fields.ts", "  µs: 1e-3,", "  µs: 1,", FIELDS),
  one("client/rate-limit-fields.ts", "if (isReset && DURATION", "if (DURATION", FIELDS),
  one("client/rate-limit-fields.ts", "const [reset] = partsOf(", "const [reset] = Array.of(", FIELDS),
  one("client/rate-limit-fields.ts", "policies.size === 1 ?", "false ?", FIELDS),
  // Queues.
  one("client/waiting.ts", "(found === undefined || first.rank < found.rank)", "found === undefined", THROTTLE),
  one("client/clock.ts", "let last = -Infinity;", "let last = 0;", client("set-clock")),
  one(
    "client/clock.ts",
    "wall < last || behind + ahead > SECOND ? Math.max(ahead, behind) : 0",
    "0",
    client("set-clock"),
  ),
  one(
    "client/reserve.ts",
    "(offset - known) * DRIFT, sent - decision.now)",
    "(offset - known) * DRIFT, 0)",
    client("set-clock"),
  ),
  one(
    "client/reserve.ts",
    "(value.config.capacity ?? value.config.rate) - value.value - this.#owed",
    "Infinity",
    THROTTLE,
  ),
  one("client/reserve.ts", "      .catch(() => undefined)\n", "", THROTTLE),
  one("client/slots.ts", '|| policy.kind === "fixed window"', "", STANDSTILL),
  one("client/reserve.ts", "if (this.#state !== null) this.#state = {", "if (false) this.#state = {", STANDSTILL),
  one("client/reserve.ts", "    this.#slots.cut(this.#spare + count, sent - (this.#offset ?? 0));\n", "", STANDSTILL),
  one("client/reserve.ts", "if (whole || isSplit) ", "", client("shared-limit")),
  one("client/reserve.ts", "--this.#requests === 0 ? 0 : this.#requested", "this.#requested", THROTTLE),
  one("client/slots.ts", "close(found, spare) ? spare : ", "", client("cost")),
  one("client/slots.ts", "      if (close(last.left - count, last.left)) break;\n", "", client("cost")),
  one(
    "client/queue.ts",
    "      this.#queues.delete(key);\n",
    "      if (queue.isIdle) this.#queues.delete(key);\n",
    client("cost"),
  ),
  one("client/queue.ts", "if (this.#isLate(first, at)) return true;", "", client("max-wait")),
  one("client/queue.ts", "if (this.#isLate(first, now + 1)) return true;", "", client("max-wait")),
  one("client/queue.ts", "if (waited || at > now) ", "", client("max-wait")),
  one("client/queue.ts", "if (waited || at > now)", "if (at > now)", client("max-wait")),
  one("client/queue.ts", ".end(this.#waiting.tokensBehind(call))", ".end(0)", client("max-wait")),
  one("client/slots.ts", "if (sum <= count || close(sum, count)) return at;", "return at;", client("max-wait")),
  one("client/fetch-request.ts", "document?.baseURI ?? ", "", RETRIES),
  one("client/semaphore.ts", "        this.#waiting.delete(attempt);\n", "", SEMAPHORE),
  one("client/semaphore.ts", "      if (held) this.release();", "      this.release();", SEMAPHORE),
  one("client/single-flight.ts", "      ofOwner.delete(key);\n", "", SINGLE),
  one("client/streams.ts", "abort: (reason) => writer.abort(reason),", "", STREAMS),
  one("client/streams.ts", "at += size)", "at += bytes.byteLength)", STREAMS),
  one("client/streams.ts", " && (await exceedsReserve(piece.byteLength))", "", STREAMS),
  one("client/streams.ts", "    cancel: close,\n", "", OBJECTS),
  one("client/streams.ts", "await take(count);", "await take(1);", OBJECTS),
  one("client/streams.ts", "Math.max(1, (rate ?? 0) / 10)", "(rate ?? 0) / 10", OBJECTS),
  // Pages.
  one("react/remote.ts", "behind <= 0 || behind > OVERTAKEN_MS", "true", REMOTE),
  one("react/remote.ts", 'learned.reason === "exceeds capacity"', "false", REMOTE),
  one("react/remote.ts", "if (!entry.watchers.delete(changed)) return;", "entry.watchers.delete(changed);", REMOTE),
  one("react/remote.ts", "if (--this.#watchers === 0) this", "if (false) this", REMOTE),
  one("react/remote.ts", "if (entry.watchers.size === 0) continue;", "", PAGE),
  one("react/remote.ts", "[...entry.watchers]", "entry.watchers", PAGE),
  one("react/remote.ts", "    this.#clock.jumped();\n    if (document", "    if (document", PAGE),
  one("react/remote.ts", "    this.#clock.heard(learned.now);\n", "", PAGE),
  one("react/view-observer.ts", "    clearTimeout(this.#timer);\n    this.#known", "    this.#known", PAGE),
  one("react/view-observer.ts", "Math.min(next - now, LONGEST_TIMER)", "next - now", PAGE),
  one("react/clock-offset.ts", "    this.#measuredAt = performance.now();\n", "", CLOCK),
  one("react/view-observer.ts", "initial.now > (from", "initial.now >= (from", PAGE),
  one("react/view.ts", ' || fields.has("retryAt")', "", PAGE),
  one("react/remote.ts", "entry.again || (left > 0", "(left > 0", REMOTE),
  one("react/view-observer.ts", "Object.assign(view, { [field]: this.#look()[field] });", "", REMOTE),
  one("react/clock-offset.ts", "if (roundTrip / 2 > this.error()) return;", "", CLOCK),
  one("react/clock-offset.ts", "    this.#error = Infinity;\n", "", CLOCK),
  one("react/clock-offset.ts", "    this.#exchanges++;\n", "", REMOTE),
  one("react/clock-offset.ts", "    this.#exchanges = 0;\n", "", REMOTE),
  one("react/view-observer.ts", "      this.#changed = undefined;\n", "", OBSERVER),
  one("react/clock-offset.ts", "Math.ceil(at - (this.#offset ?? 0))", "Math.floor(at - (this.#offset ?? 0))", CLOCK),
  // Log replay.
  replaying("index.ts", "    spool.close();\n"),
  replaying("index.ts", "    for (const log of logs) await log.close();\n"),
  replaying("log.ts", "    await file?.close();\n"),
  // Logs and commands.
  one("observe/observer.ts", "const given = [...keys];", "const given = keys.map(() => keys[0] as string);", OBSERVE),
  one("cli/commands/check.ts", "findings.every(({ ok }) => ok) ? EXIT.fine : EXIT.found", "EXIT.fine", cli("check")),
  one("cli/commands/headers.ts", 'value === undefined && text(args, "ts") !== undefined', "false", cli("headers")),
  one("cli/commands/headers.ts", "if (name !== undefined) throw", "if (false) throw", cli("headers")),
  one("cli/commands/headers.ts", 'if (text(args, "rule") !== undefined) throw', "if (false) throw", cli("headers")),
  one("cli/described-limit.ts", "config: tier.limit.config", "config: rule.limit.config", cli("check")),
  one("cli/commands/migrate.ts", 'if (storeKind(url, ["postgres"]) !== "postgres") {', "if (false) {", cli("migrate")),
  one("cli/commands/operate.ts", "  await command.run?.(trial, name, target, own);\n", "", cli("operate")),
  one("cli/commands/operate.ts", 'kind === "file" && !terminal', 'kind === "file" && terminal', cli("operate")),
  one("cli/key-state.ts", "value < 0 ?", "value <= 0 ?", cli("operate")),
  one("cli/key-state.ts", "/[\\p{C}\\p{Zl}\\p{Zp}]/gu", "/[\\p{Zl}\\p{Zp}]/gu", cli("operate")),
  one("cli/messages.ts", "depth < 5", "depth < 500", cli("main")),
  one("cli/store.ts", 'url.startsWith("file://") ? new URL(url) :', "", cli("store")),
  one("cli/store.ts", "URL.canParse(url)", "true", cli("operate")),
  one("cli/main.ts", "    if (isStoreError(error)) {", "    if (false) {", cli("operate")),
  one("policies/target.ts", "return addressKey(text) ?? text;", "return text;", ["policies/target.test.ts"]),
  ofConsole("stream.ts", "    for (const stream of this.#open) stream.end();\n", "", "stream"),
  ofConsole("index.ts", 'if (method === "HEAD") return events(null);', "", "console"),
  ofConsole("access.ts", '  "cross-origin-opener-policy": "same-origin",\n', "", "console"),
  ofConsole("access.ts", '  "cross-origin-resource-policy": "same-origin",\n', "", "console"),
  ofConsole("access.ts", '  "referrer-policy": "no-referrer",\n', "", "console"),
  ofConsole("access.ts", '  "x-content-type-options": "nosniff",\n', "", "console"),
  ofConsole("access.ts", 'respond(status, "application/json", JSON', "new Response(JSON", "console"),
  ofConsole("index.ts", '{ "x-accel-buffering": "no" }', "{}", "console"),
  ofConsole("index.ts", "if (sameOrigin === false)", "if (sameOrigin !== true)", "stream"),
  ofConsole("operations.ts", " && key !== undefined", "", "console"),
  ofConsole("stream.ts", "last <= counts.denied", "last < counts.denied", "stream"),
  ofConsole("stream.ts", "if (now - stream.openedAt >= LIFETIME)", "", "stream"),
  ofConsole("counts.ts", 'this.#textOf(name ?? "", key)', 'this.#textOf("", key)', "counts"),
  ofConsole("counts.ts", "    this.#since ||= at;\n", "", "counts"),
  ofConsole("top.ts", "least - most || ", "", "top"),
  ofConsole("top.ts", ".values()).sort()", ".values())", "top"),
  ofConsole("operations.ts", "current.degraded === true || ", "", "console"),
  ofConsole("operations.ts", " || next.degraded === true", "", "console"),
  ofConsole("operations.ts", "  if (degraded === true) throw cause;\n", "", "console"),
  ofConsole("operations.ts", "resetAt: current.resetAt", "resetAt: next.resetAt", "console"),
  ofConsole("operations.ts", '    console.error("tidegate-console: an operation failed", error);\n', "", "console"),
  ofConsole("counts.ts", "this.#policy = policy;", "this.#policy ??= policy;", "counts"),
  ofConsole("counts.ts", "of(this.#degraded, to - SPAN + 1)", "of(this.#degraded, from)", "counts"),
  ofConsole("counts.ts", "[this.#granted, this.#denied, this.#degraded])", "[this.#granted, this.#denied])", "counts"),
  ofConsole("counts.ts", "Math.min(after, to)", "after", "counts"),
  ofConsole("counts.ts", "capacity === rate ?", "capacity <= rate ?", "counts"),
  ofConsole("counts.ts", "null : this.#textOf(name, key);", "null : key;"),
  ofConsole("counts.ts", "    return this.#keys.names;", "    return [...this.#byName.keys()];"),
  one("policies/key-text.ts", "&& arrayIn(only) === undefined", "", ["policies/keys.test.ts"]),
  one("policies/key-text.ts", "policies.tiersOf(name).length === 0", "true", ["policies/keys.test.ts"]),
  one("policies/target.ts", "values.length !== limitKeys.length", "false", ["policies/target.test.ts"]),
  one("cli/main.ts", "if (!(error instanceof UsageError) && !isInputError(error)) throw error;", "", cli("main")),
  {
    file: "npm/tidegate/src/limiter/limiter.ts",
    find: " && checked.length > 0",
    replace: "",
    tests: ["tests/threads/shared.test.ts::limitMany of no keys reads no clock"],
  },
  // The service.
  still("async () => client.disconnect()", "async () => void (await client.quit())"),
  still("for (const socket of sockets) socket.destroy();", ""),
  tightest("if (a.ok !== b.ok) return b.ok;", ""),
  tightest(": a.remaining < b.remaining", ": false"),
  longer("a.resetAt > b.resetAt", "false"),
  longer("(a.retryAt ?? Infinity) > (b.retryAt ?? Infinity)", "false"),
  numbers(" || !Number.isInteger(policy.rate)", ""),
  numbers(" || policy.rate > MOST", ""),
  numbers("Math.min(remaining, MOST)", "remaining"),
  overHttp("retryAfter ?? resetAt - now", "resetAt - now"),
  overHttp("(ms % 1000) * 1e6", "(ms % 1000) * 1e3"),
  served("grpc", "grpc.test.ts::a rule in shadow mode denies nothing")("shadow === undefined)", "true)"),
  served("connections", "grpc.test.ts::ends with the service")("  clearTimeout(timer);\n", ""),
  served("grpc", "grpc.test.ts::hits_addend is the cost")("hits <= MOST_HITS", "hits < MOST_HITS"),
  claims('source === "header" ? name.toLowerCase() : name', "name.toLowerCase()"),
  claims('key.startsWith("header:") ? key.toLowerCase() : key', "key.toLowerCase()"),
  unread("this.#unread === unread && ", "false && "),
  served("app", "api.test.ts::a body of another type is refused")("\\s*(;|$)/i", "/i"),
  served("app", "api.test.ts::a body that is too large")("Number(length) <= maxSize", "Number(length) < maxSize"),
  served("app", "lifecycle.test.ts::answers a request that an idle connection sends")(
    "if (!service.accepting())",
    "if (false)",
  ),
  served("forward-auth", "lifecycle.test.ts::no request is logged")('path.replace(/\\?.*/s, "")', "path"),
  served("forward-auth", "stores.test.ts::a proxy is answered 503")("status === 503 ? 503 : 403", "403"),
  // Defects that were there once, found by the simulation: a failing key opens the breaker for healthy ones, calls whose
  // deadline has passed are sent, a clock that swings mints tokens.
  simulated("npm/tidegate/src/limiter/outages.ts", 'isStoreError(error) && error.scope === "key"', "false"),
  simulated("npm/tidegate/src/stores/postgres/request.ts", "if (pending.deadline > now) return true;", "return true;"),
  simulated(
    "crates/table/src/segment.rs",
    "        self.fresh_from = Bucket::fresh_from(self.fresh_from, at, now);\n",
    "        let _ = (at, now);\n",
  ),
];
