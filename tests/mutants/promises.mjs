// For each promise of reference/promises.md, by its words there, a mutant that its test detects.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");
const PAGE = "npm/site/reference/promises.md";

/** The rows of the page: each promise's words, with its test's name and file. */
export function promisesIn(page) {
  const rows = page.matchAll(/^\| ([^|]+) \| `([^`]+)` in \[[^\]]+\]\(([^)]+)\) \|$/gm);
  return [...rows].map(([, promise, name, link]) => ({ promise, name, file: join(dirname(PAGE), link) }));
}

const tests = new Map(
  promisesIn(readFileSync(join(root, PAGE), "utf8")).map(({ promise, name, file }) => [promise, `${file}::${name}`]),
);

/** A mutant that the promise's own test detects. */
function kept(promise, file, find, replace) {
  const test = tests.get(promise);
  return { promise, file, find, replace, tests: test === undefined ? [] : [test] };
}
const core = (promise, file, ...change) => kept(promise, `crates/core/src/${file}`, ...change);
const source = (promise, file, ...change) => kept(promise, `npm/tidegate/src/${file}`, ...change);

export const PROMISES = [
  // The algebra.
  core(
    "granted at `retryAt`, denied one millisecond before",
    "token_bucket.rs",
    "value_at(bucket, state, t) - count >= floor",
    "value_at(bucket, state, t - 1.0) - count >= floor",
  ),
  core(
    "no span of time holds more grants than the policy allows",
    "take.rs",
    "let value = refilled.value - count;\n",
    "let value = refilled.value - count * 0.999;\n",
  ),
  core(
    "a denial writes nothing",
    "take.rs",
    "        Outcome { decision, write: None }\n",
    "        Outcome { decision, write: Some(refilled) }\n",
  ),
  kept("all or nothing", "crates/table/src/call.rs", "        changes.clear();\n", ""),
  core(
    "removing a full state changes no answer",
    "take.rs",
    "kept.and_then(|kept| self.least_time(kept, now, 0.0, self.capacity))",
    "kept.and_then(|kept| self.least_time(kept, now, 0.0, self.capacity * 0.9))",
  ),
  core("a clock that steps back creates no tokens", "token_bucket.rs", "ts: state.ts };", "ts: now };"),
  core("a broken clock's state heals", "bucket.rs", "state.ts - now > MAX_SKEW_MS", "false"),
  core(
    "the drift after ten million grants",
    "token_bucket.rs",
    "((t - state.ts) * bucket.rate) / bucket.period,",
    "((t - state.ts) * bucket.rate) / bucket.period * 1.000_000_01,",
  ),
  // Stores.
  source(
    "Redis decides as the core does, bit for bit",
    "stores/redis/tidegate.lua",
    "if windows > 0 then v, t = v + rate * windows,",
    "if windows > 0 then v, t = v + rate,",
  ),
  source(
    "one script call for concurrent calls",
    "stores/redis/pipeline.ts",
    "open.size < MOST_REQUESTS) return open;",
    "open.size < 2) return open;",
  ),
  source("no round trip for a cached denial", "stores/redis/denials.ts", "    this.#kept.set(key, denial);\n", ""),
  source(
    "PostgreSQL decides as the core does, bit for bit",
    "stores/postgres/schema/algebra.sql",
    "ELSE LEAST(capacity, value + tidegate.returned(now - ts, rate, period))",
    "ELSE LEAST(capacity, value + tidegate.returned(now - ts, rate, period) * 1.000000001::float8)",
  ),
  source(
    "on Memcached, processes on one key grant exactly its tokens",
    "stores/memcached/client.ts",
    "(await call((done) => client.cas(key, value, version, exptime, done))) === true,",
    "(await call((done) => client.set(key, value, exptime, done))) === true,",
  ),
  source(
    "leases grant only tokens that were taken from the store",
    "limiter/lease/lease.ts",
    "this.#balance += lent;",
    "this.#balance += 2 * lent;",
  ),
  source(
    "with leases at most one decision in a hundred reaches the store, and no token is granted twice",
    "limiter/lease/lease.ts",
    "this.#balance += lent;",
    "this.#balance += 2 * lent;",
  ),
  source(
    "with leases, a denial comes from the store and counts leased tokens",
    "limiter/lease/lease.ts",
    "    this.#balance = left;\n",
    "",
  ),
  source(
    "a flood of keys that are full before a debtor does not evict it; memory holds at most `maxKeys`",
    "stores/memory.ts",
    "this.#maxKeys = maxKeys;",
    "this.#maxKeys = 1_000_000;",
  ),
  kept(
    "a process killed at any moment loses nothing and leaves no lock",
    "crates/file/src/store.rs",
    "            writing.txn.commit()?;\n",
    "",
  ),
  kept(
    "after a power cut a folder is its last snapshot",
    "crates/file/src/snapshot.rs",
    "data.exists() && !doubtful(folder)",
    "data.exists()",
  ),
  kept(
    "a damaged file is an error, and cannot crash the process",
    "crates/file/src/open.rs",
    "    verify(&bytes).map_err(corrupt)?;\n",
    "",
  ),
  source(
    "a failing or slow store delays no call beyond its deadline",
    "limiter/resilience.ts",
    "afterWaiting(timeout, late",
    "afterWaiting(20 * timeout, late",
  ),
  source(
    "a store that recovers is used again, without a restart",
    "limiter/outages.ts",
    "if (now < node.probeAt) return undefined;",
    "return undefined;",
  ),
  source(
    "no timers: a process that used a limiter ends by itself",
    "limiter/resilience.ts",
    "    this.#timeout = settings.timeout;\n",
    "    this.#timeout = settings.timeout;\n    setInterval(() => undefined, 1000);\n",
  ),
  // The package.
  kept(
    "no dependencies, no install script",
    "npm/scripts/packages.mjs",
    'if (name !== "tidegate") return manifest;',
    'if (name !== "tidegate") return manifest;\n  manifest.scripts = { postinstall: "node dist/cli/bin.js" };',
  ),
  source(
    "without the addon `shared()` is memory, and warns once with the reasons",
    "engine/addon.ts",
    '.join("; caused by: ")',
    ".slice(1)",
  ),
  kept(
    "code linked into a package has an allowed licence, whose text is included",
    "npm/scripts/linked.mjs",
    'name: "LMDB", licence: "OLDAP-2.8"',
    'name: "LMDB", licence: "GPL-3.0-only"',
  ),
  // HTTP.
  source(
    "`Retry-After` is never early, and fields parse",
    "http/quota.ts",
    "integer(Math.ceil(ms / 1000))",
    "integer(Math.round(ms / 1000))",
  ),
  source("a client cannot choose its key", "http/client-ip.ts", "if (hop++ >= hops ||", "if ("),
  source(
    "IPv6 is grouped, IPv4 never",
    "http/address.ts",
    "const { prefix = 56 } = options;",
    "const { prefix = 128 } = options;",
  ),
  source("different tuples have different keys", "http/key.ts", "part.length}:", "part.length % 10}:"),
  source(
    "a cost that a client states never creates tokens",
    "middleware/count.ts",
    "Math.max(Number(text), min)",
    "Number(text)",
  ),
  source(
    "reloading policies keeps debts",
    "policies/rule.ts",
    "const request = { name,",
    "const request = { name: name + config.capacity,",
  ),
  source(
    "a rule in shadow mode denies no request, and changes no decision of another rule",
    "policies/enforcement.ts",
    "!isShadow[i]",
    "true",
  ),
  source(
    "policy documents are checked alike natively and in WebAssembly",
    "policies/repeated.ts",
    "      frame.names.add(frame.step);\n",
    "",
  ),
  // Clients.
  source(
    "a throttled call runs at the millisecond of its reservation",
    "client/queue.ts",
    "if (at > now) {",
    "if (at > now + 1) {",
  ),
  source(
    "aborts break no law",
    "client/reserve.ts",
    "this.#source.give(Math.min(count, room))",
    "this.#source.give(100 * count)",
  ),
  source(
    "with aborts and priorities together, throttled calls exceed their limit by one call at most",
    "client/queue.ts",
    "const at = Math.max(due, pace?.at(now) ?? now);",
    "const at = pace?.at(now) ?? now;",
  ),
  source("no priority starves", "client/waiting.ts", "PLACES_PER_LEVEL = 100", "PLACES_PER_LEVEL = 101"),
  source(
    "a queued call costs the same at any length of the queue",
    "client/queue.ts",
    "    for (const call of calls) {\n      if (!this.#waiting.has(call)) continue;\n",
    "    for (const call of calls) {\n      this.#reserve?.giveBack();\n      if (!this.#waiting.has(call)) continue;\n",
  ),
  kept(
    "a fleet stays within one quota",
    "examples/vendor-quota-fleet/quota.mjs",
    "rate: QUOTA - burst, period: PERIOD, capacity: burst",
    "rate: QUOTA - burst, period: PERIOD, capacity: QUOTA",
  ),
  source(
    "a `fetch` slows down before it is denied",
    "client/server-pace.ts",
    "left < most * this.#slowBelow || left === 0",
    "false",
  ),
  source(
    "a component renders only when a field that it reads changes",
    "react/view-observer.ts",
    "if (Object.is(view[field], this.#view[field])) continue;",
    "",
  ),
  // Fleets.
  source(
    "a fleet grants no more than the limit while processes die, networks split and clocks are wrong",
    "limiter/lease/lease.ts",
    "this.#balance += lent;",
    "this.#balance += 2 * lent;",
  ),
  source(
    "every leased token is granted or given back, unless a process or a message is lost",
    "limiter/lease/lease.ts",
    "this.#balance += lent;",
    "this.#balance = lent;",
  ),
  source(
    "a small demand is not starved by a large one",
    "limiter/lease/lease.ts",
    "return missing + Math.max(Math.floor(Math.min(wanted, share)), 0)",
    "return this.#demand.perMs > 0.1 ? kept : missing",
  ),
  kept(
    "the simulation's figures are those of the committed report, and reproducible",
    "tests/simulation/engine/random.ts",
    "for (let i = 0; i < 12; i++) next();",
    "for (let i = 0; i < 13; i++) next();",
  ),
  source(
    "adapting instances converge to about equal shares",
    "limiter/adaptive.ts",
    "this.#rate + increase)",
    "this.#rate * 1.1)",
  ),
  // Documents.
  kept(
    "the three curl lines answer as printed",
    "examples/server/routes.mjs",
    "{ otherwise: 1, least: 1, most: 1000 }",
    "{ otherwise: 1, least: 1, most: 10 }",
  ),
  kept(
    "the playground's page and server decide alike, to the bit",
    "examples/server/sandbox.mjs",
    "      this.#now = now;\n      this.#random = random;\n",
    "      this.#now = now + (globalThis.window === undefined ? 1 : 0);\n      this.#random = random;\n",
  ),
  kept(
    "every block of code in the README runs and prints what its comments say",
    "README.md",
    "// → false 0 true",
    "// → true 0 true",
  ),
  kept(
    "the site sends no request to other hosts",
    "npm/site/.vitepress/config.mts",
    "head: [[",
    'head: [["link", { rel: "stylesheet", href: "https://fonts.example/a.css" }], [',
  ),
  {
    ...kept(
      "statements about other limiters are tested on their packages",
      "npm/site/migrate/upstash.md",
      "## What changes in behaviour",
      "## Changes in behaviour",
    ),
    // The page names the file that makes the test; this one has it.
    tests: ["tests/site/peers/upstash.test.ts::has a test for each row"],
  },
];
