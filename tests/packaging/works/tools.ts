import { FRAMEWORKS } from "./frameworks.ts";
import { ANSWERS, MANIFEST, type Tool } from "./tool.ts";

const bundler = (name: string, does: string, run: readonly string[], more: Partial<Tool> = {}): Tool => ({
  name,
  does,
  group: "bundlers",
  app: "plain",
  run,
  ...more,
});
const program = (name: string, does: string, ...run: string[]): Tool => bundler(name, does, run);
/** What was made is moved to a folder without `node_modules`, as a function's archive is. */
const apart = (made: string, file: string): string =>
  `d=$(mktemp -d) && trap "rm -r $d" EXIT && mv ${made} $d && node $d/${file}`;
const alone = (file: string): string => apart(file, file);

/** What SvelteKit's adapter for Node.js builds. */
const KIT = {
  command: "node build/index.js",
  answers: { "/limit": ANSWERS, "/built": "built" },
  limited: ["/limited"],
};
/** What Nitro builds for Node.js, with a page. */
const NITRO = {
  command: "node .output/server/index.mjs",
  answers: { "/api/limit": ANSWERS, "/": ANSWERS },
  limited: ["/api/limited"],
  page: "/",
};

const next = (version: 15 | 16, builder: string, run: string): Tool => ({
  name: `Next.js ${version}, ${builder}`,
  does: `node and edge route, ${version === 15 ? "edge middleware" : "proxy"}, rateLimit and rateLimitAction in each, server-rendered client component with useRateLimit, hydrated`,
  group: `next ${version}`,
  app: "next",
  files: {
    [version === 15 ? "middleware.js" : "proxy.js"]: `
      import { NextResponse } from "next/server";
      import { rateLimit } from "tidegate/next";
      import { answers, limits } from "./answers.js";
      const limited = rateLimit(limits, { name: "send", client: { trust: 1 } }, () => NextResponse.next());
      export function ${version === 15 ? "middleware" : "proxy"}(request) {
        return request.nextUrl.pathname === "/between" ? NextResponse.json(answers()) : limited(request);
      }
      export const config = { matcher: ["/between", "/api/behind"] };`,
  },
  run: [run],
  serve: {
    command: "next start -p $PORT",
    answers: {
      "/api/node": ANSWERS,
      "/api/edge": ANSWERS,
      "/between": ANSWERS,
      "/": "remaining 7",
      "/api/shared": "remaining 1",
      "/shared": "remaining 0", // a page: the same limiter, through globalThis
    },
    limited: ["/api/limited/a", "/api/limited/b", "/api/behind"],
    page: "/",
  },
});

const jest = (version: 29 | 30, does: string, run: string, more: Partial<Tool> = {}): Tool => ({
  name: `Jest ${version}, ${does}`,
  does: "a test file, limits in memory",
  group: `jest ${version}`,
  app: "jest",
  run: [`${run} && echo "${ANSWERS}"`],
  ...more,
});

const reactRouter = (
  version: 7 | 8,
  group: Tool["group"],
  server: string,
  node?: Exclude<Tool["node"], undefined>,
): Tool => ({
  name: `React Router ${version}`,
  does: "server-rendered route with useRateLimit, resource route, rateLimit",
  group,
  app: "react-router",
  // Its server runtime is found by name in the app's manifest.
  files: {
    "package.json": JSON.stringify({
      name: "app",
      private: true,
      type: "module",
      dependencies: { "@react-router/node": server, isbot: "5.2.3" },
    }),
  },
  ...(node && { node }),
  run: ["react-router build"],
  serve: {
    command: "react-router-serve ./build/server/index.js",
    answers: { "/limit": ANSWERS, "/": "remaining 7" },
    limited: ["/limited"],
  },
});

const oldNode = (node: "20.9" | "22.11", does: string): Tool => ({
  name: `Node.js ${node}`,
  does,
  group: "nodes",
  app: "plain",
  node,
  run: ["node program.mjs", "node required.cjs"],
});

/**
 * The tools that `works.test.ts` builds and runs the packed tarball with. `node tests/packaging/works/keep.mjs` keeps what its last
 * run found in results.json, from which the table of the site is generated.
 */
export const TOOLS: readonly Tool[] = [
  oldNode("20.9", "import and require"),
  oldNode("22.11", "import and require, without support for require of ES modules"),
  program("ts-node 10", "CommonJS, moduleResolution node", "ts-node program.ts"),
  program(
    "esbuild, Node.js",
    "CommonJS bundle",
    "esbuild server.mjs --bundle --platform=node --outfile=out.cjs --log-level=warning",
    alone("out.cjs"),
  ),
  program(
    "esbuild, Node.js, ES module",
    "ES module bundle",
    "esbuild server.mjs --bundle --platform=node --format=esm --outfile=out.mjs --log-level=warning",
    alone("out.mjs"),
  ),
  program(
    "esbuild, AWS Lambda",
    "one minified file for Node.js 20, called as a handler",
    "esbuild lambda.mjs --bundle --minify --platform=node --target=node20 --outfile=lambda.cjs",
    "node -e 'require(\"./lambda.cjs\").handler().then(console.log)'",
  ),
  {
    name: "@vercel/nft 1.11",
    does: "the files of a function as Vercel traces them, run apart",
    group: "functions",
    app: "plain",
    node: "22.20",
    // It traces from the folder where node_modules is.
    run: [
      `app=$(basename $PWD) && cd .. && rm -rf dist && nft build $app/server.mjs && ${apart("dist", "dist/$app/server.mjs")}`,
    ],
  },
  {
    name: "@netlify/zip-it-and-ship-it 16",
    does: "a function as Netlify packs it, run apart",
    group: "functions",
    app: "plain",
    node: "22.20",
    run: [
      "mkdir functions && mv server.mjs functions && zip-it-and-ship-it --archive-format none functions out",
      apart("out", "out/server/server.js"),
    ],
  },
  {
    name: "Fastly Compute",
    does: "limits in memory, called while js-compute builds the program",
    group: "fastly compute",
    app: "plain",
    run: ["js-compute-runtime program.mjs built.wasm"],
  },
  bundler("esbuild, browser", "script of a page", ["esbuild program.mjs --bundle --minify --outfile=built.js"], {
    page: "built.js",
  }),
  program(
    "webpack 5, Node.js",
    "CommonJS bundle",
    "webpack ./server.mjs --mode production --target node20 -o dist",
    "mv dist/main.js out.cjs",
    alone("out.cjs"),
  ),
  bundler("webpack 5, browser", "script of a page", ["webpack ./program.mjs --mode production -o dist"], {
    page: "dist/main.js",
  }),
  program(
    "rspack 2, Node.js",
    "CommonJS bundle",
    "rspack build -c rspack.config.mjs --env server",
    "mv dist/main.js out.cjs",
    alone("out.cjs"),
  ),
  bundler("rspack 2, browser", "script of a page", ["rspack build -c rspack.config.mjs"], {
    page: "dist/main.js",
  }),
  program(
    "Rollup 4, Node.js",
    "ES module bundle",
    "rollup server.mjs -p 'node-resolve={exportConditions:[\"node\"]}' -p commonjs -o out.mjs --silent",
    alone("out.mjs"),
  ),
  bundler(
    "Rollup 4, browser",
    "script of a page",
    ["rollup program.mjs -p 'node-resolve={browser:true}' -o built.js --silent"],
    { page: "built.js" },
  ),
  bundler("Vite 8", "script of a page", ["vite build --logLevel error"], { page: "dist/assets/index.js" }),
  bundler("Vite 7", "script of a page", ["node ../node_modules/vite7/bin/vite.js build --logLevel error"], {
    page: "dist/assets/index.js",
  }),
  program(
    "Vite 8, server",
    "SSR bundle, the package inside",
    "vite build --ssr server.mjs --outDir ssr --logLevel error",
    "mv ssr/assets/server.js out.mjs",
    alone("out.mjs"),
  ),
  program(
    "Vite 7, server",
    "SSR bundle, the package inside",
    "node ../node_modules/vite7/bin/vite.js build --ssr server.mjs --outDir ssr --logLevel error",
    "mv ssr/assets/server.js out.mjs",
    alone("out.mjs"),
  ),
  bundler(
    "Parcel 2",
    "script of a page, with its setting packageExports",
    [
      "parcel build parcel.html --no-source-maps --no-cache --no-content-hash --dist-dir dist --log-level error && mv dist/*.js built.js",
    ],
    { page: "built.js", files: { "package.json": '{ "@parcel/resolver-default": { "packageExports": true } }' } },
  ),
  program("Vitest 4", "a test file, limits in memory", `vitest run vitest.test.mjs && echo "${ANSWERS}"`),
  program("Bun 1.4, bundle", "for Node.js", "$BUN build server.mjs --target=node --outfile=out.mjs", alone("out.mjs")),
  program("Bun 1.4", "import and require", "$BUN program.mjs", "$BUN required.cjs"),
  program("Deno 2.9", "npm package in node_modules", "deno run --no-remote --cached-only program.mjs"),
  next(15, "webpack", "next build"),
  next(16, "webpack", "next build --webpack"),
  next(16, "Turbopack", "next build"),
  jest(29, "CommonJS", "jest limits.test.cjs"),
  jest(29, "ES modules", "NODE_OPTIONS=--experimental-vm-modules jest limits.test.mjs"),
  jest(29, "jsdom", "jest --env=jsdom hook.test.cjs", { does: "useRateLimit in jsdom" }),
  jest(30, "CommonJS", "jest limits.test.cjs"),
  jest(30, "ES modules", "NODE_OPTIONS=--experimental-vm-modules jest limits.test.mjs"),
  jest(30, "jsdom", "jest --env=jsdom hook.test.cjs", { does: "useRateLimit in jsdom" }),
  {
    name: "SvelteKit 2",
    does: "server endpoint and rateLimit, built with adapter-node",
    group: "sveltekit",
    app: "kit",
    files: MANIFEST,
    run: ["vite build --logLevel error"],
    serve: KIT,
  },
  {
    name: "SvelteKit 3",
    does: "server endpoint and rateLimit, built with adapter-node",
    group: "sveltekit 3",
    app: "kit",
    files: {
      ...MANIFEST,
      "vite.config.js": `
      import adapter from "@sveltejs/adapter-node";
      import { sveltekit } from "@sveltejs/kit/vite";
      export default { plugins: [sveltekit({ adapter: adapter() })] };`,
    },
    node: "24.21",
    run: ["rm svelte.config.js && vite build --logLevel error"],
    serve: KIT,
  },
  reactRouter(7, "react router", "7.18.4"),
  reactRouter(8, "react router 8", "8.4.0", "24.21"),
  {
    name: "Astro 7",
    does: "server endpoint, rateLimit and server-rendered page, built with @astrojs/node",
    group: "astro",
    app: "astro",
    files: MANIFEST,
    node: "22.20",
    run: ["astro build --silent"],
    serve: {
      command: "node dist/server/entry.mjs",
      answers: { "/limit": ANSWERS, "/": ANSWERS, "/built": "built" },
      limited: ["/limited"],
    },
  },
  {
    name: "Nuxt 4",
    does: "server route, rateLimit, and a server-rendered page that decides again in the browser",
    group: "nuxt",
    app: "nuxt",
    files: MANIFEST,
    node: "22.20",
    run: ["nuxt build --logLevel silent"],
    serve: NITRO,
  },
  {
    name: "SolidStart 2",
    does: "middleware, API route, rateLimit, and a server-rendered page that decides again in the browser, built with Nitro 3",
    group: "solid start",
    app: "solid",
    files: MANIFEST,
    node: "24.21",
    run: ["vite build --logLevel error"],
    serve: NITRO,
  },
  {
    name: "Nitro 3, Cloudflare Workers",
    does: "routes with limits in memory, rateLimit and policies, built with the preset cloudflare_module, run by wrangler",
    group: "nitro on workers",
    app: "nitro",
    files: MANIFEST,
    node: "24.21",
    run: ["nitro build"],
    serve: {
      command: "wrangler dev --local --ip 127.0.0.1 --port $PORT --inspector-port 0",
      answers: { "/api/limit": ANSWERS },
      limited: ["/api/limited"],
    },
  },
  ...FRAMEWORKS,
  {
    name: "pnpm 10",
    does: "install, import and require",
    group: "managers",
    app: "plain",
    files: { "package.json": "@tarball:pnpm" },
    run: ["pnpm install --offline --ignore-scripts --ignore-workspace", "node program.mjs", "node required.cjs"],
  },
  {
    name: "Yarn 4, Plug'n'Play",
    does: "install without node_modules, import and require, the native addon",
    group: "managers",
    app: "plain",
    files: {
      "package.json": "@tarball:yarn",
      ".yarnrc.yml": "nodeLinker: pnp\nenableGlobalCache: false\nenableTelemetry: false\n",
      "yarn.lock": "",
    },
    run: [
      "node ../node_modules/@yarnpkg/cli-dist/bin/yarn.js install --no-immutable",
      "node ../node_modules/@yarnpkg/cli-dist/bin/yarn.js node program.mjs",
      "node ../node_modules/@yarnpkg/cli-dist/bin/yarn.js node required.cjs",
    ],
  },
];
