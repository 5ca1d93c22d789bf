/** Folders that cannot be used: the error has the path and a remedy, and `onStoreError` applies. */
import { execFileSync } from "node:child_process";
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { defineLimits, isStoreError, type StoreError } from "tidegate";
import { file } from "tidegate/file";
import { clear, folder, run } from "./fixture.ts";

afterAll(clear);

const bucket = { kind: "token bucket", rate: 1, period: 3_600_000, capacity: 10 } as const;
const linux = process.platform === "linux";

function refused(path: string): StoreError {
  try {
    file(path);
  } catch (error) {
    if (!isStoreError(error)) throw error;
    expect(error).toMatchObject({ store: "file", operation: "open", identity: path });
    expect(error.message).toContain(path);
    return error;
  }
  throw new Error(`${path} was opened`);
}

describe("a folder that cannot be opened", () => {
  test("is a path of a file: the error has the remedy", () => {
    const path = folder();
    writeFileSync(path, "");
    expect(refused(path).message).toContain("use the path of a folder");
  });

  test.runIf(linux)("is one in which no file can be made: the error has the reason", () => {
    expect(refused("/proc/tidegate").message).toContain("the folder cannot be used");
  });

  test.runIf(process.getuid !== undefined)("is another user's: the error has the remedy", async () => {
    const [own, other] = [folder(), folder()];
    mkdirSync(other);
    chmodSync(other, process.getuid?.() === 0 ? 0o700 : 0o500);
    chmodSync(dirname(other), 0o755);
    const [how, output] = await run("stranger.mjs", [own, other]).over;
    expect(how).toBe(0);
    expect(output).toContain("TIDEGATE_STORE file: open of");
    expect(output).toContain(other);
    expect(output).toContain("give this process's user the right to read and write there");
  });

  test("has a damaged file, until that is removed: then it opens with the last snapshot", () => {
    const path = folder();
    const store = file(path);
    const at = { store, now: () => 1_800_000_000_000 };
    for (let i = 0; i < 300; i++) defineLimits({ one: bucket }, at).limit("one", { key: `${i}`, count: 9 });
    store.close();
    const data = join(path, "data.mdb");
    const descriptor = openSync(data, "r+");
    for (let page = 2; page < 200; page++) writeSync(descriptor, Buffer.alloc(64, 0xa5), 0, 64, page * 4096 + 4032);
    closeSync(descriptor);
    expect(refused(path).message).toMatch(
      /data\.mdb is corrupt: page \d+ .*; stop all that use it and remove data\.mdb/,
    );
    execFileSync("rm", [data]);
    const again = file(path);
    expect(defineLimits({ one: bucket }, { ...at, store: again }).limit("one", { key: "7", count: 2 }).ok).toBe(false);
    again.close();
  });

  test.runIf(linux)("is on a disk without room, which is reported before anything is mapped", async () => {
    const path = folder();
    const [how, output] = await run("stranger.mjs", [path, path], ["sh", "-c", 'ulimit -f 2048; exec "$@"', "sh"]).over;
    expect(how).toBe(1);
    expect(output).toContain("this process may write 1048576");
    expect(output).toContain("raise the limit on the size of files (ulimit -f), or set a smaller `maxKeys`");
    file(path).close();
  });

  const mounted = folder();
  const mounts = (): boolean => {
    try {
      mkdirSync(mounted, { recursive: true });
      execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", mounted], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };
  const tiny = linux && mounts();
  afterAll(() => {
    if (tiny) execFileSync("umount", ["-l", mounted]);
  });
  test.runIf(tiny)("is on a file system with room for the lock file alone: no signal ends the process", async () => {
    execFileSync("mount", ["-o", "remount,size=64k", mounted]);
    const path = join(mounted, "locks");
    const [how, output] = await run("stranger.mjs", [path, path]).over;
    expect(how).toBe(1);
    expect(output).toContain("No space left on device");
    rmSync(path, { recursive: true });
    execFileSync("mount", ["-o", "remount,size=1m", mounted]);
  });

  test.runIf(tiny)("is on a file system of 1 MiB: the failed open leaves nothing that fails the next one", () => {
    const path = join(mounted, "limits");
    const { message } = refused(path);
    expect(message).toMatch(/no room for \d+ bytes of data\.mdb: No space left on device/);
    expect(message).toContain("; free space there, use another disk, or set a smaller `maxKeys`");
    execFileSync("mount", ["-o", "remount,size=64m", mounted]);
    const store = file(path);
    expect(defineLimits({ one: bucket }, { store }).limit("one").ok).toBe(true);
    store.close();
    execFileSync("mount", ["-o", "remount,ro", mounted]);
    expect(refused(path).message).toContain("use a folder on a file system that is mounted for writing");
  });
});

/** XFS, on which a copy of a file shares its blocks until one of the two is written. */
describe("a folder whose files share blocks with others", () => {
  const mounted = folder();
  const image = `${mounted}.image`;
  const unmount = (): unknown => execFileSync("umount", ["-l", mounted]);
  const mounts = (): boolean => {
    try {
      mkdirSync(mounted, { recursive: true });
      execFileSync("truncate", ["-s", "320M", image]);
      execFileSync("mkfs.xfs", ["-q", "-f", "-m", "reflink=1", image], { stdio: "ignore" });
      execFileSync("mount", ["-o", "loop", image, mounted], { stdio: "ignore" });
      return true;
    } catch {
      return false;
    }
  };
  // Not kept mounted: where no test of this file is chosen, nothing would unmount it.
  const xfs = linux && mounts() && unmount() !== undefined;
  afterAll(() => rmSync(image, { force: true }));
  test.runIf(xfs)("needs no new ones once it is open: no signal ends the process when the disk is full", async () => {
    expect(mounts()).toBe(true);
    try {
      const path = join(mounted, "limits");
      for (const fills of ["", join(mounted, "rest")]) {
        const [how, output] = await run("full.mjs", [path, fills]).over;
        expect([how, output]).toEqual([0, "20000 allowed\n"]);
        // As after a power cut: the last snapshot is copied to the data file.
        writeFileSync(join(path, "run"), "another run\nevery 1000 ms\n");
      }
    } finally {
      unmount();
    }
  });
});

describe("a folder that fails later", () => {
  const closed = (onStoreError?: "allow" | "deny" | { local: number }) => {
    const store = file(folder());
    const limits = defineLimits({ one: bucket, two: bucket }, { store, onStoreError, now: () => 1_800_000_000_000 });
    expect(limits.limit("one").degraded).toBeUndefined();
    store.close();
    return { limits, store };
  };

  test("denies by default, with the cause", () => {
    const { limits, store } = closed();
    const d = limits.limit("one", { key: "ann" });
    expect([d.ok, d.degraded]).toEqual([false, true]);
    expect((d.cause as Error).message).toBe('file: take of "one:ann" failed: it was closed; open it again');
    expect(isStoreError(d.cause)).toBe(true);
    expect(limits.limitAll([{ name: "one" }, { name: "two" }])).toMatchObject({ ok: false, degraded: true });
    expect(limits.limitMany("one", ["a", "b"]).map(({ ok, degraded }) => [ok, degraded])).toEqual([
      [false, true],
      [false, true],
    ]);
    expect(() => limits.reset("one")).toThrow('file: reset of "one" failed');
    expect(() => limits.getValue("one")).toThrow('file: getValue of "one" failed');
    expect(() => store.stats()).toThrow("it was closed");
  });

  test("allows, or decides in memory, as onStoreError sets", () => {
    expect(closed("allow").limits.limit("one")).toMatchObject({ ok: true, degraded: true });
    const { limits } = closed({ local: 0.5 });
    const granted = Array.from({ length: 12 }, () => limits.limit("one", { key: "ann" }));
    expect(granted.filter(({ ok }) => ok)).toHaveLength(5);
    expect(granted[0]).toMatchObject({ degraded: true, limit: 5 });
  });

  test("throws for a wrong argument of the call", () => {
    const { limits } = closed("allow");
    expect(() => limits.limit("one", { count: Number.NaN })).toThrow("`count` must be a finite number");
    expect(() => limits.limit("one", { key: "x".repeat(1025) })).toThrow("`key` must be");
  });
});

test("a denied or checked call writes nothing", () => {
  const path = folder();
  const store = file(path, { sync: "always" });
  const limits = defineLimits({ one: bucket }, { store, now: () => 1_800_000_000_000 });
  limits.limit("one", { key: "ann", count: 10 });
  const before = readFileSync(join(path, "data.mdb"));
  for (let i = 0; i < 50; i++) {
    expect(limits.limit("one", { key: "ann" }).ok).toBe(false);
    expect(limits.check("one", { key: `bob ${i}` }).ok).toBe(true);
    expect(
      limits.limitAll([
        { name: "one", key: "cid" },
        { name: "one", key: "ann" },
      ]).ok,
    ).toBe(false);
  }
  expect(readFileSync(join(path, "data.mdb")).equals(before)).toBe(true);
  store.close();
});
