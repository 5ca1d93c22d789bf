/** Frameworks whose rows of the guides are apps here. */
import { ANSWERS, MANIFEST, type Tool } from "./tool.ts";

/** The strict settings of `tests/packaging/frameworks.test.ts`. */
const STRICT =
  "--strict --noUncheckedIndexedAccess --exactOptionalPropertyTypes --noPropertyAccessFromIndexSignature " +
  "--module nodenext --target es2023 --types node --skipLibCheck --outDir out";
const framework = (name: string, does: string, source: string, more: Partial<Tool> = {}): Tool => ({
  name,
  does,
  group: "frameworks",
  app: "frameworks",
  files: MANIFEST,
  run: [`tsc ${source} ${STRICT} && node out/${source.replace(/ts$/, "js")}`],
  ...more,
});

export const FRAMEWORKS: readonly Tool[] = [
  {
    name: "TanStack Start 1",
    does: "middleware, server route, server function and page, built with Vite 8, run by srvx",
    group: "tanstack start",
    app: "tanstack",
    files: MANIFEST,
    node: "24.21",
    run: ["vite build --logLevel error"],
    serve: {
      command: "srvx --prod --static ../client --port $PORT dist/server/server.js",
      answers: { "/": ANSWERS },
      limited: ["/api/limited"],
      page: "/",
    },
  },
  framework("Hapi 21", "an extension of the parts in tidegate/http", "hapi.ts"),
  framework("AdonisJS 7", "a middleware of the parts in tidegate/http", "adonis.ts", { node: "24.21" }),
  framework("h3 2", "route and middleware", "h3.ts"),
  framework("Elysia 1", "an app that is mounted, and onRequest, on Node.js", "elysia.ts"),
  framework("GraphQL Yoga 5", "the whole endpoint", "yoga.ts"),
  framework("tRPC 11", "the whole endpoint, batches, and a procedure, called by its client", "trpc.ts"),
  framework("oRPC 1", "the whole endpoint, and a procedure, called by its client", "orpc.ts"),
  framework(
    "Powertools for AWS Lambda 2",
    "middleware of the router, called with events of API Gateway",
    "powertools.ts",
  ),
  framework("Feathers 5", "in front of the services, on Express and on Koa", "feathers.cts"),
  framework("LoopBack 4", "middleware of the application", "loopback.ts"),
  framework("Sails 1", "middleware in its order", "sails.cjs", {
    run: [`tsc client.ts ${STRICT} && cp sails.cjs out && node out/sails.cjs`],
  }),
];
