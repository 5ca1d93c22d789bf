/** Every route of the API: what it takes and answers. The server and the OpenAPI document are made from this table. */
import { type AllDecision, type BlockOptions, type Decision, isInputError } from "tidegate";
import { rateLimitHeaders } from "tidegate/http";
import type { z } from "zod";
import { messagesOf } from "tidegate/cli";
import type { KnownLimit, PolicyFile } from "./policies.ts";
import { RequestError } from "./problem.ts";
import * as schemas from "./schemas.ts";

/** The body of an answer, and its rate-limit fields. */
interface Answer {
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

/** A route that takes JSON, or for GET the parameters of the query. */
export interface Route<S extends z.ZodType = z.ZodType> {
  readonly method: "get" | "post";
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Whether it requires the token of the administrator. */
  readonly admin: boolean;
  /** The bodies that it takes; of two, the second one has a `request`. */
  readonly takes: readonly S[];
  readonly answers: readonly z.ZodType[];
  /** A body that it takes, for the document and for the remedy of a mistake. */
  readonly example: object;
  run(body: z.infer<S>, file: PolicyFile): Promise<Answer>;
}

/** A route: unless stated otherwise, a POST to its id, for the administrator. Its `run` is typed by what it takes. */
const routeOf = <S extends z.ZodType>(
  of: Omit<Route<S>, "method" | "path" | "admin"> & Partial<Pick<Route<S>, "method" | "path" | "admin">>,
): Route => ({ method: "post", path: `/v1/${of.id}`, admin: true, ...of });

/** The decision as JSON: the error of a failed store as its messages. */
const asJson = <T extends { cause?: unknown }>(decision: T): T =>
  decision.cause === undefined ? decision : { ...decision, cause: messagesOf(decision.cause) };

function one(decision: Decision): Answer {
  const headers = rateLimitHeaders(decision);
  return { body: Object.assign({}, asJson(decision), { headers }), headers };
}

/** The state that an administrator's change left. One that did not reach the store is not a success. */
function changed(decision: Decision): Answer {
  if (decision.degraded === true) throw decision.cause;
  return one(decision);
}

/** The limit if it is changed: by a fraction of `onStoreError`, the change would apply to the limit in memory. */
const inStore = ({ config, ...target }: KnownLimit): KnownLimit => ({
  ...target,
  config: { ...config, onStoreError: "deny" },
});

function all(decided: AllDecision): Answer {
  const headers = decided.decisions.length === 0 ? {} : rateLimitHeaders(decided);
  return { body: { ...asJson(decided), decisions: decided.decisions.map(asJson), headers }, headers };
}

/** The answer to a request that no rule matches. */
const UNLIMITED: AllDecision = { ok: true, retryAt: undefined, retryAfter: undefined, decisions: [] };

/** The value at the path of a mistake, and the path as text. */
function at(body: unknown, path: readonly PropertyKey[]): { field: string; value: unknown } {
  let value: unknown = body;
  let field = "";
  for (const step of path) {
    value = (value as Record<PropertyKey, unknown> | undefined | null)?.[step];
    field += typeof step === "number" ? `[${step}]` : `${field === "" ? "" : "."}${String(step)}`;
  }
  return { field, value };
}

const CLIENT = { name: "api", key: "203.0.113.7" };
const COUNTED = { ...CLIENT, count: 1 };

/** What to send instead of a request that has a mistake. */
const instead = ({ method, example }: Route): string =>
  method === "get"
    ? `Send a query such as ?${new URLSearchParams(CLIENT)}`
    : `Send a body such as ${JSON.stringify(example)}`;

/** The body, checked. Throws a {@link RequestError} for the first mistake. */
function checked(route: Route, body: unknown): unknown {
  const schema = route.takes.at("request" in Object(body) ? -1 : 0) as z.ZodType;
  const { success, data, error } = schema.safeParse(body);
  if (success) return data;
  const [issue] = error.issues as [z.core.$ZodIssue, ...z.core.$ZodIssue[]];
  const unknown = issue.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
  const { field, value } = at(body, [...issue.path, ...unknown]);
  const beside = issue.path.length === 0 && schema !== route.takes[0];
  const absent = beside ? "absent with `request`" : "absent: there is no such field";
  const rule = unknown.length > 0 ? absent : issue.message;
  const remedy = `${instead(route)}; GET /v1/openapi.json has all fields.`;
  throw new RequestError({ field: field === "" ? "body" : field, rule, value: field === "" ? body : value, remedy });
}

/** Runs a route on a body. A limiter's `InputError` is a mistake of the request. */
export async function answerOf(route: Route, body: unknown, file: PolicyFile): Promise<Answer> {
  try {
    return await route.run(checked(route, body), file);
  } catch (error) {
    if (!isInputError(error)) throw error;
    const { field, rule, value } = error;
    throw new RequestError({ field, rule, value, remedy: `${instead(route)}.` });
  }
}

/** `/v1/decide` and `/v1/check`: one limit by its name, or all rules that match a request. */
function deciding(id: "decide" | "check", summary: string): Route {
  const [single, several] = id === "decide" ? (["limit", "limitAll"] as const) : (["check", "checkAll"] as const);
  return routeOf({
    id,
    summary,
    admin: false,
    takes: [schemas.NamedLimit, schemas.OneRequest],
    answers: [schemas.OneDecision, schemas.AllDecision],
    example: COUNTED,
    async run(body, file) {
      if (!("request" in body)) return one(await file.limiter[single](body.name, file.callOf(body)));
      const taken = file.select(body.request);
      return all(taken.length === 0 ? UNLIMITED : await file.limiter[several](taken));
    },
  });
}

const decideAll = routeOf({
  path: "/v1/decide-all",
  id: "decideAll",
  summary: "Takes from several limits, all or nothing",
  admin: false,
  takes: [schemas.Several],
  answers: [schemas.AllDecision],
  example: { limits: [CLIENT] },
  async run({ limits }, file) {
    const taken = limits.map((limit, i) => ({ ...file.callOf(limit, `limits[${i}].`), name: limit.name }));
    return all(await file.limiter.limitAll(taken));
  },
});

/** `/v1/give` and `/v1/charge`. */
function correcting(id: "give" | "charge", summary: string): Route {
  return routeOf({
    id,
    summary,
    takes: [schemas.Counted],
    answers: [schemas.OneDecision],
    example: COUNTED,
    async run({ count = 1, ...target }, file) {
      const { name, ...call } = inStore(file.targetOf(target));
      return changed(await file.limiter[id](name, { ...call, count }));
    },
  });
}

const block = routeOf({
  id: "block",
  summary: "Denies every request on a limit and key for a time; reset ends it",
  takes: [schemas.Block],
  answers: [schemas.OneDecision],
  example: { ...CLIENT, for: "15m" },
  async run({ for: length, ...target }, file) {
    const { name, ...call } = inStore(file.targetOf(target));
    return changed(await file.limiter.block(name, { ...call, for: length as BlockOptions["for"] }));
  },
});

/** The state of a limit and key, which `/v1/state` reads and `/v1/reset` answers with. */
async function stateOf(file: PolicyFile, target: KnownLimit): Promise<Answer> {
  const { name, ...call } = target;
  const { value, ts, config } = await file.limiter.getValue(name, call);
  return { body: { name, value, ts, config }, headers: {} };
}

const reset = routeOf({
  id: "reset",
  summary: "Resets a limit on a key: it is full",
  takes: [schemas.Target],
  answers: [schemas.State],
  example: CLIENT,
  async run(body, file) {
    const target = file.targetOf(body);
    const { name, ...call } = target;
    await file.limiter.reset(name, call);
    return stateOf(file, target);
  },
});

/** A query has no null. */
const OF_KEY =
  "Repeat `key` for each value, in order, and omit it if there is none. For a key with an absent value use POST /v1/check with a count of 0.";

const state = routeOf({
  method: "get",
  id: "state",
  summary: "The state of a limit on a key; `key` is repeated for each part, and absent for none",
  takes: [schemas.Target],
  answers: [schemas.State],
  example: CLIENT,
  run: async (body, file) => stateOf(file, file.targetOf(body, "", OF_KEY)),
});

/** Every route that takes and answers JSON. */
export const ROUTES: readonly Route[] = [
  deciding("decide", "Takes tokens, or returns when they can be taken. A denial is a decision too: its status is 200"),
  deciding("check", "What decide would answer; takes nothing"),
  decideAll,
  reset,
  correcting("give", "Returns unused tokens to a limit"),
  correcting("charge", "Takes tokens that are already spent; never denied"),
  block,
  state,
];
