// THIRD-PARTY-LICENSES: everything that is linked into a package, its licence, and the text of each licence once.
import { join } from "node:path";
import { linked, MAIN, read } from "./linked.mjs";
import { root } from "./run.mjs";

const LINE = "=".repeat(80);

/** The MIT licence for parts that name it and publish no text. */
const mit = (authors) => read(join(root, "LICENSE")).replace(/^Copyright .*$/m, `Copyright (c) ${authors.join(", ")}`);

/** The texts of a part; without its own, those of the licence that it names. */
function textsOf(part, parts) {
  if (part.files.length > 0) return part.files.map(read);
  if (/\bMIT\b/.test(part.licence) && part.authors.length > 0) return [mit(part.authors)];
  const apache = parts.flatMap(({ files }) => files).find((file) => /LICENSE-APACHE$/.test(file));
  if (part.licence === "Apache-2.0" && apache !== undefined) return [read(apache)];
  throw new Error(`${part.name} ${part.version} is ${part.licence}, and has neither its text nor authors`);
}

/**
 * The file for one package: one of {@link MAIN}, or a platform.
 *
 * @param {string} name
 */
export function thirdParty(name) {
  const parts = linked(name);
  const texts = new Map();
  for (const part of parts) {
    for (const text of textsOf(part, parts)) {
      texts.set(text, [...(texts.get(text) ?? []), `${part.name} ${part.version}`]);
    }
  }
  const what = MAIN.includes(name) ? "The code" : "The addon";
  return [
    `${what} in this package is Tidegate's own code (MIT, see LICENSE) and what is linked with it:`,
    parts.map(({ name: part, version, licence, about }) => `${part} ${version}, ${licence}, ${about}`).join("\n"),
    ...[...texts].map(([text, of]) => `${LINE}\n${of.join(", ")}\n${LINE}\n\n${text}`),
    "",
  ].join("\n\n");
}
