/** Runs `wrangler dev` on a user's project. */
import { mkdirSync } from "node:fs";
import { get } from "node:http";
import { join } from "node:path";
import { freePort } from "../../support/ports.ts";
import { type Running, start } from "../../support/processes.ts";

/** Disables everything that uses the network. */
export const QUIET = {
  CI: "1",
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

export interface Worker {
  readonly running: Running;
  readonly origin: string;
  /** The Worker's response, parsed as JSON. */
  get(path: string, query?: Record<string, string | number>): Promise<unknown>;
}

export async function dev(wrangler: string, folder: string, args: string[] = []): Promise<Worker> {
  const port = await freePort();
  const all = [wrangler, "dev", "--local", "--ip", "127.0.0.1", "--port", `${port}`, "--inspector-port", "0", ...args];
  // It is killed, and leaves its temporary files: these go with the folder.
  const TMPDIR = join(folder, ".wrangler", "temporary");
  mkdirSync(TMPDIR, { recursive: true });
  const env = { ...process.env, ...QUIET, TMPDIR };
  const running = await start(process.execPath, all, /Ready on/, { cwd: folder, env });
  return {
    running,
    origin: `http://127.0.0.1:${port}`,
    async get(path, query = {}) {
      const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, `${value}`]));
      const { status, text } = await request(`http://127.0.0.1:${port}${path}?${search}`);
      if (status !== 200)
        throw new Error(`${path} answered ${status}: ${text.slice(0, 2000)}\n${running.output().slice(-2000)}`);
      return JSON.parse(text);
    },
  };
}

/** Each on its own connection: one that has waited long for a response is not always served again. */
function request(url: string): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part) => {
        text += part;
      });
      response.on("end", () => resolve({ status: response.statusCode, text }));
      response.on("error", reject);
    }).on("error", reject);
  });
}
