/** How the limit is used: by a call, or by the middleware of a framework. */

interface Framework {
  title: string;
  /** Lines of imports. */
  imports: string[];
  /** Lines after the limits; `options` are those of the middleware. */
  lines: (options: string) => string[];
}

const MIDDLEWARE = {
  express: {
    title: "Express",
    imports: ['import express from "express";', 'import { rateLimit } from "tidegate/express";'],
    lines: (options) => ["const app = express();", `app.use(rateLimit(limits, ${options}));`],
  },
  fastify: {
    title: "Fastify",
    imports: ['import Fastify from "fastify";', 'import { rateLimit } from "tidegate/fastify";'],
    lines: (options) => ["const app = Fastify();", `app.addHook("onRequest", rateLimit(limits, ${options}));`],
  },
  hono: {
    title: "Hono",
    imports: ['import { Hono } from "hono";', 'import { rateLimit } from "tidegate/hono";'],
    lines: (options) => ["const app = new Hono();", `app.use(rateLimit(limits, ${options}));`],
  },
  koa: {
    title: "Koa",
    imports: ['import Koa from "koa";', 'import { rateLimit } from "tidegate/koa";'],
    lines: (options) => ["const app = new Koa();", `app.use(rateLimit(limits, ${options}));`],
  },
  nest: {
    title: "NestJS",
    imports: ['import { Module } from "@nestjs/common";', 'import { RateLimitModule } from "tidegate/nest";'],
    lines: (options) => [
      `@Module({ imports: [RateLimitModule.forRoot({ limiter: limits, ${options.slice(2)})] })`,
      "export class AppModule {}",
    ],
  },
  next: {
    title: "Next.js",
    imports: ['import { rateLimit } from "tidegate/next";'],
    lines: (options) => [
      "// app/api/hello/route.ts, behind one proxy",
      `export const GET = rateLimit(limits, ${options.replace(" }", ", client: { trust: 1 } }")}, () => new Response("hello"));`,
    ],
  },
  node: {
    title: "node:http",
    imports: ['import { createServer } from "node:http";', 'import { rateLimit } from "tidegate/node";'],
    lines: (options) => [
      `createServer(rateLimit(limits, ${options}, (_request, response) => response.end("hello"))).listen(3000);`,
    ],
  },
  fetch: {
    title: "fetch handler",
    imports: ['import { rateLimit } from "tidegate/fetch";'],
    lines: (options) => [
      "// Deno and Bun report the client's address; elsewhere give a key",
      `export default { fetch: rateLimit(limits, ${options}, (_request: Request) => new Response("hello")) };`,
    ],
  },
} as const satisfies Record<string, Framework>;

export type FrameworkName = "call" | keyof typeof MIDDLEWARE;
export const FRAMEWORK_NAMES = ["call", ...Object.keys(MIDDLEWARE)] as FrameworkName[];
export const frameworkOf = (name: FrameworkName): string => (name === "call" ? "A call" : MIDDLEWARE[name].title);

/** The lines of imports, and those after the limits. `waits`: the store returns promises. */
export function usage(name: FrameworkName, reserve: boolean, waits: boolean): { imports: string[]; lines: string[] } {
  if (name !== "call") {
    const { imports, lines }: Framework = MIDDLEWARE[name];
    return { imports, lines: lines(reserve ? '{ name: "api", reserve: true }' : '{ name: "api" }') };
  }
  const call = reserve ? '{ key: "user 7", reserve: true }' : '{ key: "user 7" }';
  const result = reserve
    ? `if (ok) console.log(\`granted: run it in \${retryAfter ?? 0} ms\`);`
    : `if (!ok) console.log(\`denied: again in \${retryAfter} ms\`);`;
  return {
    imports: [],
    lines: [`const { ok, retryAfter } = ${waits ? "await " : ""}limits.limit("api", ${call});`, result],
  };
}
