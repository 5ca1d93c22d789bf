import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, get } from "node:http";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inRuntime } from "../hosts/runtimes.ts";
import { remove, temporaryFolder } from "../support/folders.ts";
import { BIN, POLICIES, serving } from "./service.ts";

describe("the start", () => {
  test("logs one line with the port that was free, and listens on the loopback address alone", async () => {
    await using service = await serving();
    const { pid } = service.running.child;
    const [line, ...more] = service.log();
    const port = Number(new URL(service.url).port);
    expect(line).toEqual({
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      level: "info",
      event: "started",
      url: `http://127.0.0.1:${port}`,
      port,
      store: "memory",
      rules: ["api"],
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
      pid,
    });
    expect(more).toEqual([]);
    expect((await service.request("/healthz")).body).toEqual({ ok: true });
    expect((await service.request("/readyz")).body).toEqual({ ok: true });
  });

  test("keeps idle connections for longer than a proxy does, which sends a request where the service ends one", async () => {
    await using service = await serving();
    const [, seconds] = /timeout=(\d+)/.exec((await service.request("/healthz")).headers.get("keep-alive") ?? "") ?? [];
    // nginx and most load balancers: 60 s.
    expect(Number(seconds)).toBeGreaterThan(60);
  });

  test("a health check over HTTP/1.0 without a host, as HAProxy sends it, is answered", async () => {
    await using service = await serving();
    const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
    let answer = "";
    socket.setEncoding("utf8").on("data", (text: string) => (answer += text));
    socket.write("GET /healthz HTTP/1.0\r\n\r\n");
    await once(socket, "close");
    const [head = "", body] = answer.split("\r\n\r\n");
    expect([head.slice(0, 15), body]).toEqual(["HTTP/1.1 200 OK", '{"ok":true}']);
  });

  test("no request is logged, unless --log-requests is given", async () => {
    await using quiet = await serving();
    await quiet.request("/healthz");
    expect(await quiet.end()).toBe(0);
    expect(quiet.log().map(({ event }) => event)).toEqual(["started", "stopping", "stopped"]);
    await using loud = await serving(POLICIES, ["--log-requests", "--trust-proxy", "1"]);
    // Without the query, which may have a secret.
    for (const path of ["/healthz", "/v1/forward-auth/a"]) await loud.request(`${path}?secret=1`);
    expect(await loud.logged("request")).toMatchObject({ method: "GET", path: "/healthz", status: 200 });
    expect(await loud.logged("request", 2)).toMatchObject({ method: "GET", path: "/v1/forward-auth/a" });
  });

  test("without a token the routes of the administrator do not exist", async () => {
    await using service = await serving();
    expect((await service.post("/v1/reset", { name: "api", key: "192.0.2.1" })).status).toBe(404);
    expect(Object.keys((await service.request("/v1/openapi.json")).body.paths)).toEqual([
      "/v1/decide",
      "/v1/check",
      "/v1/decide-all",
    ]);
  });
});

describe("the command line", () => {
  const folder = temporaryFolder("serve-cli");
  const write = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return name;
  };
  const run = (...args: string[]) =>
    spawnSync(process.execPath, [BIN, ...args], { cwd: folder, encoding: "utf8", timeout: 120_000 });
  write("policies.json", JSON.stringify(POLICIES));
  write("token", "short");

  test.each([
    [[], "serve needs one file of policies; see tidegate-serve --help"],
    [["none.json"], /^cannot read none\.json: ENOENT/],
    // What a terminal obeys.
    [["\x1b[2J.json"], /^cannot read \\u001b\[2J\.json: ENOENT/],
    [["policies.json", "--prot", "1"], "Unknown option '--prot': did you mean --port? See tidegate-serve --help"],
    [["policies.json", "--port", "70000"], '--port must be an integer from 0 to 65535; got "70000"'],
    [["policies.json", "--grpc-port", "65536"], '--grpc-port must be an integer from 0 to 65535; got "65536"'],
    [["policies.json", "--body-limit", "0"], '--body-limit must be an integer from 1 to 1073741824; got "0"'],
    [["policies.json", "--header-limit", "1023"], '--header-limit must be an integer from 1024 to 1048576; got "1023"'],
    [["policies.json", "--timeout", "soon"], '--timeout must be a number of ms, or a string such as 15m; got "soon"'],
    [["policies.json", "--timeout", "0"], '--timeout must be from 1ms to 24d; got "0"'],
    [["policies.json", "--shutdown-timeout", "600h"], '--shutdown-timeout must be from 1ms to 24d; got "600h"'],
    [["policies.json", "--shutdown-timeout", "30"], /^--shutdown-timeout 30 would be 30 ms: write the unit, as in 15s/],
    [["policies.json", "--timeout", "5"], /^--timeout 5 would be 5 ms: write the unit, as in 15s/],
    [["policies.json", "--timeout", "1000", "--store", "none"], /^--store must be memory/],
    [["policies.json", "--port", "-1"], /^Option '--port' argument is ambiguous: write --port=… if the value starts/],
    [["policies.json", "--timeout", "1.5h", "--store", "none"], /^--store must be memory/],
    [["policies.json", "--on-store-error", "2"], /^--on-store-error must be deny, allow, or a fraction/],
    [["policies.json", "--admin-token-file", "token"], /at least 16 characters .*; got 5 characters$/],
    [["policies.json", "--store", "mysql://u:secret@h/d"], /^--store must be memory, file:<folder>, .*u:\*\*\*@h\/d"$/],
    [["policies.json", "--store", "file:policies.json"], /^--store file:policies\.json cannot be opened: file: open/],
    [["policies.json", "--migrate"], /^--migrate needs a store with a schema, postgres:\/\/…; got --store memory$/],
    [
      ["policies.json", "--host", "192.0.2.1"],
      /^--host 192\.0\.2\.1 --port 8080 cannot be used: .*EADDRNOTAVAIL[^;]*$/,
    ],
    [["policies.json", "--host", ""], /^--host must be an address or a name of this machine, .* got ""$/],
    [["policies.json", "--host", "[::1]"], /^--host must be .* an IPv6 address without brackets; got "\[::1\]"$/],
  ] as const)("%j is a mistake: exit code 2, one line", (args, message) => {
    const { status, stdout, stderr } = run(...args);
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr.split("\n")).toHaveLength(2);
    const text = stderr.replace(/^tidegate-serve: /, "").trim();
    expect(text).toEqual(typeof message === "string" ? message : expect.stringMatching(message));
  });

  test("policies with mistakes: exit code 1, and every mistake in one line of the log", () => {
    const [rule] = POLICIES.rules;
    write("wrong.json", JSON.stringify({ rules: [{ ...rule, algorithm: "leaky_bucket", limit_keys: ["ip:adress"] }] }));
    const { status, stdout, stderr } = run("wrong.json");
    expect([status, stderr]).toEqual([1, ""]);
    const line = JSON.parse(stdout);
    expect(line).toMatchObject({ level: "error", event: "not started", file: "wrong.json" });
    expect(line.mistakes).toEqual([expect.stringContaining("ip:adress"), expect.stringContaining("leaky_bucket")]);
  });

  test("--help lists every option, --version is the package's", () => {
    expect(run("--help").stdout).toMatch(/^Usage: tidegate-serve <policies\.json>[\s\S]*--on-store-error/);
    expect(run("--version").stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    remove(folder);
  });
});

/** A service ends while it has a request whose body is not complete. */
async function endsUnderWay(runtime?: string): Promise<void> {
  await using service = await serving(POLICIES, [], {}, runtime);
  const port = Number(new URL(service.url).port);
  const agent = new Agent({ keepAlive: true });
  const idle = await new Promise<number | undefined>((resolve, reject) =>
    get(`${service.url}/healthz`, { agent }, (response) =>
      response.resume().on("end", () => resolve(response.statusCode)),
    ).on("error", reject),
  );
  expect(idle).toBe(200);
  // Browsers open connections that they may need, and send nothing on them.
  const silent = connect(port, "127.0.0.1");
  await once(silent, "connect");
  const body = JSON.stringify({ name: "api", key: "192.0.2.1" });
  const slow = connect(port, "127.0.0.1");
  await once(slow, "connect");
  let answer = "";
  slow.on("data", (data) => {
    answer += data;
  });
  const head = `POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`;
  // The rest of the body comes after the signal.
  await new Promise((sent) => slow.write(head + body.slice(0, 5), sent));
  await service.request("/healthz");
  const closed = once(slow, "close");
  const exited = service.end();
  await service.logged("stopping");
  const [refused] = (await once(connect(port, "127.0.0.1"), "error")) as [NodeJS.ErrnoException];
  expect(refused.code).toBe("ECONNREFUSED");
  slow.write(body.slice(5));
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*connection: close[\s\S]*"ok":true/i);
  expect(await exited).toBe(0);
  expect(service.log().map(({ event }) => event)).toEqual(["started", "stopping", "stopped"]);
  expect(service.log().at(-1)).not.toHaveProperty("message");
  agent.destroy();
}

describe("SIGTERM", () => {
  const title = "answers the request under way, accepts no other, closes idle connections, and exits with 0";
  test(title, () => endsUnderWay());
  // As `bunx` starts it where there is no Node.js.
  inRuntime("bun", (bun) => test(`on Bun, ${title}`, () => endsUnderWay(bun)));

  test("answers the requests of connections that it has not accepted yet, and only once it accepts no others", async () => {
    await using service = await serving(POLICIES, ["--shutdown-timeout", "10m"]);
    // As if it were busy: the system alone answers the connections.
    service.running.signal("SIGSTOP");
    const connecting = Array.from({ length: 20 }, async () => {
      const socket = connect(Number(new URL(service.url).port), "127.0.0.1");
      await once(socket, "connect");
      socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
      return socket;
    });
    const sockets = await Promise.all(connecting);
    const exited = service.end();
    service.running.signal("SIGCONT");
    const answers = await Promise.all(
      sockets.map(async (socket) => {
        const head = String((await once(socket, "data"))[0]).slice(0, 15);
        // A client with a connection for each request opens the next one now.
        const another = connect(Number(new URL(service.url).port), "127.0.0.1");
        const next = await new Promise((resolve) => {
          another.on("connect", () => resolve("connected"));
          another.on("error", ({ code }: NodeJS.ErrnoException) => resolve(code));
        });
        another.destroy();
        return [head, next];
      }),
    );
    expect(answers).toEqual(sockets.map(() => ["HTTP/1.1 200 OK", "ECONNREFUSED"]));
    for (const socket of sockets) socket.destroy();
    expect(await exited).toBe(0);
  });

  test("answers a request that an idle connection sends after the signal, and ends the connection with it", async () => {
    await using service = await serving(POLICIES, ["--shutdown-timeout", "10m"]);
    const [kept, balancer] = [1, 2].map(() => connect(Number(new URL(service.url).port), "127.0.0.1"));
    const send = async (socket: Socket | undefined, path: string): Promise<string> => {
      socket?.setEncoding("utf8").write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
      return (await once(socket as Socket, "data"))[0];
    };
    for (const socket of [kept, balancer]) {
      expect(await send(socket, "/readyz")).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*keep-alive/i);
    }
    const exited = service.end();
    await service.logged("stopping");
    expect(await send(kept, "/healthz")).toMatch(/^HTTP\/1\.1 200 OK[\s\S]*connection: close/i);
    // It sends no more requests here.
    expect(await send(balancer, "/readyz")).toMatch(/^HTTP\/1\.1 503 [\s\S]*connection: close[\s\S]*shutting down/i);
    expect(await exited).toBe(0);
  });

  test("cuts off what takes longer than --shutdown-timeout", async () => {
    await using service = await serving(POLICIES, ["--shutdown-timeout", "100ms"]);
    const slow = connect(Number(new URL(service.url).port), "127.0.0.1");
    slow.on("error", () => {});
    await once(slow, "connect");
    await new Promise((sent) => slow.write("POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", sent));
    await service.request("/healthz");
    expect(await service.end()).toBe(0);
    expect(service.log().at(-1)).toMatchObject({ event: "stopped", message: expect.stringContaining("cut off") });
  });

  test("a client that leaves within its body, or is cut off, is no failure of the service: the log has no line", async () => {
    await using service = await serving(POLICIES, ["--shutdown-timeout", "100ms"]);
    const half = async (rest: string) => {
      const client = connect(Number(new URL(service.url).port), "127.0.0.1");
      client.on("error", () => {});
      const head = "POST /v1/decide HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
      await new Promise((sent) => client.write(`${head}${rest}{"na`, sent));
      await service.request("/healthz");
      return client;
    };
    for (const rest of ["Content-Length: 50\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n32\r\n"]) {
      (await half(rest)).destroy();
      await half(rest);
    }
    expect(await service.end()).toBe(0);
    expect(service.log().map(({ event }) => event)).toEqual(["started", "stopping", "stopped"]);
  });
});
