/** Dependabot watches every folder that has dependencies. */
import { parse } from "yaml";
import type { Rule, Tree } from "../tree.ts";

const FILE = ".github/dependabot.yml";

interface Update {
  readonly "package-ecosystem": string;
  readonly directory?: string;
  readonly directories?: readonly string[];
}

/** Every folder that has dependencies of its own, and none besides. */
function everyLockIsWatched(tree: Tree): string[] {
  const { updates = [] } = (parse(tree.get(FILE) ?? "") ?? {}) as { updates?: readonly Update[] };
  const watched = (ecosystem: string): string[] =>
    updates
      .filter((update) => update["package-ecosystem"] === ecosystem)
      .flatMap(({ directory, directories = [] }) => [...directories, ...(directory === undefined ? [] : [directory])]);
  const folderOf = (path: string): string => `/${path.split("/").slice(0, -1).join("/")}`;
  // A member of a workspace has no lock of its own: its dependencies are in the root's.
  const { workspaces } = JSON.parse(tree.get("package.json") as string) as { workspaces: readonly string[] };
  const projects = {
    npm: [...tree]
      .filter(([path, text]) => /(^|\/)package\.json$/.test(path) && /"\w*[dD]ependencies"/.test(text))
      .map(([path]) => path)
      .filter((path) => !workspaces.includes(path.replace("/package.json", ""))),
    cargo: [...tree]
      .filter(([path, text]) => /(^|\/)Cargo\.toml$/.test(path) && /^\[workspace\]/m.test(text))
      .map(([path]) => path),
  };
  return Object.entries(projects).flatMap(([ecosystem, paths]) => {
    const folders = paths.map(folderOf);
    return [
      ...folders
        .filter((one) => !watched(ecosystem).includes(one))
        .map((one) => `${FILE} does not watch ${one} (${ecosystem})`),
      ...watched(ecosystem)
        .filter((one) => !folders.includes(one))
        .map((one) => `${FILE} watches ${one} (${ecosystem}), where nothing is`),
    ];
  });
}

const update = (more: string) => ({ [FILE]: `version: 2\nupdates:\n  - package-ecosystem: npm\n${more}` });

export const updates: readonly Rule[] = [
  {
    name: "every lock file is watched, and every folder that is watched has one",
    check: everyLockIsWatched,
    broken: [
      update("    directory: /\n    schedule: { interval: daily }\n"),
      update("    directory: /attic\n    schedule: { interval: daily }\n"),
    ],
  },
];
