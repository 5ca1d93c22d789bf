/**
 * Mutants of `src/stores`, as in `list.mjs`. Those of Lua and SQL, and of code that a server's replies exercise, fail tests
 * of `tests/stores`, which start that server.
 */
const of =
  (file, ...tests) =>
  (find, replace) => ({ file: `npm/tidegate/src/stores/${file}`, find, replace, tests });
const unit = (...names) => names.map((name) => `npm/tidegate/test/${name}.test.ts`);
const server = (...names) => names.map((name) => `tests/stores/${name}.test.ts`);

const [swap, attempt, trips, waiting] = ["swap", "swap/attempt", "swap/round-trips", "swap/waiting"].map((file) =>
  of(`${file}.ts`, ...unit("swap", "swap-time", "swap-load")),
);
const sharing = of("swap/attempt.ts", ...unit("swap", "swap-shared"));
const batches = of("swap/batches.ts", ...unit("swap", "swap-shared"));
const combined = (find, replace) => ({
  file: "npm/tidegate/src/limit/combined.ts",
  find,
  replace,
  tests: unit("swap"),
});
const steps = of("steps.ts", ...unit("swap", "transactional"));
const keyedQueue = of("keyed-queue.ts", ...unit("keyed-queue", "transactional"));
const transactional = of("transactional.ts", ...unit("transactional"));
const sharded = of("sharded.ts", ...unit("sharded"));
const object = (file) => of(file, ...unit("durable-object"));
const record = of("record.ts", ...server("dynamodb/suite"));
const memcachedClient = of("memcached/client.ts", ...server("memcached/keys"));
const table = of("table.ts", ...server("mysql/rows", "sqlite/rows"));
const mysql = of("mysql.ts", ...server("mysql/rows", "mysql/faults", "mysql/concurrency"));
const mysqlWrites = of("mysql.ts", ...unit("mysql-writes"));
const sqlite = of("sqlite.ts", ...server("sqlite/rows", "sqlite/suite"));
const dynamodb = of("dynamodb.ts", ...server("dynamodb/faults"));
const mongodb = of("mongodb.ts", ...server("mongodb/faults"));
const redis = (file, ...tests) => of(`redis/${file}`, ...server(...tests.map((test) => `redis/${test}`)));
const redisStore = (...tests) => of("redis.ts", ...server(...tests.map((test) => `redis/${test}`)));
const lua = redis("tidegate.lua", "suite", "store", "differential");
const luaTested = (file, name) => of("redis/tidegate.lua", `tests/stores/redis/${file}.test.ts::${name}`);
const expiry = luaTested("store", "whatever wrote it, a key expires when it is full");
const argument = luaTested("script", "an argument that is wrong is an error that names it");
const passedIn = luaTested("script", "a clock that is passed in decides with a deadline too");
const postgres = (file, ...tests) => of(`postgres/${file}`, ...server(...tests.map((test) => `postgres/${test}`)));
const migration = postgres("migration.ts", "migration");
const cleanup = postgres("cleanup.ts", "roles");

const sql = (file, test, name = "sql") =>
  of(`postgres/schema/${file}.sql`, `tests/stores/postgres/${name}.test.ts::${test}`);
const sqlArgument = sql("decide", "in SQL too, an argument that is wrong is an error");
const oddState = sql("decide", "in SQL too, a state from a broken clock is ignored");
const [sqlFull, rowsFull] = ["decide", "rows"].map((file) => sql(file, "whichever call wrote it, a row has the time"));
const oldRows = sql("decide", "a call that makes a row deletes old ones now and then");
const kv = of("workers-kv.ts", ...unit("workers-kv"));
const queue = (file) => of(`postgres/${file}`, ...unit("postgres-queue"));
const queueTested = (name) => of("postgres/queue.ts", `npm/tidegate/test/postgres-queue.test.ts::${name}`);
const listed = (file, find, replace) => ({
  file: `npm/tidegate/src/cli/${file}`,
  find,
  replace,
  tests: ["tests/serve/top.test.ts"],
});

export const STORES = [
  of("memory.ts", ...unit("memory"))("    wasm.all_clear();\n", ""),
  kv("for (const call of calls) refuse(call.limit, call.reserve);", ""),
  kv("LEAST_TTL + Math.ceil", "Math.ceil"),
  kv(", MOST_TTL);", ", Infinity);"),
  batches("this.#hasRoom(batch, call),", "false,"),
  batches("!batch.hasBegun && ", ""),
  batches("last.every((other) => canFollow(batch, other)) && ", ""),
  batches("|| batch.before.has(other.ended)", ""),
  batches(" || (!batch.isFixed && other.hasBegun)", ""),
  batches("!batch.isFixed && ", ""),
  batches("(!batch.isFixed && other.hasBegun)", "!batch.isFixed"),
  batches("for (const other of last) if (other !== batch) batch.before.add(other.ended);", ""),
  batches("if (calls.length >= MOST_CALLS) return false;", ""),
  batches("if (more === 0) return true;", ""),
  batches("ids.size + more <= MOST_IDS && ", ""),
  batches(".filter((id) => !ids.has(id)).length", ".length"),
  batches(" && !this.#isSpread(call)", ""),
  batches(" && !this.#isSpread(calls[0] as Waiting)", ""),
  batches("return this.#hasShards && ", "return "),
  batches("      batch.hasBegun = true;\n", ""),
  batches("for (const ended of [...batch.before]) await ended;", ""),
  batches("for (const ended of batch.before) await ended;", ""),
  batches("    batch.isFixed = true;\n", ""),
  waiting("if (deadline.at > by)", "if (deadline.at >= by)"),
  swap("calls = this.#worthwhile(calls);", "calls = inTime(calls, performance.now(), NOT_SENT);"),
  swap("this.#next.length > 0 && ", "false && "),
  swap(" && read.ended > since", ""),
  swap("(write.ended > since && write.usual) || read.usual", "read.usual"),
  swap("(write.ended > since && write.usual) || read.usual", "write.ended > since ? write.usual : 0"),
  swap("(write.ended > since && write.usual) || read.usual", "write.usual || read.usual"),
  trips("if (sent < this.#sent && ms > 2 * last) return;", ""),
  trips(" && ms > 2 * last", ""),
  trips("Math.min(...this.#times)", "this.#times[0]"),
  trips("now - this.ended > ms / 2", "now - this.ended > 2 * ms"),
  trips("sent < this.#resumed ? before : ms", "ms"),
  trips("sent < this.#resumed ? before : ms", "before"),
  swap("left.some(({ deadline }) => deadline.at > enough)", "true"),
  swap("?? TRIPS)", "?? 3)"),
  swap("Math.max(...batch.map", "Math.min(...batch.map"),
  swap("Math.min(limit, Math.max", "Math.max(0, Math.max"),
  swap("?? STEP_TIMEOUT", "?? 2 * STEP_TIMEOUT"),
  swap(
    "if (busy === undefined && attempt.isSent) throw error;\n      if (busy === undefined) return { unread: error };",
    "",
  ),
  swap('busy === "entries" && !(error instanceof KeyError)', "false"),
  swap('busy === "entries" && !(error instanceof KeyError)', "true"),
  swap(
    "failure instanceof KeyError ? new KeyError(message, failure.answered) : new Error(message)",
    "new Error(message)",
  ),
  swap("for (const { deadline } of calls) deadline.why = notStored;", ""),
  swap("Math.min(PAUSE_MOST, 2 ** refusals)", "2 ** refusals"),
  swap("performance.now() + pause > until", "performance.now() > until"),
  swap("reject(deadline.why ?? error)", "reject(error)"),
  waiting("reject(deadline.why ?? reason)", "reject(reason)"),
  of("swap.ts", ...unit("keyed-queue"))("due.why = NOT_SENT;", ""),
  swap("    await overdueTimers(Math.min(...batch.map(({ deadline }) => deadline.at)));\n", ""),
  attempt("deadline.why ??= why;", "deadline.why = why;"),
  swap("      await overdueTimers(firstDeadline(calls, until));\n", ""),
  swap("deadline.why = whyLate(deadline, since);", "deadline.why = undefined;"),
  of("failure.ts", ...unit("keyed-queue", "transactional"))(
    "monotonicNow() > (since + at) / 2 ? LITTLE_TIME : undefined",
    "LITTLE_TIME",
  ),
  attempt("if (!this.#seen.has(id)) await this.#load([id]);", "await this.#load([id]);"),
  attempt("if (written !== undefined) return written.state;", ""),
  attempt("Math.max(fullAt - now, 0) + SLACK", "Math.max(fullAt - now, 0)"),
  attempt("dropIn: SLACK }", "dropIn: 0 }"),
  sharing("if (ids.length > 1) await this.#load(ids);", ""),
  sharing("sharding === undefined || targets[i]?.limit.policy.shards === 1", "true"),
  sharing("sharding === undefined || targets[i]?.limit.policy.shards === 1", "sharding === undefined"),
  sharing("this.#reads += this.#database.sharding === undefined ? 1 : ids.length;", "this.#reads++;"),
  attempt("if (this.#lost !== undefined) throw this.#lost.error;", ""),
  attempt("this.#writes.size === 0 && this.#reads < 2", "this.#writes.size === 0"),
  attempt("if (performance.now() >= first) return", "if (false) return"),
  attempt("{ until: this.#until.at, first }", "{ until: this.#until.at, first: this.#until.at }"),
  attempt("if (performance.now() > enough) break;", ""),
  attempt(
    "(performance.now() + firstDeadline(this.#calls, this.#until)) / 2",
    "firstDeadline(this.#calls, this.#until)",
  ),
  swap("calls = calls.slice(outcome.ends.length);", "calls = [];"),
  swap("this.#attempt(calls, until)", "this.#attempt(batch, until)"),
  attempt("comparesAll === true", "false"),
  sharing("sharding !== undefined || this.#compared.has(id)", "true"),
  sharing("sharding !== undefined || this.#compared.has(id)", "this.#compared.has(id)"),
  attempt("if (isWritten) return undefined;", "return undefined;"),
  swap("return this.#apart(calls, outcome.unread, until);", "throw outcome.unread;"),
  swap("attempt.isSent) throw error", "false) throw error"),
  swap("MOST_STEPS = 128", "MOST_STEPS = 1000"),
  swap("    else next();\n", ""),

  steps("if (all.ok) for (const [i, call]", "for (const [i, call]"),
  steps("state === null || state === before ? [] : [[shard, state]]", "state === null ? [] : [[shard, state]]"),
  steps("Number.isFinite(state?.value) && Number.isFinite(state?.ts)", "Number.isFinite(state?.value)"),
  steps("!(ts - now > MAX_SKEW_MS)", "!(now < 0 * ts)"),
  steps("Math.max(...sound.map", "Math.min(...sound.map"),
  steps("Math.max(capacity - value, 0)", "(capacity - value)"),
  steps("(shard === undefined ? 1 : limit.policy.shards)", "1"),
  of("connecting.ts", ...unit("connecting"))(
    "new Promise((resolve) => resolve(connect()))",
    "Promise.resolve(connect())",
  ),
  combined("!ok && defined.length < times.length", "false"),
  combined("Math.max(...defined)", "Math.min(...defined)"),
  steps("this.#states.delete(limit.identity(key, each))", "this.#states.delete(limit.identity(key, 0))"),

  keyedQueue("Promise.all([...before].map(over))", "Promise.race([...before].map(over))"),
  keyedQueue("if (this.#last.get(id) === entry) this.#last.delete(id);", "this.#last.delete(id);"),
  keyedQueue("  deadline.why = NOT_SENT;\n", ""),
  keyedQueue("  deadline.why = whyLate(deadline, since);\n", ""),
  transactional("queue.run(idsOf(targets), decided, deadline)", "turns.run(idsOf(targets), decided)"),
  transactional("queueOf(within)", "new KeyedQueue()"),
  transactional("now >= 0 && now <= MAX_NOW_MS", "now <= MAX_NOW_MS"),

  sharded('if (step.status === "rejected") continue;', 'if (step.status === "rejected") throw step.reason;'),
  sharded("b.value - a.value", "a.value - b.value"),
  sharded("order[i + 1]?.value ?? -Infinity", "-Infinity"),
  sharded("(taken.get(shard) ?? 0) + part", "part"),
  sharded("      rest -= part;\n", ""),
  sharded("over > this.#tolerance ? this.#fill(seen, over) : []", "[]"),
  sharded('"charge", count / limit.policy.shards)', '"charge", count)'),
  sharded("decision.ok || count <= tolerance ?", "true ?"),

  object("durable-object/wire.ts")("waiting.why = LITTLE_TIME;", "{}"),
  object("durable-object/wire.ts")("Object(error).overloaded", "false"),
  object("durable-object/wire.ts")("!(reply as Reply | undefined)", "false"),
  object("failure.ts")("|| error instanceof KeyError", ""),
  object("durable-object/object.ts")("if (performance.now() >= until) throw NOT_SENT;", ""),
  record("if (!LONE_SURROGATE.test(id)) return id;", "return id;"),
  memcachedClient("if (key.length > KEY_MOST) return", "if (key.length > 1e9) return"),
  memcachedClient('.padStart(2, "0")', ""),
  memcachedClient("if (wait <= WAIT_MOST) return wait;", "return wait;"),
  memcachedClient("wait + SLACK_OF_TIMES", "wait"),
  memcachedClient("time <= TIME_MOST ? time : 0", "time"),

  table("++writes % SWEEP_EVERY === 0", "false"),
  table("written: false, dropIn: SLACK", "written: true, dropIn: SLACK"),
  of("redis/clients.ts", "tests/stores/redis/outages.test.ts::an error of ioredis on a connection that the server")(
    " || why === past",
    "",
  ),
  table("if (!statements.isMissing(error)) throw explained(error);", "throw error;"),
  of("table.ts", ...server("mysql/faults"))("statements.write(rows, first)", "statements.write(rows, _)"),
  mysql("} < ? AND (state", "} > 0 * ? AND (state"),
  mysql("if (ids.some((id) => now < (unanswered.get(id) ?? 0))) throw new KeyError(LOCKED, false);", ""),
  mysql("    unanswered: { write: new KeyError(LOCKED, false) },\n", ""),
  mysql("3101, 1969]", "3101]"),
  of("mysql.ts", ...server("mysql/connections"))(
    '      if (NO_CONNECTION.includes(errnoOf(error))) return "database";\n',
    "",
  ),
  mysql("AND (state <=> CASE", "AND (true OR state <=> CASE"),
  mysql("GREATEST(drop_at, VALUES(drop_at))", "drop_at"),
  mysql("join()}) AND $", "join()}) -- $"),
  mysql("for (const { id } of all) unanswered.delete(id);", ""),
  mysqlWrites(".sort((a, b) => (a.id < b.id ? -1 : 1))", ""),
  mysqlWrites("- ROUND_TRIP + ahead", "+ ahead"),
  mysqlWrites("trips: 2.5,", ""),
  sqlite("IS NOT seen.value ->> 1", "<> seen.value ->> 1"),
  mysql("isBytes(state)", "false"),
  mysql("  nestTables: false,\n", ""),
  mysql("  namedPlaceholders: false,\n", ""),
  mysql("string => `x'$", "string => `'$"),
  mysql('typeof of === "function"', "false"),
  mysql("  typeCast: (_column: unknown, next: () => unknown): unknown => next(),\n", ""),
  mysql("GREATEST(drop_at, VALUES(drop_at))", "VALUES(drop_at)"),
  mysql('if (Number(autocommit) !== 1) throw new Error("the sessions of the client must have autocommit = 1");', ""),
  dynamodb("ConsistentRead: true", "ConsistentRead: false"),
  dynamodb("afterWaiting(Math.max(until - performance.now(), 0), () => aborter.abort(), true)", "() => {}"),
  dynamodb("    unanswered: { read: PAUSED, write: PAUSED },\n", ""),
  dynamodb("TransactionConflict|Provisioned", "TransactionConflict|TransactionInProgress|Provisioned"),
  dynamodb("causes?.every(", "causes?.some("),
  dynamodb("if (changes.length === 1 && Delete !== undefined) return database.deleteItem(Delete, at);\n", ""),
  dynamodb('"attribute_not_exists(#state)" : "#state = :state"', '"attribute_not_exists(#none)" : "#state = :state"'),
  mongodb("{ $inc: { touched: 1 } as never }", "{ $set: {} }"),
  mongodb("row?.state === undefined ? row : (row.state ?? undefined)", "row?.state ?? undefined"),
  mongodb('readPreference: "primary", writeConcern: { w: "majority" }', 'readPreference: "primary"'),
  mongodb('readPreference: "primary", writeConcern', "writeConcern"),
  mongodb('readConcern: { level: "snapshot" }, ', ""),
  mongodb("      write: LOCKED,\n", ""),
  mongodb("        return unreachable(driver);\n", ""),
  mongodb("WRITE_CONFLICT) return", "-1) return"),
  mongodb("POOL_IS_FULL.test(messageOf(error))", "false"),
  mongodb('errorLabels.includes("TransientTransactionError")', "false"),
  mongodb("maxCommitTimeMS: within.maxTimeMS", "maxCommitTimeMS: undefined"),
  mongodb("matchedCount + upsertedCount === updates.length", "true"),
  mongodb("...(version !== undefined && { state: { $eq: version } })", "...{}"),
  mongodb("[...inserts, ...updates]", "operations"),
  mongodb("if (result !== false) await session.commitTransaction();", ""),

  redis("upstash.ts", "upstash")("attempts: 0", "attempts: 1"),
  redis("pipeline.ts", "upstash")("|command was): ", "): "),
  redis("pipeline.ts", "faults")("with args beginning with|", ""),
  redis("upstash.ts", "upstash")("if (commands.length === MOST_COMMANDS) open = undefined;", ""),
  redisStore("suite", "store")("latest?.is(action, start, isShard) === true", "latest !== undefined"),
  redisStore(
    "suite",
    "store",
    "denials",
  )("if (decision.ok) this.#denials.forget(redisKey);\n    else", "if (!decision.ok)"),
  redisStore("cluster")(", call, at, start)", ", call, at, start, 0)"),
  redis("pipeline.ts", "suite", "store")("open.now === now && ", ""),
  redis("pipeline.ts", "cluster")("entries.length > 1 && signals(message, OF_KEYS)", "false"),
  redis("pipeline.ts", "store", "faults")("/^(?:NOSCRIPT(?: |$)|", "/(?:NOSCRIPT|"),
  redis("pipeline.ts", "outages")("|PermissionDenied: ).*", " ).*"),
  redis("pipeline.ts", "store")("|can't run this command|ACL failure", ""),
  migration("undefined_function OR ", ""),
  migration(" OR invalid_text_representation", ""),
  cleanup("code !== MISSING_RIGHTS || ", "true || "),
  cleanup("this.#warned = true;", ""),
  redis("pipeline.ts", "outages")("|(?:Moved|Ask|TryAgain): ", ""),
  redis("pipeline.ts", "outages")("(?:Too many Cluster redirections\\. Last error: )?", ""),
  redis("denials.ts", "denials")(" || sentAt <= (this.#returnedAt.get(hashOf(key)) ?? -Infinity)", ""),
  redis("denials.ts", "denials")("if (this.#kept.size >= MOST_KEYS)", "if (false)"),
  lua(
    "local part = held and '1' .. held or '0'",
    "if held and after < 0 then call('SET', key, held, 'KEEPTTL') end\n      local part = held and '1' .. held or '0'",
  ),
  lua("if op and op ~= 'take' or owed and owed ~= '' then break end", "if op and op ~= 'take' then break end"),
  lua("    if done < last then break end\n", ""),
  lua("math.max(past, done) + 1", "past + 1"),
  lua(" and at < END and after + back >= capacity) then", " and at < END) then"),
  lua("v, t = v + ((now - t) * rate) / period, now", "t = now"),
  lua("if windows > 0 or not held then v, t = v + rate * windows,", "if windows > 0 or not held then v, t = v + rate,"),
  lua("if own and (v >= capacity or t > now) then t = now end", ""),
  argument("expect(i + 6, 'start',", "expect(i + 6, 'start', '', true or"),
  lua("if v - v == 0 and t - t == 0 then return '1', v, t, held end", "if v - v == 0 then return '1', v, t, held end"),
  lua("if plan[1] then granted = granted + 1 else ok = false end", "if plan[1] then granted = granted + 1 end"),
  redis("tidegate.lua", "script")("return n and n >= least and n <= most", "return n"),
  redis("tidegate.lua", "script")("local now = passed and floor(passed)", "local now = passed"),
  lua("held.err:find('WRONGTYPE', 1, true) and '4' or call('GET', key)", "'4'"),
  lua("local fresh = not v or t - at > SKEW", "local fresh = not v"),
  passedIn("now = now or clock", "now = clock"),
  passedIn("elseif form ~= 'decision' then break end", "else break end"),
  expiry("at - now + SKEW)", "at - now)"),
  expiry("pack('<dd', v, t), 'PXAT', at)", "pack('<dd', v, t))"),
  expiry("  else call('DEL', key) end\nend", "  end\nend"),
  argument("within(i + 1, 2 ^ -1074, MOST)", "within(i + 1, 2 ^ -1074, 2 * MOST)"),
  argument("or within(i + 5, 0, MOST))", "or within(i + 5, 0, 1 / 0))"),
  argument("integer(i + 6, -END, END)", "within(i + 6, -END, END)"),
  argument("or within(at, 0, END)", "or within(at, -END, END)"),
  argument("(blocks and integer or within)(i", "within(i"),
  argument("blocks and 1 or 0, MOST", "0, MOST"),
  argument("integer(5, 1, #argv)", "integer(5, 0, #argv)"),

  of("postgres.ts", ...server("postgres/connecting"))(
    "transaction ? () => undefined : connectingBy",
    "true ? () => undefined : connectingBy",
  ),
  of("table.ts", ...server("mysql/connecting"))('connectedBy(() => read([""]), store)', "store"),
  of("dynamodb.ts", ...server("dynamodb/connecting"))(
    "connectedBy(connect, { ...store, during })",
    "{ ...store, during }",
  ),
  of("memcached.ts", ...server("memcached/connecting"))(
    'connectedBy(() => connection.connect(keyOf(prefix, "")), ',
    "(",
  ),
  of("memcached.ts", ...server("memcached/connecting"))(
    '() => connection.connect(keyOf(prefix, ""))',
    "async () => {}",
  ),
  of("table.ts", ...server("mysql/connecting"))('() => read([""])', "async () => {}"),
  of("memcached/client.ts", ...server("memcached/connecting"))(
    "connect: (key) => client.gets(key)",
    "connect: async () => {}",
  ),
  queue("queue.ts")("skipped.has(id) || busy.has(id)", "skipped.has(id)"),
  queueTested("a statement on a locked row")("    this.#statements++;\n    const next =", "    const next ="),
  queueTested("a call on another row does not wait")("lock === undefined ? batch.length : 0", "batch.length"),
  queueTested("on one connection")("this.#options.statements === 1 && ", "false && "),
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
  of("postgres/executor.ts", ...unit("postgres-deadline"))("? LEAST_REST", "? 0"),
  postgres("fault.ts", "orms")("inner = cause ?? meta?.driverAdapterError ?? meta;", "break;"),
  postgres("executor.ts", "odd-clients")("for (const pending of course.requests) pending.answered();", ""),
  postgres("executor.ts", "locks")("      for (const pending of requests) pending.answered();\n", ""),
  of("postgres/request.ts", ...unit("postgres-deadline"))("get: () => this.#answered", "value: true"),
  of("postgres/request.ts", ...unit("postgres-deadline"))("get: () => this.#answered", "value: this.#answered"),
  postgres("transport.ts", "faults", "odd-clients")("out.count >= this.#most", "false"),
  postgres("transport.ts", "faults", "odd-clients")("if (isProbe) this.#out = { count: 0 };", ""),

  listed("stored-keys.ts", 'while (cursor !== "0");', "while (false);"),
  listed("stored-keys.ts", '.replace(/[\\\\*?[\\]^-]/g, "\\\\$&")', ""),
  listed("stored-keys.ts", "last = rows[ROWS - 1]?.[0];", "last = undefined;"),
  listed("stored-keys.ts", "AND full_at > ", "AND 0 < "),
  listed("stored-keys.ts", "if (error instanceof NotAState) return undefined;", ""),
  listed("commands/top.ts", "(ok ? 0 : retryAfter)", "0"),
  listed("commands/top.ts", "limitKeys === undefined ? key : textOf(key)", "limitKeys === undefined ? key : key"),
];
