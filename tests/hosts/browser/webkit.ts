/** WebKitGTK, driven over WebDriver: the engine of Safari, on a screen in memory. */
import { freePort } from "../../support/ports.ts";
import { Program, start } from "../../support/processes.ts";
import type { Browser, Page, Profile } from "./browsers.ts";

/** A driver has one session, and that a profile of its own. */
async function newProfile(program: string, screen: string): Promise<Profile> {
  const port = await freePort();
  const driver = new Program(program, [`--port=${port}`], { env: { ...process.env, DISPLAY: `:${screen}` } });
  const request = async <Value>(method: string, path: string, body?: object): Promise<Value> => {
    const sent = { method, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`http://127.0.0.1:${port}${path}`, sent);
    const { value } = (await response.json()) as { value: Value };
    if (!response.ok) throw new Error(`${path}: ${JSON.stringify(value)}`);
    return value;
  };
  await driver.answers(() => request("GET", "/status"));
  const { sessionId } = await request<{ sessionId: string }>("POST", "/session", { capabilities: {} });
  const session = `/session/${sessionId}`;
  let last: Promise<unknown> = Promise.resolve();
  /** Commands are for the current tab, so they run one after the other. */
  const command = <Value>(handle: string, method: string, path: string, body?: object): Promise<Value> => {
    const result = last.then(async () => {
      await request("POST", `${session}/window`, { handle });
      return request<Value>(method, session + path, body);
    });
    last = result.catch(() => {});
    return result;
  };
  const [first] = await request<[string]>("GET", `${session}/window/handles`);
  return {
    async newPage(): Promise<Page> {
      const { handle } = await command<{ handle: string }>(first, "POST", "/window/new", { type: "tab" });
      const run = <Value>(script: string) => command<Value>(handle, "POST", "/execute/sync", { script, args: [] });
      return {
        goto: (url) => command(handle, "POST", "/url", { url }),
        reload: () => command(handle, "POST", "/refresh", {}),
        close: () => command(handle, "DELETE", "/window"),
        // Not by `/execute/async`: other tabs must run meanwhile. The page may not have loaded yet.
        async evaluate<Result>(code: string): Promise<Result> {
          await run(`delete window.result;
            const loaded = document.readyState === "complete" || new Promise((resolve) => addEventListener("load", resolve));
            Promise.resolve(loaded).then(async () => JSON.stringify(await (${code}))).then(
              (json) => { window.result = { json }; },
              (error) => { window.result = { error: String(error) }; },
            )`);
          for (;;) {
            const result = await run<{ json?: string; error?: string } | null>("return window.result");
            if (result?.error !== undefined) throw new Error(result.error);
            if (result !== null) return JSON.parse(result.json ?? "null");
            await new Promise((resolve) => setTimeout(resolve, 10));
          }
        },
      };
    },
    close: driver.stop,
  };
}

export async function launchWebKit(program: string): Promise<Browser> {
  const screen = await start("Xvfb", ["-displayfd", "1", "-nolisten", "tcp"], /^(\d+)\n/);
  const profiles: Profile[] = [];
  return {
    async newContext() {
      const profile = await newProfile(program, screen.ready[1] as string);
      profiles.push(profile);
      return profile;
    },
    async close() {
      await Promise.all(profiles.map((profile) => profile.close()));
      await screen.stop();
    },
  };
}
