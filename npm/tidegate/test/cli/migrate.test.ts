import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { migration } from "../../src/stores/postgres.ts";
import { tidegate } from "./terminal.ts";

describe("tidegate migrate", () => {
  test("--print prints the migration, with its settings", async () => {
    expect(await tidegate(["migrate", "--print"])).toEqual({ code: 0, out: migration().trimEnd(), err: "" });
    const { out } = await tidegate(["migrate", "--print", "--schema", "limits", "--unlogged"]);
    expect(out).toBe(migration({ schema: "limits", unlogged: true }).trimEnd());
    expect(out).toContain('CREATE UNLOGGED TABLE IF NOT EXISTS "limits".states');
  });

  test.each([
    [["migrate"], "migrate needs --store or --print; see tidegate help migrate"],
    [
      ["migrate", "--store", "redis://localhost"],
      "--store must be a URL that begins with postgres:// or postgresql://",
    ],
    [["migrate", "--store", "mysql://x"], '--store must be postgres://<user>@<host>/<database>; got "mysql://x"'],
    [
      ["migrate", "--print", "--schema", ""],
      '`schema` must be a name of 1 to 63 bytes of UTF-8 without U+0000; got ""',
    ],
    [["migrate", "now"], 'migrate takes no "now"'],
  ])("%j exits with 2 and prints the reason", async (argv, message) => {
    expect(await tidegate(argv)).toEqual({ code: 2, out: "", err: `tidegate: ${message}` });
  });

  test("exits with 1 and prints the client's error if a server does not answer", async () => {
    const { code, err } = await tidegate(["migrate", "--store", "postgres://127.0.0.1:1/none"]);
    expect(code).toBe(1);
    expect(err).toMatch(/^tidegate: the migration failed, and nothing was changed: .*ECONNREFUSED/);
  });

  /** A server of PostgreSQL's protocol that lets any client in, and answers its first statement so. */
  async function answering(answer: (socket: Socket) => void): Promise<{ url: string; close: () => void }> {
    const message = (type: string, body: Buffer): Buffer => {
      const length = Buffer.alloc(4);
      length.writeInt32BE(body.length + 4);
      return Buffer.concat([Buffer.from(type), length, body]);
    };
    const server = createServer((socket) => {
      socket.on("error", () => undefined);
      socket.once("data", () => {
        socket.write(Buffer.concat([message("R", Buffer.alloc(4)), message("Z", Buffer.from("I"))]));
        socket.once("data", () => answer(socket));
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    return { url: `postgres://u@127.0.0.1:${port}/db`, close: () => server.close() };
  }
  const error = (code: string): Buffer => {
    const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0Mno luck\0\0`);
    const head = Buffer.from("E\0\0\0\0");
    head.writeInt32BE(fields.length + 4, 1);
    return Buffer.concat([head, fields]);
  };

  test.each<[string, (socket: Socket) => void, string]>([
    ["the connection is lost", (socket) => socket.destroy(), "it is unknown whether it was done; run it again"],
    [
      "the server shuts down",
      (socket) => socket.end(error("57P01")),
      "it is unknown whether it was done; run it again",
    ],
    ["the server refuses it", (socket) => socket.end(error("42501")), "nothing was changed"],
  ])("exits with 1 and prints what is known where %s after the statement was sent", async (_, answer, known) => {
    const { url, close } = await answering(answer);
    try {
      const { code, err } = await tidegate(["migrate", "--store", url]);
      expect([code, err.startsWith(`tidegate: the migration failed, and ${known}: `)]).toEqual([1, true]);
    } finally {
      close();
    }
  });
});
