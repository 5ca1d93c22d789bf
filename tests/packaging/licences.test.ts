import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import satisfies from "spdx-satisfies";
import { afterAll, describe, expect, test } from "vitest";
import { remove, temporaryFolder } from "../support/folders.ts";
import { forTests, install, output, root } from "./installed.ts";

/** Redistribution only requires the notices, which THIRD-PARTY-LICENSES has. The same list as in deny.toml. */
const ALLOWED = ["MIT", "Apache-2.0", "BSD-3-Clause", "BSL-1.0", "ISC", "OLDAP-2.8", "Unicode-3.0", "Zlib"];

interface Bill {
  metadata: { component: { name: string; version: string; purl: string } };
  components: { name: string; version: string; licenses: { expression?: string; license?: { id: string } }[] }[];
}

const user = forTests(install({ addons: true }));
const folder = temporaryFolder("sbom");
afterAll(() => remove(folder));
const files = output(process.execPath, ["npm/scripts/sbom.mjs", folder], { cwd: root }).trim().split("\n");
const bills = files.map((file) => {
  const text = readFileSync(file, "utf8");
  const bill = JSON.parse(text) as Bill;
  return { name: bill.metadata.component.name, text, bill };
});

const expression = ({ licenses: [one] }: Bill["components"][number]): string =>
  one?.expression ?? one?.license?.id ?? "none";

describe("what is linked into a package", () => {
  test("is under a licence that is allowed, on every platform, the C code too", () => {
    expect(bills).toHaveLength(12);
    for (const { name, bill } of bills) {
      // The console has no crate: React and uPlot are in its page.
      expect(bill.components.length, name).toBeGreaterThan(name === "tidegate-console" ? 3 : 10);
      const wrong = bill.components.filter((part) => !satisfies(expression(part), ALLOWED));
      expect(
        wrong.map((part) => `${part.name}: ${expression(part)}`),
        name,
      ).toEqual([]);
      const c = bill.components.filter((part) => part.name === "LMDB").map(expression);
      expect(c, name).toEqual(name.startsWith("@tidegate/") ? ["OLDAP-2.8"] : []);
    }
  });

  test("is listed in a valid CycloneDX bill of materials", async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    for (const { name, text } of bills) expect(await validator.validate(text), name).toBeNull();
  });

  test("is listed for a package that has the URL of its name and version", () => {
    const urls = bills.map(({ bill: { metadata } }) => {
      const { name, version, purl } = metadata.component;
      return [name, purl.replace(`@${version}`, "@…")];
    });
    // A scope's @ is encoded: the version is behind the only one.
    expect(urls).toContainEqual(["tidegate", "pkg:npm/tidegate@…"]);
    expect(urls).toContainEqual(["@tidegate/linux-x64-gnu", "pkg:npm/%40tidegate/linux-x64-gnu@…"]);
  });

  test("is what cargo links: each of these crates for the engine and the addon", () => {
    const names = (of: string) => bills.find(({ name }) => name === of)?.bill.components.map(({ name }) => name);
    expect(names("tidegate")).toEqual(expect.arrayContaining(["talc", "serde-wasm-bindgen", "xxhash-rust"]));
    expect(names("@tidegate/linux-x64-gnu")).toEqual(
      expect.arrayContaining(["napi", "heed", "lmdb-master-sys", "LMDB"]),
    );
    expect(names("@tidegate/win32-x64-msvc")).toContain("winapi");
  });

  test("is named with its licence's text in the tarball's THIRD-PARTY-LICENSES", () => {
    const tools = [user.replay, user.serve, user.console].map((one) => ({ ...one, name: one.packed.name }));
    const packed = [{ name: "tidegate", tarball: user.tarball }, ...tools, ...user.addons];
    for (const { name, tarball } of packed) {
      const notices = output("tar", ["-xzOf", tarball, "package/THIRD-PARTY-LICENSES"]);
      const { components = [] } = bills.find((one) => one.name === name)?.bill ?? {};
      const [list = "", ...texts] = notices.split(/^={80}$/m);
      // Headings and texts alternate.
      const headings = texts.filter((_, index) => index % 2 === 0).join(", ");
      for (const { name: part, version } of components) {
        expect(list, name).toContain(`\n${part} ${version}, `);
        expect(headings, name).toContain(`${part} ${version}`);
      }
      expect(texts.filter((_, index) => index % 2 === 1).every((text) => text.trim().length > 50)).toBe(true);
      if (name.startsWith("@")) expect(notices).toContain("The OpenLDAP Public License");
      // Two packages have their notice in their README alone.
      if (name === "tidegate-serve") expect(notices).toMatch(/^Copyright \(c\) .*Hannes Hörl$/m);
      expect(notices).not.toContain("its authors");
    }
  });
});

test("deny.toml allows the same licences, and those of every crate that is built or tested with", () => {
  const deny = readFileSync(join(root, "deny.toml"), "utf8");
  const list = /^allow = \[([^\]]+)\]/m.exec(deny)?.[1] ?? "";
  const allowed = [...list.matchAll(/"([^"]+)"/g)].map(([, id]) => id as string);
  expect(allowed).toEqual(expect.arrayContaining(ALLOWED));
  const args = ["metadata", "--format-version", "1", "--locked"];
  const { packages } = JSON.parse(output("cargo", args, { cwd: root, maxBuffer: 2 ** 28 })) as {
    packages: { name: string; license: string | null }[];
  };
  expect(packages.length).toBeGreaterThan(100);
  // Crates wrote OR as a slash before SPDX.
  const licence = (crate: { license: string | null }) => crate.license?.replaceAll("/", " OR ") ?? "none";
  const wrong = packages.filter((crate) => !satisfies(licence(crate), allowed));
  expect(wrong.map((crate) => `${crate.name}: ${licence(crate)}`)).toEqual([]);
});
