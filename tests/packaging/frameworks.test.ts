/** A strict TypeScript app for each framework, in an empty folder that has the packed package and the framework. */
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { typeErrors } from "./checkers.ts";
import { forTests, install, output, root } from "./installed.ts";

const user = forTests(install());

const APPS = join(root, "tests/packaging/frameworks");

/** What each app has installed: the package in its folder, and the workspace's package that is linked there. */
const PACKAGES: Record<string, Record<string, string>> = {
  client: {},
  express4: { express: "express4", "@types/express": "@types/express4" },
  express: { express: "express", "@types/express": "@types/express" },
  fetch: {},
  fastify4: { fastify: "fastify4" },
  fastify: { fastify: "fastify" },
  hono: { hono: "hono" },
  koa: { koa: "koa", "@types/koa": "@types/koa" },
  nest: {
    "@nestjs/common": "@nestjs/common",
    "@nestjs/core": "@nestjs/core",
    "@nestjs/websockets": "@nestjs/websockets",
  },
  next: {},
  node: { connect: "connect", "@types/connect": "@types/connect" },
};

const OPTIONS = {
  module: "nodenext",
  lib: ["es2023", "dom"],
  types: ["node"],
  noPropertyAccessFromIndexSignature: true,
  experimentalDecorators: true,
  // Other packages' declarations; ours are checked below, by their names.
  skipLibCheck: true,
  // As in a package of a monorepo: what an app exports must have a type that a declaration can name.
  declaration: true,
};

/** What tsc reports of an app, which has the package itself or, in a monorepo, the one above it. */
function check(
  name: string,
  packages: Record<string, string>,
  text: string,
  has: "own" | "hoisted" = "own",
  options: object = OPTIONS,
): string {
  const folder = join(user.folder, name);
  mkdirSync(join(folder, "node_modules"), { recursive: true });
  for (const [as, from] of Object.entries({ ...packages, "@types/node": "@types/node" })) {
    mkdirSync(dirname(join(folder, "node_modules", as)), { recursive: true });
    symlinkSync(join(root, "node_modules", from), join(folder, "node_modules", as), "dir");
  }
  // A copy and not the one above it: types of peers are looked up from where the package is.
  if (has === "own")
    output("cp", ["-r", join(user.folder, "node_modules/tidegate"), join(folder, "node_modules/tidegate")]);
  user.write(`${name}/package.json`, JSON.stringify({ name, type: "module" }));
  user.write(`${name}/app.ts`, text);
  return typeErrors(folder, ["app.ts"], options);
}

describe("a strict app type-checks", () => {
  test.each(Object.entries(PACKAGES))("%s", (name, packages) => {
    const text = readFileSync(join(APPS, `${name.replace("4", "")}.txt`), "utf8");
    expect(check(name, packages, text)).toBe("");
  });

  test("there is an app for each file", () => {
    const files = readdirSync(APPS).map((file) => file.replace(".txt", ""));
    expect(Object.keys(PACKAGES)).toEqual(expect.arrayContaining(files));
  });
});

test("an app of Express 4 type-checks in a monorepo, where the package finds the types of another app's Express 5", () => {
  mkdirSync(join(user.folder, "node_modules/@types"), { recursive: true });
  symlinkSync(join(root, "node_modules/@types/express"), join(user.folder, "node_modules/@types/express"), "dir");
  const text = `import express from "express";
import { defineLimits, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/express";
const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: MINUTE } });
const app = express();
app.use(rateLimit(limits, { name: "api", key: (req) => req.get("x-user") ?? "anonymous" }));
app.get("/users/:id", rateLimit(limits, { name: "api" }), (req, res) => {
  res.send(req.params.id.padEnd(req.rateLimit.remaining));
});
`;
  expect(check("monorepo", PACKAGES["express4"] ?? {}, text, "hoisted")).toBe("");
});

/** The versions of @fastify/rate-limit, by the name of that and of its Fastify in the workspace. */
const PLUGINS = [
  ["@fastify/rate-limit", "fastify"],
  ["fastify-rate-limit9", "fastify4"],
] as const;

describe.each(PLUGINS)(
  "an app with %s on %s type-checks with all declarations, where the plugin is imported",
  (plugin, fastify) => {
    test.each([
      ["first", (one: string, own: string) => one + own],
      ["last", (one: string, own: string) => own + one],
    ])("%s", (order, imports) => {
      const own = 'import { fastifyRateLimitStore } from "tidegate/fastify";\n';
      const text = `${imports('import limit from "@fastify/rate-limit";\n', own)}import Fastify from "fastify";
const app = Fastify();
await app.register(limit, { max: 9, timeWindow: 1000, store: fastifyRateLimitStore() });
app.get("/", { config: { rateLimit: { max: 1, keyGenerator: (request) => request.ip } } }, () => "hello");
`;
      const name = `${fastify}-${order}`;
      const scope = join(user.folder, name, "node_modules/@fastify");
      mkdirSync(scope, { recursive: true });
      // A copy: by a link it would extend the types of the workspace's Fastify.
      output("cp", ["-r", join(root, "node_modules", plugin), join(scope, "rate-limit")]);
      expect(check(name, { fastify }, text, "own", { ...OPTIONS, skipLibCheck: false })).toBe("");
    });
  },
);

test("a misspelt name is an error about the name", () => {
  const text = `import { defineLimits } from "tidegate";
import { rateLimit } from "tidegate/express";
const limits = defineLimits({ api: { kind: "token bucket", rate: 1, period: 1000 } });
rateLimit(limits, { name: "apo" });
`;
  const found = check("misspelt", PACKAGES["express"] ?? {}, text);
  expect(found).toMatch(/Type '"apo"' is not assignable to type '"api"/);
  expect(found).not.toContain("config");
});
