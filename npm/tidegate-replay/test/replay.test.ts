import { readdirSync, readlinkSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { gzipSync } from "node:zlib";
import { describe, expect, test, vi } from "vitest";
import { type Progress, replay } from "../src/index.ts";
import type { Log } from "../src/log.ts";
import { temporaryFile } from "../src/spool.ts";
import { logs } from "./logs.ts";

const { folder, write } = logs("files");
const OPTIONS = { limits: ["rate=2 period=1s"] };
const row = (i: number): string => `${1_700_000_000 + Math.floor(i / 5)},10.0.0.${i % 3}\n`;
const CSV = `time,ip\n${Array.from({ length: 1000 }, (_, i) => row(i)).join("")}`;

/** Files of replays that are still named in the folder of temporary files. */
const spools = (): string[] => readdirSync(tmpdir()).filter((name) => /^tidegate-replay-[\da-f]{8}-/.test(name));

/** The logs and the files of replays that this process has open. */
function opened(): string[] {
  const linkOf = (fd: string): string => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return "";
    }
  };
  return readdirSync("/proc/self/fd")
    .map(linkOf)
    .filter((path) => path.includes("tidegate-replay-"));
}

describe("replay", () => {
  test("a gzip file of one member or of several is the file", async () => {
    const at = CSV.indexOf("\n", CSV.length / 2) + 1;
    const [first, second] = [CSV.slice(0, at), CSV.slice(at)];
    const plain = await replay([write("plain.csv", CSV)], OPTIONS);
    expect(plain.report.read.requests).toBe(1000);
    for (const packed of [gzipSync(CSV), Buffer.concat([gzipSync(first), gzipSync(second)])]) {
      // Its name does not matter.
      const { report } = await replay([write("packed.csv", packed)], OPTIONS);
      expect({ ...report, read: { ...report.read, formats: [] } }).toEqual({
        ...plain.report,
        read: { ...plain.report.read, formats: [] },
      });
    }
  });

  // A length and an index of WebAssembly have 32 bits.
  test("times 2^32 seconds apart are in different steps, and seconds beyond 2^32 are counted apart", async () => {
    const times = [4_294_967_296, 4_294_967_297, 4_294_967_296, 0];
    const log = write("far.csv", `time,ip\n${times.map((time) => `${time},10.0.0.1\n`).join("")}`);
    const { report } = await replay([log], OPTIONS);
    expect(report.read.requests).toBe(4);
    expect(report.peaks[0]).toEqual({ width: 1000, at: 4_294_967_296_000, tokens: 2 });
  });

  test("a gzip file that is cut is an error that names it", async () => {
    const path = write("cut.gz", gzipSync(CSV));
    truncateSync(path, gzipSync(CSV).length - 9);
    await expect(replay([path], OPTIONS)).rejects.toThrow(`${path} cannot be read: unexpected end of file`);
  });

  test("a file that is missing ends it before any is read, and so does a folder", async () => {
    const log = write("first.csv", CSV);
    const steps: Progress[] = [];
    await expect(replay([log, "/no/such/file"], OPTIONS, (step) => steps.push(step))).rejects.toThrow(
      /^\/no\/such\/file cannot be read: ENOENT/,
    );
    await expect(replay([folder], OPTIONS)).rejects.toThrow(`${folder} cannot be read: it is a folder, not a file`);
    expect(steps).toEqual([]);
  });

  test("reports bytes and requests as it goes, and all bytes where every file has a size", async () => {
    const log = write("long.csv", `time,ip\n${row(0).repeat(200_000)}`);
    const steps: Progress[] = [];
    await replay([log, log], OPTIONS, (step) => steps.push(step));
    const { total } = steps[0] as Progress;
    expect(steps.length).toBeGreaterThan(6);
    // One after 50,000 requests, one after each log, and the last.
    expect(steps.length).toBeLessThanOrEqual(400_000 / 50_000 + 2 + 1);
    expect(steps.every((step, i) => step.requests >= (steps[i - 1]?.requests ?? 0))).toBe(true);
    expect(steps.at(-1)).toEqual({ bytes: total, total, requests: 400_000, read: true });
    expect(steps.slice(0, -1).every(({ read }) => !read)).toBe(true);
  });

  test("two replays in one process, one after a failure, and both at once", async () => {
    const log = write("again.csv", CSV);
    await expect(replay([write("none.log", "hello\n")], OPTIONS)).rejects.toThrow(/no known format/);
    const [one, two] = await Promise.all([replay([log], OPTIONS), replay([log], OPTIONS)]);
    expect(one).toEqual(two);
  });

  test.runIf(process.platform === "linux")("leaves no file open, whether it ends or fails", async () => {
    const log = write("closed.csv", CSV);
    await replay([log], OPTIONS);
    await expect(replay([log, "/no/such/file"], OPTIONS)).rejects.toThrow(/ENOENT/);
    await expect(replay([log, folder], OPTIONS)).rejects.toThrow(/it is a folder/);
    await expect(replay([log], { limits: ["rate=0 period=1s"] })).rejects.toThrow(/`rate` must be/);
    expect(opened()).toEqual([]);
  });

  test("a log that cannot be closed hides no other error, and keeps no file open", async () => {
    vi.resetModules();
    vi.doMock("../src/log.ts", async (load) => {
      const { openLog } = await load<typeof import("../src/log.ts")>();
      const close = (log: Log) => log.close().then(() => Promise.reject(new Error("EIO: i/o error, close")));
      return { openLog: (name: string) => openLog(name).then((log) => ({ ...log, close: () => close(log) })) };
    });
    const { replay: again } = await import("../src/index.ts");
    vi.doUnmock("../src/log.ts");
    const log = write("kept.csv", CSV);
    await expect(again([log, log, `${log}.none`], OPTIONS)).rejects.toThrow(`${log}.none cannot be read: ENOENT`);
    if (process.platform === "linux") expect(opened()).toEqual([]);
  });

  test("leaves no temporary file, not even while it runs", async () => {
    const before = spools();
    const spool = temporaryFile();
    expect(spools()).toEqual(before);
    spool.close();
    await replay([write("left.csv", CSV)], OPTIONS);
    expect(spools()).toEqual(before);
  });

  test("a folder of temporary files that cannot be written is an error with the remedy", async () => {
    vi.stubEnv("TMPDIR", "/no/such/folder");
    vi.stubEnv("TEMP", "/no/such/folder");
    await expect(replay([write("full.csv", CSV)], OPTIONS)).rejects.toThrow(
      /^the requests cannot be kept in a temporary file in \/no\/such\/folder: ENOENT.* TMPDIR .* names another folder$/,
    );
  });

  test.each<[unknown, unknown, string | RegExp]>([
    ["a.csv", OPTIONS, '`files` must be an array of paths; got "a.csv"'],
    [["a.csv"], undefined, "`options` must be an object, such as { limits }; got undefined"],
    [["a.csv"], { limit: ["rate=1 period=1s"] }, "`limit` must be absent: replay has limits, policy, key,"],
    [
      ["a.csv"],
      { limits: "rate=1 period=1s" },
      '`limits` must be an array of strings such as "rate=10 period=1m"; got "rate',
    ],
    [
      ["a.csv"],
      { policy: { rules: [] } },
      "`policy` must be the text of a policy document, as JSON.stringify(document)",
    ],
    [["a.csv"], { ...OPTIONS, budget: 0.001 }, '`budget` must be a string such as "0.1%"; got 0.001'],
    [["a.csv"], { ...OPTIONS, key: "ip" }, '`key` must be an array of strings; got "ip"'],
    [["a.csv"], { ...OPTIONS, maxKeys: "5" }, '`maxKeys` must be an integer from 1 to 4294967295; got "5"'],
    [["a.csv"], { ...OPTIONS, maxKeys: 0 }, "`maxKeys` must be an integer from 1 to 4294967295; got 0"],
    [["a.csv"], { ...OPTIONS, maxKeys: 2 ** 32 }, "`maxKeys` must be an integer from 1 to 4294967295; got 4294967296"],
    [["a.csv"], { ...OPTIONS, maxKeys: Number.NaN }, "`maxKeys` must be an integer from 1 to 4294967295; got NaN"],
    [["a.csv"], { ...OPTIONS, format: "xml" }, '`format` must be common, json or csv; got "xml"'],
    [["a.csv"], { ...OPTIONS, chart: 1 }, "`chart` must be true or false; got 1"],
    [[{ url: "a", password: "hunter2" }], OPTIONS, "`files` must be an array of paths; got an array"],
    [{ password: "hunter2" }, OPTIONS, "`files` must be an array of paths; got an object"],
    ["redis://a:hunter2@b", OPTIONS, '`files` must be an array of paths; got "redis://…"'],
    [5n, OPTIONS, "`files` must be an array of paths; got a bigint"],
    ["\u001b[2J\u202e".repeat(100_000), OPTIONS, /^`files` must be an array of paths; got "[^\p{C}]{80,400}"$/u],
    [["a.csv"], { ["\u001b[2J".repeat(100_000)]: 1 }, /^`[^\p{C}]{80,400}` must be absent: replay has [^\p{C}]+$/u],
  ])("mistake %# is named", async (files, options, message) => {
    await expect(replay(files as string[], options as typeof OPTIONS)).rejects.toThrow(message);
  });

  test("an option that is undefined is as one that is left out", async () => {
    const absent = { limits: undefined, policy: undefined, key: undefined, maxKeys: undefined, chart: undefined };
    const { report } = await replay([write("absent.csv", CSV)], { ...absent, suggest: "0%" });
    expect(report.limits).toHaveLength(1);
  });

  test("draws pictures that need nothing else", async () => {
    const { svg, html } = await replay([write("chart.csv", CSV)], { ...OPTIONS, chart: true });
    expect(svg).toMatch(/^<svg [\s\S]*prefers-color-scheme:dark[\s\S]*granted[\s\S]*<\/svg>\s*$/);
    expect(html).toContain(svg);
    expect((await replay([write("chart.csv", CSV)], OPTIONS)).svg).toBeNull();
  });
});

test("a spool returns what it holds, from any place, and less at its end", () => {
  const spool = temporaryFile();
  spool.write(0, Buffer.from("hello"));
  spool.write(5, Buffer.from(" world"));
  const into = new Uint8Array(8);
  expect([spool.read(6, into), Buffer.from(into.subarray(0, 5)).toString()]).toEqual([5, "world"]);
  expect(spool.read(11, into)).toBe(0);
  spool.close();
  expect(() => spool.read(0, into)).toThrow(/cannot be kept in a temporary file/);
});
