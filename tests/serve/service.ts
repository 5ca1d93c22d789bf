/** The built service in a process of its own, on a free port, in a folder that goes with it. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { PolicyDocument } from "tidegate/policies";
import { remove, temporaryFolder } from "../support/folders.ts";
import { type Running, start } from "../support/processes.ts";

export const root: string = fileURLToPath(new URL("../..", import.meta.url));
export const BIN: string = join(root, "npm/tidegate-serve/dist/bin.js");
export const TOKEN = "0123456789abcdef0123456789abcdef";

export interface Line {
  readonly time: string;
  readonly level: "info" | "error";
  readonly event: string;
  readonly [field: string]: unknown;
}

/** A response, with its body parsed where it is JSON. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: a test names the fields that it expects
  readonly body: any;
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly folder: string;
  readonly policies: string;
  readonly running: Running;
  /** The lines of the log so far. */
  log(): Line[];
  /** Waits until the log has a line of this event, and returns it; with `count`, the line of that number. */
  logged(event: string, count?: number): Promise<Line>;
  request(path: string, options?: RequestInit): Promise<Reply>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>;
  /** Sends a signal, and returns the exit code, or the signal, once the process has ended. */
  end(signal?: NodeJS.Signals): Running["ended"];
}

/** A decision waits for its store as long as a busy machine needs, and not for the default of 250 ms. */
export const PATIENT: readonly string[] = ["--timeout", "60s"];

/** This many tokens, and one more in each period: by default an hour, and no test takes as long. */
export const bucket = (capacity: number, period: "1m" | "90m" | "1h" = "1h") =>
  ({ algorithm: "token_bucket", algorithm_config: { rate: 1, period, capacity } }) as const;
export const NUMBERS = bucket(3);

export const POLICIES: PolicyDocument = { rules: [{ name: "api", limit_keys: ["ip:address"], ...NUMBERS }] };

async function reply(response: Response): Promise<Reply> {
  const text = await response.text();
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}

/** Starts the service on a free port, by default with this Node.js, and waits until it listens. */
export async function serving(
  document: PolicyDocument = POLICIES,
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
  runtime: string = process.execPath,
): Promise<Served> {
  const folder = temporaryFolder("serve");
  const policies = join(folder, "policies.json");
  writeFileSync(policies, JSON.stringify(document));
  const running = await start(runtime, [BIN, "policies.json", "--port", "0", ...args], /"event":"started".*\n/, {
    cwd: folder,
    env: { ...process.env, ...env },
  }).catch((error: unknown) => {
    remove(folder);
    throw error;
  });
  const log = (): Line[] =>
    running
      .output()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Line);
  const url = log().find(({ event }) => event === "started")?.["url"] as string;
  const request = async (path: string, options?: RequestInit) => reply(await fetch(url + path, options));
  return {
    url,
    folder,
    policies,
    running,
    log,
    logged: (event, count = 1) =>
      // The last line may be incomplete.
      running.until((output) =>
        output.endsWith("\n") ? log().filter((line) => line.event === event)[count - 1] : undefined,
      ),
    request,
    post: (path, body, headers = {}) =>
      request(path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    end: (signal = "SIGTERM") => {
      running.signal(signal);
      return running.ended;
    },
    [Symbol.asyncDispose]: async () => {
      await running.stop();
      remove(folder);
    },
  };
}
