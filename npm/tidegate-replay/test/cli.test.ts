import { existsSync, linkSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, test } from "vitest";
import { HELP } from "../src/help.ts";
import { progressLine, run, UsageError } from "../src/cli.ts";
import { logs } from "./logs.ts";

const { folder, write } = logs("cli");

/** Runs the command line in this process. */
async function command(...argv: string[]): Promise<{ code: number; out: string; status: string[] }> {
  const [out, status] = [[] as string[], [] as string[]];
  const read = (path: string): string => {
    if (path === "p.json") return '{"rules":[]}';
    if (path === "odd.json") return JSON.stringify({ rules: [{ name: "a\u202eb\x1b[2J" }] });
    throw new Error("no such file");
  };
  const terminal = {
    out: (line: string) => void out.push(line),
    read,
    status: (line: string) => void status.push(line),
  };
  return { code: await run(argv, terminal), out: out.join("\n"), status };
}

const LIMIT = ["--limit", "rate=2 period=1s"];

describe("tidegate-replay", () => {
  test("prints its help, which names every option, and its version", async () => {
    expect((await command("--help")).out).toBe(HELP);
    for (const line of HELP.split("\n")) expect(line.length).toBeLessThanOrEqual(100);
    expect((await command("-v")).out).toMatch(/^\d+\.\d+\.\d+/);
  });

  test.each([
    [[], "replay needs a log, or - for standard input"],
    [["a.log", "--max-keys", "0"], "--max-keys must be an integer from 1 to 4294967295; got 0"],
    [["a.log", "--max-keys", "many"], '--max-keys must be a number; got "many"'],
    [["a.log", "--format", "xml"], '--format must be common, json or csv; got "xml"'],
    [["a.log", "--key", "none", "--key", "ip"], "--key none cannot be combined with other keys"],
    [["a.log", "--policy", "q.json"], "cannot read q.json: no such file"],
    [
      ["a.log", "--max-keys", "-1"],
      "Option '--max-keys' argument is ambiguous: write --max-keys=… if the value starts with a dash; see tidegate-replay --help",
    ],
    [["a.log", "--limt", "x"], "Unknown option '--limt'; see tidegate-replay --help"],
    [["a.log", ...LIMIT, "--svg", "-"], '--svg must be the path of a file; got "-": the report is printed there'],
    [["a.log", ...LIMIT, "--period", "5m"], "`period` is only for a proposal without a limit; each limit has its own"],
    [["a.log", "--limit", "rate=1 period=1m rate=2"], /`rate` is given twice$/],
    [["a.log"], /^there is no limit to replay/],
    [["a.log", "--limit", "rate=-1 period=1s"], /`rate` must be a finite number .* got -1$/],
    [["a.log", ...LIMIT, "--budget", "120%"], /from 0 to 1; got "120%"/],
  ])("%j is a mistake with a message", async (argv, message) => {
    const error = await command(...argv).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(UsageError);
    if (typeof message === "string") expect((error as Error).message).toBe(message);
    else expect((error as Error).message).toMatch(message);
  });

  test("a page or picture never replaces the log, the policy or the other one", async () => {
    const csv = "time,ip\n1700000000,a\n";
    const log = write("kept.csv", csv);
    const [link, name] = [join(folder, "link.csv"), join(folder, "name.csv")];
    symlinkSync(log, link);
    linkSync(log, name);
    const page = join(folder, "page.html");
    for (const argv of [
      [log, ...LIMIT, "--html", log],
      [log, ...LIMIT, "--svg", link],
      [log, ...LIMIT, "--html", name],
      [log, ...LIMIT, "--html", page, "--svg", join(folder, "..", basename(folder), "page.html")],
      [log, "--policy", "p.json", "--html", "./p.json"],
    ])
      await expect(command(...argv)).rejects.toThrow(
        /^--(html|svg) .* would replace a file of this command; name another$/,
      );
    expect(readFileSync(log, "utf8")).toBe(csv);
    expect(existsSync(page)).toBe(false);
  });

  test("reports as text or as JSON, and shows how far it is", async () => {
    const log = write("three.csv", "time,ip,cost\n1700000000,a,1\n1700000000,a,1\n1700000000,a,1\n");
    const text = await command(log, ...LIMIT);
    expect(text.code).toBe(0);
    expect(text.out).toMatch(/^ {2}granted +2 +66\.67 %$/m);
    expect(text.status).toEqual([
      `[${"#".repeat(30)}] 100 %  3 requests`,
      "3 requests read; looking for the smallest capacity …",
      "",
    ]);
    const json = await command(log, ...LIMIT, "--key", "none", "--cost", "cost", "--json");
    expect(JSON.parse(json.out)).toMatchObject({
      granted: 2,
      denied: 1,
      tokens: 3,
      // What is absent is `null`, not left out.
      limits: [{ key: [], keysDenied: null, suggestion: null, smallestCapacity: 3 }],
      waits: { max: 500 },
    });
  });

  test("what it prints has no character that a terminal obeys, or that turns or hides text", async () => {
    const key = "\u009b31m\u007f\u202e\u200b\u{e0041}é漢";
    const log = write("odd.json", `${JSON.stringify({ time: 1000, key })}\n`.repeat(3));
    const odd = /(?!\n)[\p{Cc}\p{Cf}]/u;
    const json = (await command(log, ...LIMIT, "--key", "key", "--json")).out;
    expect(JSON.parse(json).limits[0].worst[0].key).toContain(key);
    const { out } = await command(log, ...LIMIT, "--key", "key");
    expect(out).toContain("é漢");
    const { message } = (await command(log, "--policy", "odd.json").catch((error: unknown) => error)) as Error;
    expect(message).toContain("a\\u202eb");
    for (const text of [json, out, message]) expect(text).not.toMatch(odd);
  });

  test.each([
    ["34%", 0],
    ["0.34", 0],
    ["33%", 1],
  ])("a budget of %s for one denial of three ends with %i", async (budget, code) => {
    const log = write("budget.csv", "time,ip\n1700000000,a\n1700000000,a\n1700000000,a\n");
    expect((await command(log, ...LIMIT, "--budget", budget)).code).toBe(code);
    expect((await command(log, "--suggest", "--budget", budget)).code).toBe(0);
  });

  test.each([
    [100, 71, "29%", 0],
    [100, 71, "0.29", 0],
    [100, 71, "28.9%", 1],
    [1000, 993, "0.7%", 0],
    [1000, 993, "0.0069", 1],
  ])("of %i requests %i are granted: a budget of %s ends with %i", async (requests, granted, budget, code) => {
    const log = write("share.csv", `time,ip\n${"1700000000,a\n".repeat(requests)}`);
    expect((await command(log, "--limit", `rate=${granted} period=1h`, "--budget", budget)).code).toBe(code);
  });

  test("a picture that cannot be written is a mistake that names it, after the report", async () => {
    const log = write("picture.csv", "time,ip\n1700000000,a\n");
    const out: string[] = [];
    const terminal = { out: (line: string) => void out.push(line), read: () => "" };
    const running = run([log, ...LIMIT, "--svg", `${folder}/none/a.svg`], terminal);
    await expect(running).rejects.toThrow(/^cannot write .*a\.svg: /);
    expect(out).toEqual([(await command(log, ...LIMIT)).out]);
  });

  test("progress has a bar where the size is known, and MB where it is not", () => {
    const step = { bytes: 50, total: 200, requests: 1234, read: false };
    expect(progressLine(step)).toBe(`[########${".".repeat(22)}] 25 %  1,234 requests`);
    expect(progressLine({ ...step, bytes: 3e6, total: undefined })).toBe("1,234 requests, 3 MB");
    expect(progressLine({ ...step, bytes: 0, total: 0 })).toBe(`[${".".repeat(30)}] 0 %  1,234 requests`);
  });
});
