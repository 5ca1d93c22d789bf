/** What the compiler reports of a misspelt limit, in every adapter. */
import { join } from "node:path";
import ts from "typescript";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../../../..");
const FILE = join(import.meta.dirname, "misspelt-snippet.ts");
/** One call per line, after the imports. */
const CALLS = [
  'express.rateLimit(limits, { name: "serach" });',
  'express.rateLimit(limits, { name: "serach", key: (request) => request.ip ?? "" });',
  'express.rateLimit(limits, { limits: [{ name: "serach" }] });',
  'fastify.rateLimit(limits, { name: "serach" });',
  'fetched.rateLimit(limits, { name: "serach" }, () => new Response());',
  'hono.rateLimit(limits, { name: "serach" });',
  'koa.rateLimit(limits, { name: "serach" });',
  'nest.rateLimitGuard(limits, { name: "serach" });',
  'nest.RateLimitModule.forRoot({ limiter: limits, name: "serach" });',
  'next.rateLimit(limits, { name: "serach", key: "k" }, () => new Response());',
  'next.rateLimitAction(limits, { name: "serach", key: "k" }, async () => 1);',
  'node.rateLimit(limits, { name: "serach" }, () => {});',
  'limits.limit("serach");',
  'limits.limitAll([{ name: "serach" }, { name: "api" }]);',
  'limits.checkAll([{ name: "serach", key: "k" }]);',
];
/** The other mistakes that the compiler reports in the limiter's own words, with what its report has. */
const MISTAKES: Readonly<Record<string, RegExp>> = {
  'limits.block("api", { key: "k" });': /Property 'for' is missing/,
  'limits.limit("api", { key: maybe });': /Type 'undefined' is not assignable to type 'string'/,
  'limits.limitAll([{ name: "api", key: maybe }]);': /Type 'undefined' is not assignable to type 'string'/,
};
const SNIPPET = `import { defineLimits } from "../../src/index.ts";
import * as express from "../../src/middleware/express.ts";
import * as fastify from "../../src/middleware/fastify.ts";
import * as fetched from "../../src/middleware/fetch.ts";
import * as hono from "../../src/middleware/hono.ts";
import * as koa from "../../src/middleware/koa.ts";
import * as nest from "../../src/middleware/nest.ts";
import * as next from "../../src/middleware/next.ts";
import * as node from "../../src/middleware/node.ts";
const limits = defineLimits({ search: { kind: "token bucket", rate: 1, period: "1m" }, api: { kind: "token bucket", rate: 1, period: "1m" } });
${CALLS.join("\n")}
declare const maybe: string | undefined;
${Object.keys(MISTAKES).join("\n")}
`;

test("a misspelt limit is reported by its name, with the right one; other mistakes by what is wrong", {
  timeout: 240_000,
}, () => {
  const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent({ ...config, include: [], files: [FILE] }, ts.sys, ROOT);
  const host = ts.createCompilerHost(options);
  const [readFile, fileExists] = [host.readFile.bind(host), host.fileExists.bind(host)];
  host.readFile = (path) => (path === FILE ? SNIPPET : readFile(path));
  host.fileExists = (path) => path === FILE || fileExists(path);
  const program = ts.createProgram([FILE], { ...options, noEmit: true, skipLibCheck: true }, host);
  const source = program.getSourceFile(FILE) as ts.SourceFile;
  const lines = SNIPPET.split("\n");
  const reports = program
    .getSemanticDiagnostics(source)
    .map(({ start, messageText }) => [
      lines[source.getLineAndCharacterOfPosition(start as number).line] as string,
      ts.flattenDiagnosticMessageText(messageText, "\n"),
    ]);
  const found = reports.filter(([line]) => CALLS.includes(line as string));
  const message = (call: string) =>
    call.startsWith("limits.limit(")
      ? expect.stringContaining('"serach"')
      : expect.stringMatching(/"serach".*Did you mean '"search"'/s);
  expect(found).toEqual(CALLS.map((call) => [call, message(call)]));
  const mistakes = reports.filter(([line]) => !CALLS.includes(line as string));
  expect(mistakes).toEqual(Object.entries(MISTAKES).map(([line, text]) => [line, expect.stringMatching(text)]));
  // The limiter's own calls also take a limit that is not defined, with its `config`.
  const others = found.filter(([call]) => !call?.startsWith("limits."));
  expect(others.filter(([, text]) => text?.includes("is missing"))).toEqual([]);
});
