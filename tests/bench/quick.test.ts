import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { remove, temporaryFolder } from "../support/folders.ts";

const run = fileURLToPath(new URL("process/run.mjs", import.meta.url));

test("each contender decides correctly before it is measured, and each case has a figure", {
  timeout: 600_000,
}, () => {
  const folder = temporaryFolder("bench");
  try {
    const json = join(folder, "figures.json");
    const only = ["tidegate", "tidegate-shared", "plain-slots", "express", "floor"];
    const bench = spawnSync(
      process.execPath,
      [run, "--quick", "--only", only.join(","), "--case", "hot,short-allow,memory,threads-1", "--json", json],
      { encoding: "utf8" },
    );
    expect(bench.stdout).not.toContain("left out");
    expect(bench.status, bench.stdout + bench.stderr).toBe(0);
    const { cases } = JSON.parse(readFileSync(json, "utf8"));
    expect(cases.map((one: { id: string }) => one.id)).toEqual([
      "hot-allow",
      "hot-deny",
      "short-allow",
      "memory",
      "memory-4",
      "threads-1",
    ]);
    for (const { id, rows } of cases) {
      const measured = rows.map((row: { id: string }) => row.id);
      const shared = id.startsWith("memory") ? [] : ["tidegate-shared"];
      const others = id.startsWith("threads") || id === "memory-4" ? [] : ["express", "floor"];
      expect(measured, id).toEqual(["tidegate", ...shared, "plain-slots", ...others]);
      for (const { figures } of rows) expect(figures[0].median, id).toEqual(expect.any(Number));
    }
  } finally {
    remove(folder);
  }
});

test("every suite prints tables with all contenders, if its server is installed", { timeout: 600_000 }, () => {
  const folder = temporaryFolder("bench");
  try {
    const json = join(folder, "figures.json");
    const all = fileURLToPath(new URL("run.mjs", import.meta.url));
    const names = ["file", "redis", "lease", "postgres", "http", "serve", "sizes"];
    const bench = spawnSync(process.execPath, [all, "--quick", "--suite", names.join(","), "--json", json], {
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    });
    expect(bench.status, bench.stdout + bench.stderr).toBe(0);
    const suites = JSON.parse(readFileSync(json, "utf8"));
    for (const name of names) {
      if (suites[name] === undefined) expect(bench.stdout).toContain(`!!! ${name} is left out`);
      for (const { title, head, rows } of suites[name]?.tables ?? []) {
        expect(rows.length, title).toBeGreaterThan(0);
        for (const row of rows) expect(row.length, title).toBe(head.length);
      }
    }
    if (process.env["TIDEGATE_REQUIRE_ALL"] === "1") expect(Object.keys(suites)).toEqual(names);
  } finally {
    remove(folder);
  }
});
