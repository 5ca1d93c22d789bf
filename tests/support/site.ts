/** A user's project as a site, and a browser for its pages. */
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join, normalize } from "node:path";
import { afterAll } from "vitest";

const TYPES: Readonly<Record<string, string>> = { html: "text/html", js: "text/javascript", json: "application/json" };

interface Site {
  readonly origin: string;
  stop(): void;
}

/** Serves a folder unchanged, with a content security policy if a path requests one. */
export async function serve(folder: string): Promise<Site> {
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
    try {
      const body = await readFile(join(folder, normalize(pathname)));
      const policy = searchParams.get("csp");
      response.setHeader("content-type", TYPES[pathname.split(".").at(-1) ?? ""] ?? "application/octet-stream");
      if (policy !== null) response.setHeader("content-security-policy", policy);
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, stop: () => server.close() };
}

/** Serves a project and starts a browser. After the tests of the file both end. */
export async function browse<Browser extends { close(): Promise<void> }>(
  user: { readonly folder: string },
  launched: Promise<Browser>,
): Promise<{ origin: string; browser: Browser }> {
  const browser = await launched;
  const site = await serve(user.folder);
  afterAll(async () => {
    await browser.close();
    site.stop();
  });
  return { origin: site.origin, browser };
}
