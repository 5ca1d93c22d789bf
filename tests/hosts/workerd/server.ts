/** Bundles a user's project as `wrangler deploy` does, and runs it in workerd, without the proxy of `wrangler dev`. */
import { get } from "node:http";
import { basename, join } from "node:path";
import { output } from "../../packaging/installed.ts";

/** Disables everything that uses the network. */
export const QUIET = {
  CI: "1",
  WRANGLER_SEND_METRICS: "false",
  WRANGLER_SEND_ERROR_REPORTS: "false",
  CLOUDFLARE_CF_FETCH_ENABLED: "false",
};

export interface Worker {
  readonly origin: string;
  /** The Worker's response, parsed as JSON. */
  get(path: string, query?: Record<string, string | number>): Promise<unknown>;
  stop(): Promise<void>;
}

interface Miniflare {
  readonly ready: Promise<URL>;
  dispatchFetch(url: string): Promise<{ json(): Promise<unknown> }>;
  dispose(): Promise<void>;
}

/** Starts workerd with Cloudflare's simulator of what surrounds it. */
export async function miniflare(options: object): Promise<Miniflare> {
  const name = "miniflare";
  const { Miniflare } = (await import(name)) as { Miniflare: new (options: object) => Miniflare };
  return new Miniflare({ cf: false, ...options });
}

/** Where the bundle of a folder's Worker is. */
export const bundleOf = (folder: string): string => join(folder, "bundled");

/** Bundles the Worker of a folder. Returns what wrangler prints. */
export function bundle(wrangler: string, folder: string, args: readonly string[] = []): string {
  const env = { ...process.env, ...QUIET };
  const all = [wrangler, "deploy", ...args, "--dry-run", "--outdir", bundleOf(folder)];
  return output(process.execPath, all, { cwd: folder, env });
}

/** Starts the bundled Worker, with what its wrangler.jsonc binds. What it stores is kept if it gets a folder for that. */
export async function start(folder: string, defaultPersistRoot?: string): Promise<Worker> {
  const name = "wrangler";
  const { unstable_getMiniflareWorkerOptions: read } = (await import(name)) as {
    unstable_getMiniflareWorkerOptions(path: string): { main: string; workerOptions: object };
  };
  const { main, workerOptions } = read(join(folder, "wrangler.jsonc"));
  const modulesRoot = bundleOf(folder);
  const scriptPath = join(modulesRoot, basename(main));
  const server = await miniflare({ ...workerOptions, modules: true, modulesRoot, scriptPath, defaultPersistRoot });
  const { origin } = await server.ready;
  return {
    origin,
    stop: () => server.dispose(),
    async get(path, query = {}) {
      const search = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, `${value}`]));
      const { status, text } = await request(`${origin}${path}?${search}`);
      if (status !== 200) throw new Error(`${path} answered ${status}: ${text.slice(0, 2000)}`);
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
