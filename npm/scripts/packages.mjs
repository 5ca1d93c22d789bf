// `node npm/scripts/packages.mjs [folder]` makes the tarballs of the packages as they are published.
//
// npm publishes a copy of npm/tidegate with what only a release has: the addon's packages as optional dependencies at
// the same version, and the licences of linked code. The repository cannot name those packages: npm would look them up in
// the registry, or refuse to link those of other systems.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { build } from "./build.mjs";
import { thirdParty } from "./licences.mjs";
import { MAIN, PLATFORMS } from "./linked.mjs";
import { addonOf } from "./platforms.mjs";
import { output, root, stop } from "./run.mjs";

const source = (name) => join(root, "npm", name);

/** The platforms whose addon was built or copied here. */
export const built = () => Object.keys(PLATFORMS).filter((name) => existsSync(addonOf(name)));

function manifestOf(name) {
  const manifest = JSON.parse(readFileSync(join(source(name), "package.json"), "utf8"));
  manifest.files = [...manifest.files, "THIRD-PARTY-LICENSES"];
  if (name !== "tidegate") return manifest;
  const { version } = manifest;
  const platforms = Object.keys(PLATFORMS).map((platform) => [`@tidegate/${platform}`, version]);
  return { ...manifest, optionalDependencies: Object.fromEntries(platforms) };
}

/** Copies one package into its own folder there, ready to be packed. */
function stage(name, folder) {
  const place = join(folder, name);
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  const manifest = manifestOf(name);
  writeFileSync(join(place, "package.json"), `${JSON.stringify(manifest, undefined, 2)}\n`);
  writeFileSync(join(place, "THIRD-PARTY-LICENSES"), thirdParty(name));
  cpSync(join(root, "LICENSE"), join(place, "LICENSE"));
  if (MAIN.includes(name)) {
    // The build has changed tidegate's links to lead to the repository.
    cpSync(join(source(name), "README.md"), join(place, "README.md"));
    cpSync(join(source(name), "dist"), join(place, "dist"), { recursive: true });
  } else {
    cpSync(addonOf(name), join(place, basename(addonOf(name))));
    writeFileSync(
      join(place, "README.md"),
      `# ${manifest.name}\n\n${manifest.description}. npm installs it with tidegate.\n`,
    );
  }
  return place;
}

/**
 * Stages the packages, those of platforms first: a package must not be published before its dependencies.
 *
 * @param {string} folder
 * @param {string[]} [platforms] default: those that are built
 */
export const stageAll = (folder, platforms = built()) => [...platforms, ...MAIN].map((name) => stage(name, folder));

/**
 * Makes their tarballs in the folder, and returns npm's report of each.
 *
 * @param {string} folder
 * @param {string[]} platforms
 */
function packAll(folder, platforms) {
  mkdirSync(folder, { recursive: true });
  const staged = stageAll(join(folder, "staged"), platforms);
  const json = output("npm", ["pack", "--json", "--ignore-scripts", "--pack-destination", folder, ...staged]);
  if (json === undefined) stop("npm pack failed");
  rmSync(join(folder, "staged"), { recursive: true });
  const packed = JSON.parse(json);
  // For publish.mjs, in the order in which to publish them.
  const listed = packed.map(({ name, version, filename }) => ({ name, version, filename }));
  writeFileSync(join(folder, "packages.json"), `${JSON.stringify(listed, undefined, 2)}\n`);
  return packed;
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const words = process.argv.slice(2).filter((word) => !word.startsWith("-"));
  // `--as-built`: what is there is packed, and nothing is built; `--no-addons`: without those of platforms; `--json`: npm's own
  // words about each tarball.
  if (!process.argv.includes("--as-built")) await build();
  const packed = packAll(
    words[0] ?? join(root, "target", "packages"),
    process.argv.includes("--no-addons") ? [] : built(),
  );
  if (process.argv.includes("--json")) console.log(JSON.stringify(packed));
  else for (const { filename, size } of packed) console.log(`${filename}, ${size} bytes`);
}
