/**
 * Runs the own tests of a peer, at a pinned commit, with our drop-in store in place of its memory store:
 *
 *   npm run build
 *   node tests/peers/run.mjs express-rate-limit [--source <git URL or folder>]
 *
 * First the tests run with the peer's own store. Of those that pass, each one has to pass with ours, unless peers.json
 * gives the reason why it does not. Needs git, and the registry; it is not a part of `npm test`.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const peers = JSON.parse(readFileSync(join(here, "peers.json"), "utf8"));
const [name, option, given] = process.argv.slice(2);
const peer = peers[name];
if (peer === undefined || (option !== undefined && (option !== "--source" || given === undefined))) {
  console.error(`usage: node tests/peers/run.mjs ${Object.keys(peers).join("|")} [--source <git URL or folder>]`);
  process.exit(2);
}

const folder = mkdtempSync(join(tmpdir(), `peer-${name}-`));
const inherit = { cwd: folder, stdio: ["ignore", "ignore", "inherit"] };
const write = (path, value) => writeFileSync(join(folder, path), JSON.stringify(value));

/** The peer's sources, with the few packages that its tests need, and this package as the build made it. */
function prepare() {
  execFileSync("git", ["clone", "--quiet", given ?? peer.repository, "."], inherit);
  execFileSync("git", ["checkout", "--quiet", peer.commit], inherit);
  for (const lock of ["package-lock.json", "pnpm-lock.yaml", "yarn.lock"]) rmSync(join(folder, lock), { force: true });
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const devDependencies = Object.fromEntries(peer.needs.map((need) => [need, manifest.devDependencies[need] ?? "*"]));
  write("package.json", { ...manifest, scripts: {}, devDependencies });
  if (peer.tsconfig !== undefined) write("tsconfig.json", peer.tsconfig);
  if (peer.jest !== undefined) write("peers.jest.json", peer.jest);
  execFileSync("npm", ["install", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund"], inherit);
  const package_ = join(folder, "node_modules/tidegate");
  mkdirSync(package_);
  for (const part of ["dist", "package.json"]) {
    cpSync(join(here, "../../npm/tidegate", part), join(package_, part), { recursive: true });
  }
}

const RUNNERS = {
  jest: () =>
    json([
      "node_modules/jest/bin/jest.js",
      "-c",
      "peers.jest.json",
      "--forceExit",
      "--json",
      "--outputFile=peers.json",
    ]),
  vitest: () =>
    json(["node_modules/vitest/vitest.mjs", "run", "--reporter=json", "--outputFile=peers.json", ...peer.tests]),
  node: () =>
    peer.tests.flatMap((tests) => {
      const files = tests.endsWith("/") ? readdirSync(join(folder, tests)).map((file) => `${tests}${file}`) : [tests];
      return files
        .filter((file) => file.endsWith(".test.js") && !peer.without.includes(file))
        .flatMap((file) => tap(file, node(["--test-timeout=60000", "--test-reporter=tap", "--test", file]).stdout));
    }),
};

const node = (parameters) =>
  spawnSync(process.execPath, parameters, { cwd: folder, encoding: "utf8", maxBuffer: 2 ** 28 });

/** The results of jest and vitest, which write the same report. */
function json(parameters) {
  rmSync(join(folder, "peers.json"), { force: true });
  const { stderr } = node(parameters);
  try {
    const { testResults } = JSON.parse(readFileSync(join(folder, "peers.json"), "utf8"));
    return testResults.flatMap(({ name: file, assertionResults }) =>
      assertionResults
        .filter(({ status }) => status === "passed" || status === "failed")
        .map(({ fullName, status }) => [`${file.split("/").at(-1)}: ${fullName}`, status === "passed"]),
    );
  } catch {
    throw new Error(`the runner wrote no report:\n${stderr}`);
  }
}

const tap = (file, report) =>
  [...report.matchAll(/^(not )?ok \d+ - (?!.*# SKIP)(.*)$/gm)].map(([, not, title]) => [
    `${file.split("/").at(-1)}: ${title.replaceAll("\\#", "#")}`,
    not === undefined,
  ]);

try {
  prepare();
  const run = RUNNERS[peer.runner];
  const theirs = new Map(run());
  copyFileSync(join(here, "adapters", peer.adapter), join(folder, peer.store));
  const ours = new Map(run());
  const able = [...theirs].filter(([, passed]) => passed).map(([title]) => title);
  const failed = able.filter((title) => ours.get(title) !== true);
  const unexpected = failed.filter((title) => !(title in peer.misses));
  const stale = Object.keys(peer.misses).filter((title) => !failed.includes(title));
  console.log(
    `${name}: ${able.length - failed.length} of ${able.length} tests that pass with its own store pass with ours`,
  );
  for (const title of failed) console.log(`  fails: ${title}\n    ${peer.misses[title] ?? "NOT EXPECTED"}`);
  for (const title of stale) console.log(`  passes, but is listed in peers.json: ${title}`);
  process.exitCode = unexpected.length + stale.length === 0 && able.length > 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
