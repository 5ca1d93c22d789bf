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
  ])("%j: exit code 2, and why", async (argv, message) => {
    expect(await tidegate(argv)).toEqual({ code: 2, out: "", err: `tidegate: ${message}` });
  });

  test("a server that does not answer: exit code 1, and the client's error", async () => {
    const { code, err } = await tidegate(["migrate", "--store", "postgres://127.0.0.1:1/none"]);
    expect(code).toBe(1);
    expect(err).toMatch(/^tidegate: the migration failed, and nothing was changed: .*ECONNREFUSED/);
  });
});
