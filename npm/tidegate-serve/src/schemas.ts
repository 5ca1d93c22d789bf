/** The bodies of requests and responses: what is checked, what TypeScript sees, and what the OpenAPI document shows. */
import { z } from "zod";

const MAX_COUNT = 2 ** 40;
const COUNT = `a number of tokens from 0 to ${MAX_COUNT}`;
const LIMITS = "an array of 1 to 100 limits";
const text = (rule: string) => z.string({ error: rule });
const flag = (rule: string) => z.boolean({ error: rule });
const object = <F extends z.ZodRawShape>(fields: F) => z.strictObject(fields, { error: "an object" });

const KEY =
  "a string, or an array with a string or null for each part of the rule's `limit_keys`; omitted if the rule has none";

/** One limit and key. */
const target = {
  name: text("the name of a rule of the policies, a string").meta({ examples: ["api"] }),
  key: z
    .union([z.string(), z.array(z.string().nullable()).max(20)], { error: KEY })
    .optional()
    .meta({
      description: "Whose limit it is: the values of the rule's `limit_keys`, in order; null for one that is absent.",
      examples: ["203.0.113.7"],
    }),
  tier: text("the name of a tier of the rule, a string")
    .optional()
    .meta({ description: "The tier whose numbers apply; without one, those of the rule." }),
};

const count = {
  count: z.number(COUNT).min(0, COUNT).max(MAX_COUNT, COUNT).optional().meta({ description: "Tokens; default 1." }),
};

const reserve = {
  reserve: flag("true or false")
    .optional()
    .meta({ description: "Whether tokens may be owed, up to `maxReserved`: granted for `retryAt`." }),
};

export const Target = object(target).meta({ id: "Target" });
export const Counted = object({ ...target, ...count }).meta({ id: "Counted" });
export const Block = object({
  ...target,
  for: z.union([z.number(), z.string()], { error: "a number of ms, or a string such as 15m" }).meta({
    description: "How long: ms from 1 to 2^40, or a string with a unit.",
    examples: ["15m"],
  }),
}).meta({ id: "Block" });
export const NamedLimit = object({ ...target, ...count, ...reserve }).meta({
  id: "NamedLimit",
  description: "A limit by its name, and the key.",
});

export const RequestParts = z
  .strictObject(
    {
      address: text("the client's address, a string")
        .optional()
        .meta({ description: "Required if a rule reads `ip:address`. IPv6 addresses are grouped by /56." }),
      headers: z
        .record(z.string(), z.union([z.string(), z.array(z.string())], { error: "a string, or an array of strings" }), {
          error: "an object of headers, each a string",
        })
        .optional()
        .meta({ description: "The headers that rules read; names in any case." }),
      url: text("the URL or the path with its query, a string").optional(),
      claims: z
        .record(z.string(), z.unknown(), { error: "an object, the claims of a verified token" })
        .optional()
        .meta({ description: "The claims of a token that the caller has verified." }),
    },
    { error: "an object with any of address, headers, url, claims" },
  )
  .meta({ id: "RequestParts", examples: [{ address: "203.0.113.7", headers: { "x-api-key": "k1" }, url: "/a?b=1" }] });

export const OneRequest = z
  .strictObject({ request: RequestParts })
  .meta({ id: "OneRequest", description: "A request, which all matching rules decide, all or nothing." });

export const Several = object({
  limits: z.array(NamedLimit, LIMITS).min(1, LIMITS).max(100, LIMITS),
}).meta({ id: "Several", description: "Limits that are taken all or nothing." });

const instant = (description: string) => z.number().meta({ description: `${description} Epoch ms.` });
const headers = z.record(z.string(), z.string()).meta({
  description: "The rate-limit fields, for the response to the client; this response has them too.",
  examples: [{ "RateLimit-Policy": '"api";q=20;w=2', RateLimit: '"api";r=19;t=2' }],
});
const cause = z.string().optional().meta({ description: "Why the store failed." });
const degraded = z.literal(true).optional().meta({ description: "The store failed; decided without it." });
const retry = {
  retryAt: instant("Denied: the first ms at which it is granted. Reserved: when it is paid for.").optional(),
  retryAfter: z.number().optional().meta({ description: "The same as a wait in ms." }),
};

const outcome = {
  ok: z.boolean().meta({ description: "Granted." }),
  ...retry,
  reserved: z.boolean().meta({ description: "Granted for `retryAt`." }),
  reason: z.string().optional().meta({ description: "Why no wait helps." }),
};

const decision = {
  ...outcome,
  value: z.number().meta({ description: "Tokens after the call; negative while tokens are owed." }),
  ts: instant("The instant of `value`."),
  remaining: z.number().meta({ description: "`value` rounded down, at least 0." }),
  limit: z.number().meta({ description: "The limit's capacity, in tokens." }),
  resetAt: instant("When the limit is full again."),
  now: instant("The instant of the decision."),
  policy: z.looseObject({ name: z.string(), kind: z.string(), rate: z.number(), period: z.number() }),
  shadow: z.object(outcome).optional().meta({
    description: "What a rule in shadow mode decided. The decision itself allows the request, and has no fields.",
  }),
  degraded,
  cause,
};

const Decision = z.object(decision).meta({ id: "Decision" });
export const OneDecision = z.object({ ...decision, headers }).meta({ id: "OneDecision" });
export const AllDecision = z
  .object({ ok: z.boolean(), ...retry, decisions: z.array(Decision), degraded, cause, headers })
  .meta({ id: "AllDecision", description: "One decision per limit. Without a matching rule `decisions` is empty." });
export const State = z
  .object({
    name: z.string(),
    value: z.number().meta({ description: "Tokens at `ts`." }),
    ts: instant("The instant of `value`."),
    config: z.looseObject({ kind: z.string(), rate: z.number(), period: z.number() }),
  })
  .meta({ id: "State" });

export const Problem = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number(),
    detail: z.string(),
    field: z.string().optional().meta({ description: "The path of the field with a mistake: `limits[0].count`." }),
    rule: z.string().optional().meta({ description: "What the field must be." }),
    value: z.unknown().optional().meta({ description: "The value that was sent." }),
    remedy: z.string().optional(),
  })
  .meta({ id: "Problem", description: "RFC 9457." });
