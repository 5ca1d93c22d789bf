// `npm run sbom`: a bill of materials for each npm package and what is linked into it, as CycloneDX: target/sbom/*.cdx.json
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { linked, MAIN, PLATFORMS } from "./linked.mjs";
import { root } from "./run.mjs";

const component = ({ name, version, licence, purl, about }) => ({
  type: "library",
  "bom-ref": purl ?? `${name}@${version}`,
  name,
  version,
  licenses: [/ /.test(licence) ? { expression: licence } : { license: { id: licence } }],
  ...(purl === undefined ? {} : { purl }),
  ...(about.startsWith("https:") ? { externalReferences: [{ type: "website", url: about }] } : { description: about }),
});

/**
 * The bill for one package: one of {@link MAIN}, or a platform.
 *
 * @param {string} name
 */
export function bill(name) {
  const manifest = JSON.parse(readFileSync(join(root, "npm", name, "package.json"), "utf8"));
  const { name: published, version, description, license } = manifest;
  const purl = `pkg:npm/${published.replace("@", "%40")}@${version}`;
  const components = linked(name).map(component);
  const dependencies = [{ ref: purl, dependsOn: components.map((part) => part["bom-ref"]) }];
  const subject = { type: "library", "bom-ref": purl, name: published, version, description, purl };
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { ...subject, licenses: [{ license: { id: license } }] } },
    components,
    dependencies,
  };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const folder = process.argv[2] ?? join(root, "target", "sbom");
  mkdirSync(folder, { recursive: true });
  for (const name of [...MAIN, ...Object.keys(PLATFORMS)]) {
    const file = join(folder, `${name}.cdx.json`);
    writeFileSync(file, `${JSON.stringify(bill(name), undefined, 2)}\n`);
    console.log(file);
  }
}
