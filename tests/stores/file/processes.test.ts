/** Several processes on one folder: exact, and whatever is killed. */
import { existsSync, readFileSync } from "node:fs";
import { setTimeout as after } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { defineLimits } from "tidegate";
import { type FileStore, file } from "tidegate/file";
import { clear, folder, type Running, run } from "./fixture.ts";

afterAll(clear);

const bucket = { kind: "token bucket", rate: 1, period: 2 ** 40 } as const;

/** What the folder says was taken, and what those who took it noted. */
function taken(store: FileStore, notes: readonly string[]) {
  const limits = defineLimits(
    { many: { ...bucket, capacity: 1_000_000 }, few: { ...bucket, capacity: 500 } },
    { store, now: () => 1_800_000_000_000 },
  );
  const value = (name: "many" | "few", key: string): number => limits.getValue(name, { key }).value;
  let spread = 0;
  for (let i = 0; i < 1000; i++) spread += 1_000_000 - value("many", `key ${i}`);
  const noted = notes
    .filter((path) => existsSync(path))
    .map((path) => readFileSync(path, "utf8"))
    .join("");
  const count = (letter: string): number => noted.split(letter).length - 1;
  return {
    stored: { many: 1_000_000 - value("many", "hot"), few: 500 - value("few", "hot"), both: spread },
    noted: { many: count("m") + count("b"), few: count("f"), both: count("b") },
  };
}

test("four processes take exactly the capacity, and all of it is stored afterwards", async () => {
  const path = folder();
  const notes = [0, 1, 2, 3].map((i) => `${path}-notes-${i}`);
  const ends = await Promise.all(notes.map((note) => run("taker.mjs", [path, note, "400"]).over));
  expect(ends).toEqual(notes.map(() => [0, ""]));
  const store = file(path);
  const { stored, noted } = taken(store, notes);
  expect(noted).toEqual({ many: 3200, few: 500, both: 1600 });
  expect(stored).toEqual(noted);
  store.close();
});

test("processes that are killed at any moment lose no decision that was returned, and leave no lock", async () => {
  const path = folder();
  const notes: string[] = [];
  const start = (calls = "1000000"): Running => {
    notes.push(`${path}-notes-${notes.length}`);
    return run("taker.mjs", [path, notes.at(-1) as string, calls]);
  };
  /** Resolves when it has taken something, or has ended, which fails the test. */
  const takes = async (note: string, one: Running): Promise<void> => {
    const { child } = one;
    const runs = () => child.exitCode === null && child.signalCode === null;
    while (runs() && !(existsSync(note) && readFileSync(note).length > 0)) await after(5);
  };
  const running = [start(), start(), start()];
  const KILLS = 6;
  for (let kill = 0; kill < KILLS; kill++) {
    // One that has begun, at no moment in particular, while the others go on.
    const one = running.shift() as Running;
    await takes(notes[kill] as string, one);
    await after(Math.random() * 20);
    one.child.kill("SIGKILL");
    expect(await one.over, `process ${kill}`).toEqual(["SIGKILL", ""]);
    running.push(start());
  }
  for (const one of running) one.child.kill("SIGKILL");
  expect(await Promise.all(running.map((one) => one.over))).toEqual(running.map(() => ["SIGKILL", ""]));
  // The next process does not wait, and takes what is left.
  expect(await start("600").over).toEqual([0, ""]);
  const store = file(path);
  const { stored, noted } = taken(store, notes);
  store.close();
  // Of each that was killed, one call may have been carried out and not been noted, or not even answered.
  const unnoted = KILLS + running.length;
  for (const name of ["many", "few", "both"] as const) {
    expect(stored[name] - noted[name], name).toBeGreaterThanOrEqual(0);
    expect(stored[name] - noted[name], name).toBeLessThanOrEqual(unnoted);
  }
  expect(stored.few).toBe(500);
  expect(noted.few).toBeLessThanOrEqual(500);
  expect(noted.many).toBeGreaterThan(0);
}, 240_000);
