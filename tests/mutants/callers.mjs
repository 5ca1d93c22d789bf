// What calls a limiter, or watches one: the limiter's adaptive rates and budgets, react, observe, the command line.
import { one } from "./mutant.mjs";

const [ADAPTIVE, OBSERVE] = ["adaptive.test.ts", "observe.test.ts"];
const BUDGET = ["budget.test.ts", "budget-wait.test.ts"];
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
const half = served("clients", "stores.test.ts::a connection that no longer carries anything is replaced");
const former = served("clients", "stores.test.ts::after a failover behind one address");
const administered = served("routes", "stores.test.ts::an administrator's changes are errors while the server fails");
const waiting = served("server", "lifecycle.test.ts::answers the requests of connections that it has not accepted yet");
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
  one("limiter/adaptive.ts", "() => Date.now()", "Date.now", ADAPTIVE),
  one(
    "limiter/adaptive.ts",
    "      this.#rate = Math.max(floor, this.#rate * decrease);\n      this.#newEra();",
    "      this.#rate = Math.max(floor, this.#rate * decrease);",
    ADAPTIVE,
  ),
  one("limiter/adaptive.ts", "this.#tokens >= (this.#rate * lasted) / period / 2", "true", ADAPTIVE),
  one("limiter/adaptive.ts", "this.#bad / this.#ended > tolerance", "this.#bad / this.#ended >= tolerance", ADAPTIVE),
  one("limiter/adaptive.ts", "Math.max((rate * burst) / period, 1)", "(rate * burst) / period", ADAPTIVE),
  one("limiter/adaptive.ts", "if (lasted < 0) this.#newEra();\n    else ", "", ADAPTIVE),
  one("limiter/adaptive.ts", "if (lasted < 0) this.#newEra();", "if (lasted < 0);", ADAPTIVE),
  one("limiter/adaptive.ts", "this.#ended > 0 && ", "", ADAPTIVE),
  one("limiter/adaptive.ts", "now - request.at <= this.#set.latency", "false", ADAPTIVE),
  one("limiter/adaptive.ts", "    this.#sent.delete(request);\n", "", ADAPTIVE),
  one("limiter/adaptive.ts", "    request.era = -1;\n", "", ADAPTIVE),
  one("limiter/adaptive.ts", "if (this.#set.latency < Infinity) this.", "this.", ADAPTIVE),
  one("limiter/budget.ts", "limits.indexOf(name) < index", "false", BUDGET),
  one("limiter/budget.ts", "reserve: wait > 0", "reserve: true", BUDGET),
  one("limiter/budget.ts", "ok ? value + count : value", "value + count", BUDGET),
  one("limiter/budget.ts", "before > config.capacity * (1 - 1e-9)", "false", BUDGET),
  one("limiter/budget.ts", "ok && retryAfter <= estimate.wait;", "ok;", BUDGET),
  one("limiter/budget.ts", "at !== undefined && turns.some((turn) => turn !== at)", "false", BUDGET),
  one("limiter/budget.ts", "isInTime(one) && !never", "isInTime(one)", BUDGET),
  one("limiter/budget.ts", "(never ? turns : first)[index]", "first[index]", BUDGET),
  one("limiter/budget.ts", "one : denied", "denied(one, estimate, now) : denied", BUDGET),
  one("limiter/budget.ts", "!ok && degraded === true", "false", BUDGET),
  one("limiter/budget.ts", ' && config.start !== "first request"', "", BUDGET),
  one("limiter/budget.ts", "if (ok && retryAt - turn <= wait)", "if (ok)", BUDGET),
  one("limiter/budget.ts", "    if (reason !== undefined) return reason;\n", "", BUDGET),
  one("limiter/budget.ts", "Math.ceil(retryAt - wait)", "retryAt", BUDGET),
  one("limiter/budget.ts", "{ now, count: 0 }", "{ now }", BUDGET),
  one("limiter/budget.ts", "await settle(actual ?? 0).catch", "await settle(actual ?? estimate).catch", BUDGET),
  one("limiter/budget.ts", "await settle(actual ?? estimate);", "await settle(actual ?? 0);", BUDGET),
  one("limiter/budget.ts", ".catch(() => {});\n    throw", ";\n    throw", BUDGET),
  one("limiter/budget.ts", "if (decided.ok) await settle(0);", "", BUDGET),
  one("limiter/budget.ts", "    throwIfAborted(signal);\n    value", "    value", BUDGET),
  one("limiter/budget.ts", "    if (signal?.aborted === true) return resolve();\n", "", BUDGET),
  one("limiter/budget.ts", "  throwIfAborted(signal);\n  const taken", "  const taken", BUDGET),
  // Where the addon is looked for.
  one("engine/addon.ts", "programFile];", 'programFile, () => process.cwd() + "/"];', "addon.test.ts"),
  // Pages.
  one("react/remote.ts", "behind <= 0 || behind > OVERTAKEN_MS", "true", REMOTE),
  one("react/remote.ts", 'learned.reason === "exceeds capacity"', "false", REMOTE),
  one("react/remote.ts", "learned.degraded === true", "false", REMOTE),
  one("react/remote.ts", "if (!entry.watchers.delete(changed)) return;", "entry.watchers.delete(changed);", REMOTE),
  one("react/remote.ts", "if (--this.#watchers === 0)", "if (false)", REMOTE),
  one("react/remote.ts", "queueMicrotask(() => {\n          throw error;\n        });", "", REMOTE),
  one("react/remote.ts", "if (entry.watchers.size === 0) continue;", "", PAGE),
  one("react/remote.ts", "[...this.#entry(name).watchers]", "this.#entry(name).watchers", PAGE),
  one("react/remote.ts", "    this.#clock.jumped();\n    if (document", "    if (document", PAGE),
  one("react/remote.ts", "    this.#clock.heard(learned.now);\n", "", PAGE),
  one(
    "react/remote.ts",
    "    clearTimeout(this.#timer);\n    this.#timerAt = timerAt",
    "    this.#timerAt = timerAt",
    PAGE,
  ),
  one("react/remote.ts", "delayFor(delay)", "delay", PAGE),
  one("react/remote.ts", "timerAt >= this.#timerAt", "false", PAGE),
  one("react/remote.ts", "    if (!entry.watchers.has(changed)) return;\n", "", PAGE),
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
  replaying("index.ts", "    await Promise.allSettled(logs.map((log) => log.close()));\n"),
  replaying("log.ts", "    await file?.close();\n"),
  // Logs and commands.
  {
    ...one("cli/commands/operate.ts", "&& HASHED.test(given)", "&& false"),
    tests: ["tests/serve/keys.test.ts::file: the commands operate"],
  },
  one("policies/check.ts", "length > 1000 ?", "length > 1001 ?", cli("check"), "policies/check.test.ts"),
  one("observe/observer.ts", "const given = [...keys];", "const given = keys.map(() => keys[0] as string);", OBSERVE),
  one("observe/metrics.ts", "MOST_NAMES = 1000", "MOST_NAMES = 100", OBSERVE),
  one("observe/metrics.ts", "if (names.size < MOST_NAMES) names", "names", OBSERVE),
  one("cli/commands/check.ts", "findings.every(({ ok }) => ok) ? EXIT.fine : EXIT.found", "EXIT.fine", cli("check")),
  one("cli/commands/check.ts", "out(printable(", "out((", cli("check")),
  one("cli/main.ts", "\n    terminal.err(printable(", "\n    terminal.err((", cli("check")),
  one(
    "cli/output.ts",
    "printable(JSON.stringify(value, undefined, 2))",
    "JSON.stringify(value, undefined, 2)",
    cli("check"),
  ),
  served("log", "output.test.ts::a line of the log has no character")("printable(JSON", "(JSON"),
  served("grpc", "grpc.test.ts::one connection has at most 1,000 calls")("MOST_CALLS = 1000", "MOST_CALLS = 2 ** 31"),
  one("cli/commands/headers.ts", 'value === undefined && text(args, "ts") !== undefined', "false", cli("headers")),
  one("cli/commands/headers.ts", "if (name !== undefined) throw", "if (false) throw", cli("headers")),
  one("cli/commands/headers.ts", 'if (text(args, "rule") !== undefined) throw', "if (false) throw", cli("headers")),
  one("cli/described-limit.ts", "config: chosen.limit.config", "config: rule.limit.config", cli("check")),
  one("cli/commands/migrate.ts", 'if (storeKind(url, ["postgres"]) !== "postgres") {', "if (false) {", cli("migrate")),
  one("cli/commands/operate.ts", "  await command.run?.(trial, name, target, own);\n", "", cli("operate")),
  one("cli/commands/operate.ts", 'kind === "file" && !terminal', 'kind === "file" && terminal', cli("operate")),
  one("cli/key-state.ts", "value < 0 ?", "value <= 0 ?", cli("operate")),
  one("cli/output.ts", "[\\p{Cc}\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]", "[\\p{Cf}\\p{Cs}\\p{Zl}\\p{Zp}]", cli("operate")),
  one("cli/output.ts", "depth < 5", "depth < 500", cli("main")),
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
  ofConsole("operations.ts", 'if (operation !== "reset") stored(checked);', "", "console"),
  ofConsole("operations.ts", 'if (operation !== "reset") stored(checked);', "stored(checked);", "console"),
  ofConsole("operations.ts", '    console.error("tidegate-console: an operation failed", error);\n', "", "console"),
  ofConsole("counts.ts", "latest = policy;", "latest ??= policy;", "counts"),
  ofConsole("counts.ts", "since(to - SPAN + 1, degraded)", "since(from, degraded)", "counts"),
  ofConsole("counts.ts", "[granted, denied, degraded])", "[granted, denied])", "counts"),
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
  waiting("        await held;\n", ""),
  waiting("held === undefined ?", "held === undefined || true ?"),
  administered('  config: { ...config, onStoreError: "deny" },\n', "  config,\n"),
  half("      socketTimeout: Math.max(SILENT, timeout),\n", ""),
  former('message.includes("READONLY")', "message.length === 0"),
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
