/** Mutants of the Redis script, and of what its clients answer, as in `list.mjs`. Their tests start Redis. */
import { inFolder, inStore as of, server, unit } from "./mutant.mjs";

const redis = inFolder("redis");
const redisStore = (...tests) => of("redis.ts", ...server(...tests.map((test) => `redis/${test}`)));
const lua = redis("tidegate.lua", "suite", "store", "differential");
const luaTested = (file, name) => of("redis/tidegate.lua", `tests/stores/redis/${file}.test.ts::${name}`);
const expiry = luaTested("store", "whatever wrote it, a key expires when it is full");
const shared = of("redis/pipeline.ts", "tests/stores/redis/outages.test.ts::although a limit with a longer timeout");
const argument = luaTested("script", "an argument that is wrong is an error that names it");
const passedIn = luaTested("script", "a clock that is passed in decides with a deadline too");

export const REDIS = [
  of("redis/clients.ts", "tests/stores/redis/outages.test.ts::an error of ioredis on a connection that the server")(
    " || why === past",
    "",
  ),
  redis("clients.ts", "cluster")("client.isCluster ?? client.slots !== undefined", "client.isCluster === true"),
  redis("clients.ts", "cluster")(" ? reject : again)", " ? again : reject)"),
  redis("upstash.ts", "upstash")("attempts: 0", "attempts: 1"),
  redis("upstash.ts", "upstash")("all[at] ?? all;", "all[at] ?? {};"),
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
  of("redis/pipeline.ts", ...unit("redis-turns"))("    task(run);\n  }", "  }"),
  shared("const deadline = firstDeadline(entries);", "const deadline = Math.max(...entries.map(deadlineOf));"),
  shared("if (at < deadlineOf(entry)) inTime", "if (at < 0) inTime"),
  redis("pipeline.ts", "cluster")("entries.length > 1 && signals(message, OF_KEYS)", "false"),
  redis("pipeline.ts", "store", "faults")("/^(?:NOSCRIPT(?: |$)|", "/(?:NOSCRIPT|"),
  redis("pipeline.ts", "outages")("|PermissionDenied: ).*", " ).*"),
  redis("pipeline.ts", "store")("|can't run this command|ACL failure", ""),
  redis("pipeline.ts", "outages")("|(?:Moved|Ask|TryAgain): ", ""),
  redis("pipeline.ts", "outages")("(?:Too many Cluster redirections\\. Last error: )?", ""),
  redis("denials.ts", "denials")(" || denial.sentAt <= (this.#returnedAt.get(hashOf(key)) ?? -Infinity)", ""),
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
  argument("integer(run, 1, left)", "integer(run, 1, MOST)"),
  argument("integer(i, 1, argv[5] + 0)", "integer(i, 1, MOST)"),
  argument("(argv[run] or left > 0)", "argv[run]"),
];
