/** Reading and changing one key. */
import {
  type BlockOptions,
  type Decision,
  type Config,
  defineLimits,
  isInputError,
  isStoreError,
  type Limiter,
  project,
  type Store,
} from "tidegate";
import { json } from "./access.ts";
import { policyText } from "./counts.ts";
import type { ConsoleKeys } from "./keys.ts";
import { type KeyState, type Operation, OPERATIONS, type Switch } from "./wire.ts";

/** A change that the console is about to make. */
export interface ConsoleAction {
  readonly operation: Exclude<Operation, "read"> | "shadow";
  /** The limit's name. */
  readonly name: string;
  /** As the page shows it; absent for a limit that all share. */
  readonly key: string | undefined;
  /** Tokens to give or charge. */
  readonly count: number;
  /** Of a block, its length: ms, or a string such as `"15m"`. */
  readonly for: BlockOptions["for"] | undefined;
  /** Of `shadow`, the mode that the limit is put into. */
  readonly on: boolean | undefined;
  /** Of the person who makes it, for a record of who did what. */
  readonly request: Request;
}

/** Its promise is awaited. What it returns is ignored: `(action) => stream.write(…)` is one too. */
export type OnAction = (action: ConsoleAction) => unknown;

/** What puts limits into shadow mode, in which they deny nothing: the `policies` of `definePolicies`. */
export interface ShadowSwitches {
  /** Of the limits that have a switch. Read again each second: they may change. */
  readonly names: readonly string[];
  isShadow(name: string): boolean;
  /** Throws an `InputError` for a name that is not one of them. */
  setShadow(name: string, shadow: boolean): void;
}

/** By shape: names come from the page, and the limiter checks them. */
type AnyLimiter = Limiter<string, Store>;
/** By shape, too: absent is not `undefined`. */
type Target = { key: string; config: Config } | { key?: never; config: Config };

const FIELDS = new Set(["operation", "name", "key", "count", "for"]);
const SWITCH_FIELDS = new Set(["operation", "name", "on"]);

/** Nothing reads these limits: they only check the length of a block. */
const trial = defineLimits({ any: { kind: "fixed window", rate: 1, period: 1 } });

class BadRequest extends Error {}

/** What operations are carried out on. */
interface Operated {
  readonly limiter: AnyLimiter;
  readonly keys: ConsoleKeys;
  readonly shadow: ShadowSwitches | undefined;
  readonly onAction: OnAction;
}

/** Performs what the request's body has, and responds with the key's state, or the limit's switch. */
export async function operate(request: Request, operated: Operated): Promise<Response> {
  try {
    const body: unknown = await request.json().catch(() => undefined);
    if (Object(body).operation === "shadow") return json(200, await switchOver(request, body as object, operated));
    const { limiter, keys, onAction } = operated;
    const { operation, name, key, count, length } = requestOf(body);
    const target = keys.target(name, key) as Target;
    if (operation !== "read") {
      // `onAction` reports nothing that the limiter refuses: a check has the same names, keys and counts.
      const checked = await limiter.check(name, { ...target, count });
      // Where the store fails, a fraction of `onStoreError` would change a limit in memory. A reset repairs a corrupt state.
      if (operation !== "reset") stored(checked);
      if (operation === "block") trial.block("any", { for: length as BlockOptions["for"] });
      await onAction({ operation, name, key, count, for: length, on: undefined, request });
      if (operation === "reset") await limiter.reset(name, target);
      else if (operation === "block")
        stored(await limiter.block(name, { ...target, for: length as BlockOptions["for"] }));
      else stored(await limiter[operation](name, { ...target, count }));
    }
    return json(200, await stateOf(limiter, name, target, count));
  } catch (error) {
    if (error instanceof BadRequest || isInputError(error)) return json(400, { error: error.message });
    // The limiter logs it, once; a page that is open asks again each second.
    if (isStoreError(error)) return json(503, { error: error.message });
    console.error("tidegate-console: an operation failed", error);
    return json(500, { error: "The operation failed. The server's log has the reason." });
  }
}

/** Throws if a change did not reach the store: that is not a success, whatever `onStoreError` says. */
function stored({ degraded, cause }: Decision): void {
  if (degraded === true) throw cause;
}

async function switchOver(request: Request, body: object, { shadow, onAction }: Operated): Promise<Switch> {
  refuseUnknown(body, SWITCH_FIELDS);
  if (shadow === undefined) throw new BadRequest("this console has no switch for shadow mode: its option `shadow`");
  const { name, on } = body as Record<string, unknown>;
  if (typeof name !== "string") throw new BadRequest("`name` must be a string");
  if (typeof on !== "boolean") throw new BadRequest("`on` must be true or false");
  shadow.isShadow(name); // throws if there is no such limit
  await onAction({ operation: "shadow", name, key: undefined, count: 0, for: undefined, on, request });
  shadow.setShadow(name, on);
  return { name, on };
}

function refuseUnknown(body: object, fields: ReadonlySet<string>): void {
  const unknown = Object.keys(body).find((field) => !fields.has(field));
  if (unknown !== undefined) throw new BadRequest(`the body has no field ${JSON.stringify(unknown)}`);
}

/** The fields of a body, of the right types; the limiter checks their values. */
function requestOf(body: unknown) {
  if (typeof body !== "object" || body === null) throw new BadRequest("the body must be a JSON object");
  refuseUnknown(body, FIELDS);
  const { operation, name, key, count = 1, for: length } = body as Record<string, unknown>;
  if (!OPERATIONS.includes(operation as Operation)) {
    throw new BadRequest(`\`operation\` must be one of ${OPERATIONS.join(", ")}, shadow`);
  }
  if (typeof name !== "string") throw new BadRequest("`name` must be a string");
  if (typeof key !== "string" && key !== undefined) throw new BadRequest("`key` must be a string, or absent");
  if (typeof count !== "number") throw new BadRequest("`count` must be a number");
  if (typeof length !== "number" && typeof length !== "string" && length !== undefined) {
    throw new BadRequest("`for` must be a number of ms, or a string such as 15m");
  }
  return { operation: operation as Operation, name, key, count, length: length as BlockOptions["for"] | undefined };
}

/** The state of a key. It is two calls of the store: other requests may come between them. */
async function stateOf(limiter: AnyLimiter, name: string, target: Target, count: number): Promise<KeyState> {
  const [state, current, next] = await Promise.all([
    limiter.getValue(name, target),
    limiter.check(name, { ...target, count: 0 }),
    limiter.check(name, { ...target, count }),
  ]);
  const config: Config = state.config;
  return {
    now: current.now,
    value: project(state, config, current.now).value,
    capacity: current.limit,
    policy: policyText(config),
    resetAt: current.resetAt,
    next: { count, ok: next.ok, retryAt: next.retryAt ?? null },
    degraded: current.degraded === true || next.degraded === true,
  };
}
