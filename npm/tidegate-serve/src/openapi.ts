/** The OpenAPI document, from the table of routes and the schemas that check their bodies. */
import { PROBLEM_JSON } from "tidegate/http";
import { z } from "zod";
import { type Route, ROUTES } from "./routes.ts";
import { Problem } from "./schemas.ts";

const at = (id: string): string => `#/components/schemas/${id}`;
const idOf = (type: z.ZodType): string => String(z.globalRegistry.get(type)?.id);

/** The schemas with an `id`, which refer to each other. */
function components(): Record<string, unknown> {
  const { schemas } = z.toJSONSchema(z.globalRegistry, { uri: at });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => {
      // The document declares the dialect, and an `$id` would change what references are relative to.
      const { $schema, $id, id: _, ...rest } = schema;
      return [id, rest];
    }),
  );
}

function oneOf(types: readonly z.ZodType[]): object {
  const refs = types.map((type) => ({ $ref: at(idOf(type)) }));
  return refs.length === 1 ? (refs[0] as object) : { oneOf: refs };
}

const json = (type: string, types: readonly z.ZodType[], example?: object) => ({
  content: { [type]: { schema: oneOf(types), ...(example === undefined ? {} : { example }) } },
});
const problem = (description: string) => ({ description, ...json(PROBLEM_JSON, [Problem]) });

/** The parameters of a query, from the fields of the body that stands for it. */
function parameters(body: z.ZodType, schemas: Record<string, unknown>): object[] {
  const { properties, required } = schemas[idOf(body)] as {
    properties: Record<string, { description?: string }>;
    required: readonly string[];
  };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    // A query has no null: a repeated parameter is an array.
    schema: name === "key" ? { type: "array", items: { type: "string" } } : schema,
  }));
}

function operation(route: Route, schemas: Record<string, unknown>): object {
  const { id, summary, admin, takes, answers, example, method } = route;
  const input =
    method === "get"
      ? { parameters: takes.flatMap((type) => parameters(type, schemas)) }
      : { requestBody: { required: true, ...json("application/json", takes, example) } };
  return {
    operationId: id,
    summary,
    ...input,
    ...(admin ? { security: [{ token: [] }] } : {}),
    responses: {
      200: { description: "The answer; a decision's has the rate-limit fields", ...json("application/json", answers) },
      400: problem("The request has a mistake: `field`, `rule`, `value` and `remedy` name it"),
      ...(method === "post"
        ? {
            413: problem("The body is larger than --body-limit"),
            415: problem("The body is not application/json, or is compressed"),
          }
        : {}),
      // A decision without the store has 200, and `degraded`.
      ...(admin
        ? {
            401: problem("The token of the administrator is absent or wrong"),
            503: problem("The store failed, or did not answer in time"),
          }
        : {}),
    },
  };
}

/** The document of a service of this version, with the routes for the administrator if they exist. */
export function openapi(version: string, admin: boolean): object {
  const schemas = components();
  const routes = ROUTES.filter((route) => admin || !route.admin);
  return {
    openapi: "3.1.0",
    info: {
      title: "Tidegate",
      version,
      description: "Decisions of rate limits, from policies.",
      license: { name: "MIT", identifier: "MIT" },
    },
    paths: Object.fromEntries(routes.map((route) => [route.path, { [route.method]: operation(route, schemas) }])),
    components: { schemas, ...(admin ? { securitySchemes: { token: { type: "http", scheme: "bearer" } } } : {}) },
  };
}
