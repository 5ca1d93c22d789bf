/**
 * The command line: `npx tidegate-serve`, and `npx tidegate serve`, which calls {@link run}.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { isInputError, type OnStoreError } from "tidegate";
import { argumentError, durationOf, LONGEST_TIMER, UsageError } from "tidegate/cli";
import { clientIp } from "tidegate/http";
import { HELP } from "./help.ts";
import { jsonLines } from "./log.ts";
import type { Settings } from "./settings.ts";

export { UsageError } from "tidegate/cli";

/** What the command writes and reads. */
interface Terminal {
  /** Writes a line to standard output. */
  out(line: string): void;
  /** The text of a file. */
  read(path: string): string;
}

const OPTIONS = {
  store: { type: "string", default: "memory" },
  migrate: { type: "boolean", default: false },
  host: { type: "string", default: "127.0.0.1" },
  port: { type: "string", default: "8080" },
  "on-store-error": { type: "string", default: "deny" },
  timeout: { type: "string" },
  "grpc-port": { type: "string" },
  "trust-proxy": { type: "string" },
  "client-header": { type: "string" },
  "admin-token-file": { type: "string" },
  console: { type: "boolean", default: false },
  "body-limit": { type: "string", default: "65536" },
  "header-limit": { type: "string", default: "16384" },
  "shutdown-timeout": { type: "string", default: "10s" },
  "log-requests": { type: "boolean", default: false },
  help: { type: "boolean", short: "h" },
  version: { type: "boolean", short: "v" },
} as const;

function parse(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS, allowPositionals: true, strict: true });
  } catch (error) {
    throw argumentError(error, "tidegate-serve --help", OPTIONS);
  }
}

type Values = ReturnType<typeof parse>["values"];

/** Node.js listens on every address for an empty text, which is also what an unset variable of a shell is. */
function hostOf(written: string): string {
  if (written !== "" && !written.startsWith("[")) return written;
  const rule = "an address or a name of this machine, an IPv6 address without brackets";
  throw new UsageError(`--host must be ${rule}; got ${JSON.stringify(written)}`);
}

function integer(name: string, written: string, least: number, most: number): number {
  const value = Number(written);
  if (/^\d+$/.test(written) && value >= least && value <= most) return value;
  throw new UsageError(`--${name} must be an integer from ${least} to ${most}; got ${JSON.stringify(written)}`);
}

/** The ms of a time that a timer can wait. */
function milliseconds(name: string, written: string): number {
  const ms = durationOf(name, written);
  if (ms >= 1 && ms <= LONGEST_TIMER) return ms;
  throw new UsageError(`--${name} must be from 1ms to 24d; got ${JSON.stringify(written)}`);
}

function onStoreErrorOf(written: string): OnStoreError {
  if (written === "deny" || written === "allow") return written;
  const local = Number(written);
  if (written.trim() !== "" && local > 0 && local <= 1) return { local };
  const rule = "deny, allow, or a fraction of the rate above 0 and up to 1";
  throw new UsageError(`--on-store-error must be ${rule}; got ${JSON.stringify(written)}`);
}

function proxiesOf(written: string | undefined, header: string | undefined): Settings["proxies"] {
  if (written === undefined) {
    if (header === undefined) return undefined;
    throw new UsageError("--client-header needs --trust-proxy, which states whose header is read");
  }
  const trust = /^\d+$/.test(written) ? integer("trust-proxy", written, 1, 100) : written.split(",");
  try {
    clientIp({ address: "192.0.2.1" }, { trust, header });
  } catch (error) {
    if (!isInputError(error)) throw error;
    const option = error.field === "header" ? "--client-header" : "--trust-proxy";
    throw new UsageError(`${option} must be ${error.rule}; got ${JSON.stringify(error.value)}`);
  }
  return { trust, header };
}

/** The text of a file that the command line names. */
function text(path: string, terminal: Terminal): string {
  try {
    return terminal.read(path);
  } catch (error) {
    throw new UsageError(`cannot read ${path}: ${(error as Error).message}`);
  }
}

function tokenOf(path: string | undefined, terminal: Terminal): string | undefined {
  const token = path === undefined ? process.env["TIDEGATE_ADMIN_TOKEN"] : text(path, terminal).trim();
  if (token === undefined) return undefined;
  // The characters of RFC 6750.
  if (/^[\w.~+/-]{16,}=*$/.test(token)) return token;
  const where = path === undefined ? "TIDEGATE_ADMIN_TOKEN" : `the token in ${path} (--admin-token-file)`;
  throw new UsageError(
    `${where} must be at least 16 characters of A-Z a-z 0-9 - . _ ~ + /; got ${token.length} characters`,
  );
}

function consoleOf(wanted: boolean, token: string | undefined): boolean {
  if (!wanted || token !== undefined) return wanted;
  throw new UsageError("--console needs the administrator's token: --admin-token-file, or TIDEGATE_ADMIN_TOKEN");
}

function settingsOf(values: Values, policies: string, terminal: Terminal, version: string): Settings {
  const { timeout } = values;
  // Read before a store is opened: an error names the file that is missing.
  text(policies, terminal);
  const adminToken = tokenOf(values["admin-token-file"], terminal);
  return {
    policies,
    version,
    store: values.store,
    migrate: values.migrate,
    host: hostOf(values.host),
    port: integer("port", values.port, 0, 65_535),
    onStoreError: onStoreErrorOf(values["on-store-error"]),
    timeout: timeout === undefined ? undefined : milliseconds("timeout", timeout),
    grpcPort: values["grpc-port"] === undefined ? undefined : integer("grpc-port", values["grpc-port"], 0, 65_535),
    proxies: proxiesOf(values["trust-proxy"], values["client-header"]),
    adminToken,
    console: consoleOf(values.console, adminToken),
    bodyLimit: integer("body-limit", values["body-limit"], 1, 2 ** 30),
    headerLimit: integer("header-limit", values["header-limit"], 1024, 2 ** 20),
    shutdownTimeout: milliseconds("shutdown-timeout", values["shutdown-timeout"]),
    logRequests: values["log-requests"],
  };
}

/** Ms from a signal to its reload, and so for requests between two: signals meanwhile, as while large policies are read, join. */
const BETWEEN_RELOADS = 100;

/** On Windows the console sends SIGHUP when it closes, and Windows ends the process ten seconds later. */
const ENDING: readonly NodeJS.Signals[] =
  process.platform === "win32" ? ["SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGTERM", "SIGINT"];

/** The name of the first signal that ends the process. The second one ends it without waiting. */
function ending(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ENDING) process.once(signal, () => resolve(signal));
  });
}

/**
 * Runs the command line until a signal ends it, and returns the exit code: 0, or 1 if the policies have mistakes.
 *
 * @throws {@link UsageError} if the command line has a mistake, or a file or the store cannot be opened
 */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const { values, positionals } = parse(argv);
  const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  const { version } = JSON.parse(manifest) as { version: string };
  if (values.help === true || values.version === true) {
    terminal.out(values.help === true ? HELP : version);
    return 0;
  }
  const [policies] = positionals;
  if (policies === undefined || positionals.length > 1) {
    throw new UsageError("serve needs one file of policies; see tidegate-serve --help");
  }
  const settings = settingsOf(values, policies, terminal, version);
  const log = jsonLines(terminal.out);
  const ended = ending();
  // From the start: without a listener the signal would end the process.
  let reload = (): void => {};
  let due: NodeJS.Timeout | undefined;
  const hangup = (): void => {
    due ??= setTimeout(() => {
      due = undefined;
      reload();
    }, BETWEEN_RELOADS);
  };
  if (!ENDING.includes("SIGHUP")) process.on("SIGHUP", hangup);
  // Loaded for a service alone: help and mistakes are printed without it.
  const [{ serve }, { mistakesIn }] = await Promise.all([import("./server.ts"), import("./policies.ts")]);
  try {
    const service = await serve(settings, log);
    reload = service.reload;
    await service.close(await ended);
    return 0;
  } catch (error) {
    const mistakes = mistakesIn(error);
    if (mistakes === undefined) throw error;
    log.error("not started", { file: policies, mistakes });
    return 1;
  } finally {
    process.off("SIGHUP", hangup);
    clearTimeout(due);
  }
}
