// A browser without a driver's package: Chromium's own protocol over a pipe, messages that end in a zero byte.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/** Where Chromium is, or `undefined`. */
export function findChromium(): string | undefined {
  for (const name of NAMES) {
    try {
      return execFileSync("which", [name], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
    } catch {}
  }
  return undefined;
}

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--remote-debugging-pipe",
];

type Message = {
  id?: number;
  method?: string;
  params?: Record<string, unknown>;
  result?: unknown;
  error?: { message: string };
};

export class Page {
  readonly #child: ChildProcess;
  readonly #profile = mkdtempSync(join(tmpdir(), "tidegate-chromium-"));
  readonly #waiting = new Map<number, (message: Message) => void>();
  #session: string | undefined;
  #id = 0;
  /** Errors that the page logged or threw. */
  readonly errors: string[] = [];

  private constructor(program: string) {
    this.#child = spawn(program, [...FLAGS, `--user-data-dir=${this.#profile}`], {
      stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"],
    });
    let rest = "";
    (this.#child.stdio[4] as Readable).setEncoding("utf8").on("data", (chunk: string) => {
      const messages = (rest + chunk).split("\0");
      rest = messages.pop() ?? "";
      for (const message of messages) this.#read(JSON.parse(message) as Message);
    });
  }

  static async open(program: string, url: string): Promise<Page> {
    const page = new Page(program);
    const { targetId } = (await page.send("Target.createTarget", { url: "about:blank" })) as { targetId: string };
    const { sessionId } = (await page.send("Target.attachToTarget", { targetId, flatten: true })) as {
      sessionId: string;
    };
    page.#session = sessionId;
    for (const domain of ["Page", "Runtime", "Log"]) await page.send(`${domain}.enable`);
    await page.send("Page.navigate", { url });
    return page;
  }

  #read({ id, method, params, ...rest }: Message): void {
    if (id !== undefined) this.#waiting.get(id)?.(rest);
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") this.errors.push(JSON.stringify(params));
  }

  send(method: string, params: Record<string, unknown> = {}): Promise<unknown> {
    const id = ++this.#id;
    const sessionId = this.#session === undefined ? {} : { sessionId: this.#session };
    (this.#child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, ...sessionId })}\0`);
    return new Promise((done, failed) => {
      this.#waiting.set(id, ({ result, error }) =>
        error === undefined ? done(result) : failed(new Error(`${method}: ${error.message}`)),
      );
    });
  }

  /** What an expression is in the page. */
  async evaluate<T>(expression: string): Promise<T> {
    const params = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = (await this.send("Runtime.evaluate", params)) as {
      result: { value: T };
      exceptionDetails?: { text: string };
    };
    if (exceptionDetails !== undefined) throw new Error(`${expression}: ${exceptionDetails.text}`);
    return result.value;
  }

  async press(key: "Tab" | "Enter"): Promise<void> {
    const code = key === "Tab" ? 9 : 13;
    const common = { key, code: key, windowsVirtualKeyCode: code, ...(key === "Enter" ? { text: "\r" } : {}) };
    await this.send("Input.dispatchKeyEvent", { type: "keyDown", ...common });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", ...common });
  }

  async screenshot(): Promise<Buffer> {
    const params = { format: "png", captureBeyondViewport: true };
    const { data } = (await this.send("Page.captureScreenshot", params)) as { data: string };
    return Buffer.from(data, "base64");
  }

  async close(): Promise<void> {
    const ended = new Promise((done) => this.#child.once("close", done));
    this.#child.kill("SIGKILL");
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 5 });
  }
}
