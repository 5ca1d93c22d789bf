import { describe, expect, test } from "vitest";
import { COMMANDS, main } from "../../src/cli/main.ts";
import { messagesOf } from "../../src/cli/output.ts";
import { tidegate } from "./terminal.ts";

describe("tidegate", () => {
  test("without a command it prints the help and fails; with --help it succeeds", async () => {
    const [bare, help] = [await tidegate([]), await tidegate(["--help"])];
    expect([bare.code, bare.out]).toEqual([2, ""]);
    expect(help).toEqual({ code: 0, out: bare.err, err: "" });
    for (const { name, summary } of COMMANDS) expect(help.out).toMatch(new RegExp(`^  ${name} +${summary}$`, "m"));
  });

  test("throws what is no mistake of the user: a defect has its stack", async () => {
    const defect = new TypeError("a defect");
    const out = (): never => {
      throw defect;
    };
    const terminal = { out, err: () => {}, read: () => "", exists: () => false, now: () => 0 };
    await expect(main(["--version"], "1.2.3", terminal)).rejects.toBe(defect);
  });

  test("prints its version", async () => {
    expect(await tidegate(["--version"])).toEqual({ code: 0, out: "1.2.3", err: "" });
  });

  const own = COMMANDS.flatMap(({ name, help, options }) => (options === "forwarded" ? [] : [{ name, help, options }]));
  test.each(own)(
    "$name has a help that names each of its options, with --help and with help",
    async ({ name, help, options }) => {
      expect(await tidegate([name, "--help"])).toEqual({ code: 0, out: help, err: "" });
      expect(await tidegate(["help", name])).toEqual({ code: 0, out: help, err: "" });
      for (const option of Object.keys(options)) expect(help).toContain(`--${option}`);
      for (const line of help.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    },
  );

  test("suggests the command closest to an unknown one, or the help", async () => {
    expect((await tidegate(["heades"])).err).toBe('tidegate: there is no command "heades"; did you mean headers?');
    expect((await tidegate(["__proto__"])).err).toBe('tidegate: there is no command "__proto__"; see tidegate --help');
    expect((await tidegate(["help", "toString"])).code).toBe(2);
  });

  test("prints one line for an unknown option and for a missing value", async () => {
    const unknown = await tidegate(["headers", "--rat", "1"]);
    const meant = "tidegate: Unknown option '--rat': did you mean --rate? See tidegate help headers";
    expect([unknown.code, unknown.err]).toEqual([2, meant]);
    expect((await tidegate(["headers", "--quite-other", "1"])).err).toBe(
      "tidegate: Unknown option '--quite-other'; see tidegate help headers",
    );
    expect((await tidegate(["headers", "--rate"])).err).toMatch(
      /^tidegate: Option '--rate.*; see tidegate help headers$/,
    );
    expect((await tidegate(["headers", "--rate", "-1"])).err).toBe(
      "tidegate: Option '--rate' argument is ambiguous: write --rate=… if the value starts with a dash; see tidegate help headers",
    );
  });
});

describe("the messages of an error", () => {
  const chain = (messages: readonly string[]): unknown =>
    messages.reduceRight<unknown>((cause, message) => new Error(message, { cause }), undefined);

  test("are those of its first four causes too, each once", () => {
    expect(messagesOf(chain(["it failed", "failed", "x", "y", "z", "w"]))).toBe("it failed: x: y: z");
  });

  test("end where a cause leads back to the error", () => {
    const error = new Error("the pool is closed");
    error.cause = new Error("lost", { cause: error });
    expect(messagesOf(error)).toBe("the pool is closed: lost");
  });

  test("of an AggregateError without a message are those of its first error, and end where that leads back to it", () => {
    const refused = new AggregateError(
      [new Error("connect ECONNREFUSED ::1:6379", { cause: new Error("no route") })],
      "",
    );
    expect(messagesOf(new Error("no connection", { cause: refused }))).toBe(
      "no connection: connect ECONNREFUSED ::1:6379: no route",
    );
    const own = new AggregateError([], "");
    own.errors = [own];
    expect(messagesOf(own)).toBe("AggregateError");
  });
});
