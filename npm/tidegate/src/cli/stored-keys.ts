/** The keys that a store holds, page by page. Keys without calls, and those that are full again, are not stored. */
import { decodeText, NotAState } from "../limit/codec.ts";
import type { State } from "../limit/decision.ts";
import { databaseOf, type PostgresClient, statement } from "../stores/postgres/client.ts";
import { quoted } from "../stores/postgres/migration.ts";
import { linkTo, type RedisLike } from "../stores/redis/clients.ts";
import { nameAndKeyOf } from "../stores/redis/key.ts";
import { inTime, PATIENCE } from "./in-time.ts";

/** A key of one limit, and its two numbers. */
interface StoredKey {
  readonly name: string;
  readonly key: string | undefined;
  readonly state: State;
}

export type Pages = AsyncIterable<readonly StoredKey[]>;

/**
 * One step of `SCAN`: the cursor, then each key and its state as text, since node-redis 4 reads no bytes. What has another
 * size is another program's.
 */
const SCAN = `
local found = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', 1000)
local reply = { found[1] }
for _, key in ipairs(found[2]) do
  local state = redis.pcall('GET', key)
  if type(state) == 'string' and #state == 16 then
    reply[#reply + 1] = key
    reply[#reply + 1] = string.format('%.17g %.17g', struct.unpack('<dd', state))
  end
end
return reply`;

/** The state; `undefined` if the numbers are none, which a call on the key reports. */
function stateIn(text: string): State | undefined {
  try {
    return decodeText(text);
  } catch (error) {
    if (error instanceof NotAState) return undefined;
    throw error;
  }
}

/** The keys on one server that begin with the prefix. `SCAN` may return a key twice. */
export async function* redisKeys(client: RedisLike, prefix = "tidegate:"): Pages {
  const { run, keyPrefix } = linkTo(client);
  const whole = keyPrefix + prefix;
  const pattern = `${whole.replace(/[\\*?[\]^-]/g, "\\$&")}*`;
  let cursor = "0";
  do {
    const reply = (await inTime("page of keys", run(true, SCAN, [], [cursor, pattern]))) as (string | Uint8Array)[];
    const [next, ...found] = reply.map((part) => (typeof part === "string" ? part : new TextDecoder().decode(part)));
    cursor = next as string;
    const page: StoredKey[] = [];
    for (let i = 0; i < found.length; i += 2) {
      const identity = nameAndKeyOf(whole, found[i] as string);
      const state = stateIn(found[i + 1] as string);
      if (identity !== undefined && state !== undefined) page.push({ ...identity, state });
    }
    yield page;
  } while (cursor !== "0");
}

/** Rows of a page of PostgreSQL. */
const ROWS = 5000;

/** The keys in the table, by pages of the primary key. Rows that are full again or hold no state are left out. */
export async function* postgresKeys(client: PostgresClient, schema = "tidegate"): Pages {
  const { send } = databaseOf(client, false);
  const name = quoted(schema);
  const text = `SELECT coalesce(json_agg(json_build_array(encode(id, 'hex'), value || ' ' || ts) ORDER BY id), '[]')::text AS answer
    FROM (
      SELECT id, value, ts FROM ${name}.states
      WHERE id > decode($1::text, 'hex') AND full_at > ${name}.clock() AND ${name}.is_state(value, ts)
      ORDER BY id LIMIT ${ROWS}
    ) AS page`;
  let last: string | undefined = "";
  while (last !== undefined) {
    const values = [last];
    const reply = await inTime("page of keys", send(() => statement(text, values), PATIENCE).reply);
    const rows = JSON.parse(reply as string) as [string, string][];
    last = rows[ROWS - 1]?.[0];
    yield rows.map(([id, state]) => {
      const identity = new TextDecoder().decode(Buffer.from(id, "hex"));
      const at = identity.indexOf(":");
      const [name, key] = at < 0 ? [identity, undefined] : [identity.slice(0, at), identity.slice(at + 1)];
      return { name, key, state: decodeText(state) };
    });
  }
}
