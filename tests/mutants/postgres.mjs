/** Mutants of the PostgreSQL schema and queue, as in `list.mjs`. Those of SQL fail tests that start PostgreSQL. */
import { inFolder, inStore as of, server, unit } from "./mutant.mjs";

const postgres = inFolder("postgres");
const migration = postgres("migration.ts", "migration");
const cleanup = postgres("cleanup.ts", "roles");
const sql = (file, test, name = "sql") =>
  of(`postgres/schema/${file}.sql`, `tests/stores/postgres/${name}.test.ts::${test}`);
const sqlArgument = sql("decide", "in SQL too, an argument that is wrong is an error");
const oddState = sql("decide", "in SQL too, a state from a broken clock is ignored");
const [sqlFull, rowsFull] = ["decide", "rows"].map((file) => sql(file, "whichever call wrote it, a row has the time"));
const oldRows = sql("decide", "a call that makes a row deletes old ones now and then");
const queue = (file) => of(`postgres/${file}`, ...unit("postgres-queue"));
const queueTested = (name) => of("postgres/queue.ts", `npm/tidegate/test/postgres-queue.test.ts::${name}`);

export const POSTGRES = [
  migration("undefined_function OR ", ""),
  migration(" OR invalid_text_representation", ""),
  cleanup("code !== MISSING_RIGHTS || ", "true || "),
  cleanup("hasWarned = true;", ""),
  of("postgres.ts", ...server("postgres/connecting"))(
    "transaction ? () => undefined : connectingBy",
    "true ? () => undefined : connectingBy",
  ),
  of("postgres.ts", ...unit("postgres-deadline"))("transaction ? TIMEOUT_IN_TRANSACTION : 1000", "1000"),
  queue("queue.ts")("skipped.has(id) || busy.has(id)", "skipped.has(id)"),
  queueTested("where the server has no connection left")(
    "{ statements } = this.#executor;\n    while",
    "{ statements } = this.#options;\n    while",
  ),
  queueTested("a statement on a locked row")("    this.#statements++;\n    const next =", "    const next ="),
  queueTested("a call on another row does not wait")("lock === undefined ? batch.length : 0", "batch.length"),
  queueTested("on one connection")("this.#executor.statements === 1 && ", "false && "),
  queueTested("calls that waited on a row")(
    "    this.#waiting = this.#waiting.filter((pending) => !this.#takeLocked(pending));\n",
    "",
  ),
  queueTested("a check leaves with others")(
    "(reads && !this.#onLocked.some((earlier) => earlier.ids.includes(id)))",
    "false",
  ),
  queueTested("a row counts as locked for a second")("if (now - seenAt < QUIET) ", ""),
  queue("statements.ts")("flatMap((pending) => pending.ids))].sort(inOrder)", "flatMap((pending) => pending.ids))]"),
  sql(
    "rows",
    "operators that another role has made",
    "clients",
  )(
    "SET search_path = pg_catalog, pg_temp SET extra_float_digits = 1 SET enable_seqscan",
    "SET extra_float_digits = 1 SET enable_seqscan",
  ),
  sqlArgument("rate > 1e-250 AND rate <= 1099511627776", "rate > 1e-250"),
  sqlArgument("size <= 1099511627776 AND count > 0", "count > 0"),
  sqlArgument("    AND (max_reserved IS NULL OR max_reserved >= 0 AND max_reserved <= 1099511627776)\n", ""),
  sqlArgument("OR abs(start) <= 4503599627370496 AND floor(start) = start)\n    AND", "OR true)\n    AND"),
  oddState("AND s.ts - now <= 3600000::float8 AND", "AND"),
  oddState("AND s.ts > '-Infinity'::float8 AND", "AND"),
  oddState(" AND s.value < 'Infinity'::float8\n", "\n"),
  oddState("IF NOT (before_v IS NULL OR tidegate.is_state(before_v, before_t)) THEN", "IF false THEN"),
  sqlFull("periods(size + count - ", "periods(size - "),
  rowsFull("periods(capacity + count - ", "periods(capacity - "),
  rowsFull("v[i.n], t[i.n])\n    FROM", "capacities[i.s], t[i.n])\n    FROM"),
  rowsFull(
    "s.value, s.ts, now) - count,\n          tidegate.refill_ts",
    "s.value, s.ts, now),\n          tidegate.refill_ts",
  ),
  sql("decide", "a key in the text of the statement")(
    "regexp_replace(current_query(), '''[^'']*''', '', 'g')",
    "current_query()",
  ),
  oldRows("AND at IS NULL AND random()", "AND random()"),
  oldRows("    AND current_setting('transaction_isolation') = 'read committed'\n", ""),
  sql("rows", "sweep purges the whole table from SQL", "upkeep")("    COMMIT;\n", ""),
  postgres("client.ts", "clients")(
    "Object.values((row ?? {}) as object)[0]",
    "((row ?? {}) as { answer?: unknown }).answer",
  ),
  postgres("client.ts", "faults")("!OF_SESSION.test(String(code))", "true"),
  postgres("client.ts", "odd-clients")(
    '      connection.on("error", ignore);\n',
    '      void Promise.resolve().then(() => connection.on("error", ignore));\n',
  ),
  postgres("client.ts", "odd-clients")("    returned?.then(acquired).then(undefined, reject);\n", ""),
  postgres("client.ts", "odd-clients")("isAcquired || connection === undefined", "connection === undefined"),
  postgres("client.ts", "odd-clients")("isAcquired || connection === undefined", "isAcquired"),
  postgres("request.ts", "locks")("    this.#caller = { at: this.#caller.at };\n", ""),
  postgres("request.ts", "locks")("    this.#resolve = this.#reject = ignore;\n", ""),
  postgres("fault.ts", "pooler")('  "42P05": NO_PREPARE,\n', ""),
  postgres("fault.ts", "serializable", "faults")('"40001": "conflict",', ""),
  queue("executor.ts")(
    "const scope = fault.undone !== undefined || fault.ofRow",
    "const scope = fault.undone !== undefined",
  ),
  of("postgres/executor.ts", ...unit("postgres-queue"))("requests.length >> 1", "1"),
  of("postgres/executor.ts", ...unit("postgres-deadline"))("return LEAST_REST;", "return 0;"),
  of("postgres/fault.ts", ...unit("postgres-queue"))('"57P05": "idle session",', ""),
  of("postgres/executor.ts", ...unit("postgres-queue"))('isFull || undone === "idle session"', "isFull"),
  of("failure.ts", ...server("postgres/orms"))(
    "inner = error.cause ?? error.parent ?? error.driverError ?? error.meta?.driverAdapterError ?? error.meta;",
    "break;",
  ),
  postgres("executor.ts", "odd-clients")(
    "    for (const pending of requests) pending.answered = true;\n    if",
    "    if",
  ),
  postgres("executor.ts", "locks")("      for (const pending of requests) pending.answered = true;\n", ""),
  of("postgres/request.ts", ...unit("postgres-deadline"))("get: () => this.answered", "value: true"),
  of("postgres/request.ts", ...unit("postgres-deadline"))("get: () => this.answered", "value: this.answered"),
  postgres("transport.ts", "faults", "odd-clients")("out.count >= statements * LOST", "false"),
  postgres("transport.ts", "faults", "odd-clients")("if (isProbe) unanswered = { count: 0 };", ""),
];
