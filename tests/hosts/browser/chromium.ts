/** Chromium, driven by playwright-core: what is used of it, by shape, since it is installed on demand. */

export interface Page {
  goto(url: string): Promise<unknown>;
  reload(): Promise<unknown>;
  close(): Promise<void>;
  evaluate<T>(program: string): Promise<T>;
}

export interface Context {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

export interface Browser {
  /** A profile of its own: its pages share what a site stores. */
  newContext(): Promise<Context>;
  close(): Promise<void>;
}

const ARGS =
  "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";

export async function launch(executablePath: string): Promise<Browser> {
  const name = "playwright-core";
  const { chromium } = (await import(name)) as {
    chromium: { launch(options: { executablePath: string; args: string[] }): Promise<Browser> };
  };
  return chromium.launch({ executablePath, args: ARGS.split(" ") });
}
