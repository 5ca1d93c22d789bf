/**
 * A Redis server without the network: the Lua interpreter, compiled to WebAssembly (wasmoon), the commands that the
 * store's script calls, and one table of keys. It runs the script that the store sends.
 */
import { LuaFactory } from "wasmoon";

/** A key that a script call wrote, with the bytes under it before and after; `undefined` is none. */
export interface Change {
  readonly key: string;
  readonly before: Uint8Array | undefined;
  readonly after: Uint8Array | undefined;
}

/**
 * Redis has Lua 5.1, where every number is a double. This version also has integers: all computations of the script
 * go through these functions, which return doubles only.
 */
const COMMANDS = `
unpack = table.unpack
local parse, down, up = tonumber, math.floor, math.ceil
function tonumber(text) local number = parse(text) return number and number + 0.0 end
math.floor = function(x) return down(x) + 0.0 end
math.ceil = function(x) return up(x) + 0.0 end
struct = { pack = string.pack, unpack = string.unpack }

local data, expires, seconds, micros, now = {}, {}, 0, 0, 0
local touched, was = {}, {}
local function touch(key)
  if was[key] == nil then
    touched[#touched + 1] = key
    was[key] = data[key] or false
  end
end
local function live(key)
  if expires[key] and expires[key] <= now then data[key], expires[key] = nil, nil end
  return data[key]
end
local commands = {}
function commands.TIME() return { seconds, micros } end
function commands.GET(key) return live(key) or false end
function commands.DEL(key)
  touch(key)
  data[key], expires[key] = nil, nil
  return 1
end
function commands.SET(key, value, ...)
  local rest, at = { ... }, nil
  local i = 1
  while i <= #rest do
    if rest[i] == 'PXAT' then i = i + 1 at = tonumber(rest[i])
    elseif rest[i] == 'PX' then i = i + 1 at = now + tonumber(rest[i])
    else error('SET has no option ' .. rest[i]) end
    i = i + 1
  end
  touch(key)
  data[key], expires[key] = value, at
  return {}
end
local function command(op, ...) return commands[op](...) end
redis = { call = command, pcall = command }

local scripts = {}
function install(sha, text) scripts[sha] = assert(load(text, 'script')) end
function plant(key, value) data[key], expires[key] = value, nil end
-- Redis deletes expired keys several times per second, whether they are read or not.
function expire(at)
  for key, time in pairs(expires) do
    if time <= at then data[key], expires[key] = nil, nil end
  end
end
local function words(bytes)
  local all, n, at = {}, 0, 1
  while at <= #bytes do
    n = n + 1
    all[n], at = string.unpack('<s4', bytes, at)
  end
  return all
end
function run(s, us, sha, keys, args)
  seconds, micros, now = s, us, s * 1000 + us // 1000
  KEYS, ARGV = words(keys), words(args)
  touched, was = {}, {}
  local answer = scripts[sha]()
  local changes = {}
  for i, key in ipairs(touched) do
    changes[i] = string.pack('<s4s4s4', key, was[key] or '', data[key] or '')
  end
  return string.pack('<s4', answer) .. table.concat(changes)
end
`;

const BUFFER_BYTES = 1 << 20;
/** LUA_REGISTRYINDEX of Lua 5.4. */
const REGISTRY = -1_001_000;

/** The parts of the module that its types lack. */
interface Raw {
  readonly HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _lua_pushnumber(lua: number, n: number): void;
  _lua_pushlstring(lua: number, at: number, bytes: number): number;
  _lua_rawgeti(lua: number, at: number, n: bigint): number;
  _lua_pcallk(lua: number, args: number, results: number, handler: number, context: number, next: number): number;
  _lua_tolstring(lua: number, at: number, length: number): number;
  _lua_settop(lua: number, at: number): void;
}

/** Loads the interpreter when it is constructed, with timers: not in virtual time. */
let factory: LuaFactory | undefined;
const text = new TextEncoder();
const read = new TextDecoder();

/** Writes a string as UTF-8. Returns where it ends. */
function write(room: Uint8Array, at: number, word: string): number {
  const { read: taken, written } = text.encodeInto(word, room.subarray(at));
  if (taken < word.length) throw new Error(`arguments have more than ${BUFFER_BYTES} bytes`);
  return at + written;
}

/** Writes strings, each after its length as 4 bytes. Returns where the last of them ends. */
function writeAll(room: Uint8Array, words: readonly string[]): number {
  const view = new DataView(room.buffer, room.byteOffset, room.length);
  let at = 0;
  for (const word of words) {
    const end = write(room, at + 4, word);
    view.setUint32(at, end - at - 4, true);
    at = end;
  }
  return at;
}

export class RedisServer {
  readonly #raw: Raw;
  readonly #lua: number;
  readonly #functions: ReadonlyMap<string, bigint>;
  readonly #buffer: number;
  readonly #length: number;
  readonly #installed = new Set<string>();
  readonly #close: () => void;

  static async start(): Promise<RedisServer> {
    factory ??= new LuaFactory();
    const engine = await factory.createEngine({ injectObjects: false });
    await engine.doString(COMMANDS);
    return new RedisServer(engine);
  }

  private constructor(engine: Awaited<ReturnType<LuaFactory["createEngine"]>>) {
    const { lua, address } = engine.global;
    this.#raw = lua.module as unknown as Raw;
    this.#lua = address;
    this.#functions = new Map(
      ["install", "plant", "expire", "run"].map((name) => {
        lua.lua_getglobal(address, name);
        return [name, BigInt(lua.luaL_ref(address, REGISTRY))] as const;
      }),
    );
    this.#buffer = this.#raw._malloc(BUFFER_BYTES);
    this.#length = this.#raw._malloc(8);
    this.#close = () => engine.global.close();
  }

  has(sha: string): boolean {
    return this.#installed.has(sha);
  }

  install(sha: string, script: string): void {
    this.#call("install", [sha, script]);
    this.#installed.add(sha);
  }

  /** Puts any bytes under a key, as another program could. */
  plant(key: string, value: string): void {
    this.#call("plant", [key, value]);
  }

  /** Deletes the keys that have expired by this clock, ms. */
  expire(now: number): void {
    this.#call("expire", [now]);
  }

  /** Runs the script by the server's clock, ms. */
  run(sha: string, keys: readonly string[], args: readonly string[], now: number): [Uint8Array, Change[]] {
    const seconds = Math.floor(now / 1000);
    const bytes = this.#call("run", [seconds, Math.floor((now - seconds * 1000) * 1000), sha, keys, args]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    let at = 0;
    const next = (): Uint8Array => {
      const length = view.getUint32(at, true);
      at += 4 + length;
      return bytes.subarray(at - length, at);
    };
    const orNone = (value: Uint8Array): Uint8Array | undefined => (value.length === 0 ? undefined : value);
    const answer = next();
    const changes: Change[] = [];
    while (at < bytes.length) {
      changes.push({ key: read.decode(next()), before: orNone(next()), after: orNone(next()) });
    }
    return [answer, changes];
  }

  close(): void {
    this.#close();
  }

  /** Calls a function with numbers, strings and lists of strings. */
  #call(name: string, args: readonly (string | number | readonly string[])[]): Uint8Array {
    const raw = this.#raw;
    raw._lua_rawgeti(this.#lua, REGISTRY, this.#functions.get(name) as bigint);
    for (const arg of args) {
      if (typeof arg === "number") raw._lua_pushnumber(this.#lua, arg);
      else {
        const room = raw.HEAPU8.subarray(this.#buffer, this.#buffer + BUFFER_BYTES);
        const length = typeof arg === "string" ? write(room, 0, arg) : writeAll(room, arg);
        raw._lua_pushlstring(this.#lua, this.#buffer, length);
      }
    }
    const failed = raw._lua_pcallk(this.#lua, args.length, 1, 0, 0, 0) !== 0;
    const at = raw._lua_tolstring(this.#lua, -1, this.#length);
    const length = at === 0 ? 0 : new DataView(raw.HEAPU8.buffer).getUint32(this.#length, true);
    const result = raw.HEAPU8.slice(at, at + length);
    raw._lua_settop(this.#lua, -2);
    if (failed) throw new Error(read.decode(result));
    return result;
  }
}
