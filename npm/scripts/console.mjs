// The page of npm/tidegate-console: Vite bundles it, and this puts it into one document with the hashes of its script and style.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { once, root, run } from "./run.mjs";

const FOLDER = "npm/tidegate-console";
const PAGE = `${FOLDER}/src/generated/page.ts`;
const BUNDLED = `${FOLDER}/src/generated/bundled.json`;

const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/** The document, and the content security policy under which it works: it loads nothing, and nothing may frame it. */
function compose() {
  const dist = join(root, "target", "console");
  const assets = readdirSync(join(dist, "assets"));
  const only = (extension) => {
    const found = assets.filter((name) => name.endsWith(extension));
    if (found.length !== 1) throw new Error(`the page has ${found.length} files *${extension}, and must have one`);
    return readFileSync(join(dist, "assets", found[0]), "utf8").trim();
  };
  const [script, style] = [only(".js"), only(".css")];
  for (const [text, end] of [
    [script, "</script"],
    [style, "</style"],
  ]) {
    // A browser replaces \r, so that the hash would be another.
    if (text.includes(end) || text.includes("\r")) throw new Error(`the page's file has ${JSON.stringify(end)} or \\r`);
  }
  const html = readFileSync(join(dist, "index.html"), "utf8")
    .replace(/\s*<link rel="stylesheet"[^>]*>/, () => `<style>${style}</style>`)
    .replace(/\s*<script type="module"[^>]*><\/script>/, () => `<script type="module">${script}</script>`);
  const policy = [
    "default-src 'none'",
    `script-src ${hash(script)}`,
    `style-src ${hash(style)}`,
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  return { html, policy };
}

export function consolePage() {
  const own = ["page", "src/wire.ts"].map((path) => `${FOLDER}/${path}`);
  const inputs = [...own, "npm/scripts/console.mjs", "npm/scripts/uplot.mjs", "package-lock.json"];
  return once("console-page", { inputs, outputs: [PAGE, BUNDLED] }, async () => {
    await run("vite", ["build", `${FOLDER}/page`, "--logLevel", "warn"]);
    const { html, policy } = compose();
    mkdirSync(join(root, FOLDER, "src", "generated"), { recursive: true });
    const lines = [
      "// Written by npm/scripts/console.mjs.",
      `export const PAGE: string = ${JSON.stringify(html)};`,
      `export const POLICY: string = ${JSON.stringify(policy)};`,
    ];
    writeFileSync(join(root, PAGE), `${lines.join("\n")}\n`);
    // What is in the page, for THIRD-PARTY-LICENSES.
    const parts = JSON.parse(readFileSync(join(root, "target", "console", "licenses.json"), "utf8"));
    writeFileSync(join(root, BUNDLED), `${JSON.stringify(parts.map(({ name }) => name).sort())}\n`);
    console.log(`console: ${html.length} characters, ${gzipSync(html).length} bytes gzip`);
  });
}
