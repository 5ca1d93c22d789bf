/** What keeps dependencies up to date, and what it looks at. */
import { Ajv } from "ajv";
import { parse } from "yaml";
import type { Rule, Tree } from "../tree.ts";

const FILE = ".github/dependabot.yml";

const text = { type: "string", minLength: 1 };
const texts = { type: "array", items: text, minItems: 1, uniqueItems: true };
const folder = { type: "string", pattern: "^/([\\w-]+(/[\\w-]+)*)?$" };
const named = (values: string[]) => ({ type: "array", items: { enum: values }, minItems: 1, uniqueItems: true });
const object = (properties: object, required: string[] = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** As GitHub's reference of version 2 has them: the fields that are used here, and no other. */
const SCHEMA = object(
  {
    version: { const: 2 },
    updates: {
      type: "array",
      minItems: 1,
      items: {
        ...object(
          {
            "package-ecosystem": { enum: ["npm", "cargo", "github-actions"] },
            directory: folder,
            directories: { ...texts, items: folder },
            schedule: object({ interval: { enum: ["daily", "weekly", "monthly", "quarterly"] } }, ["interval"]),
            groups: {
              type: "object",
              minProperties: 1,
              additionalProperties: object({ patterns: texts, "update-types": named(["major", "minor", "patch"]) }, [
                "patterns",
              ]),
            },
            ignore: {
              type: "array",
              items: object(
                {
                  "dependency-name": text,
                  "update-types": named(["major", "minor", "patch"].map((part) => `version-update:semver-${part}`)),
                },
                ["dependency-name"],
              ),
            },
          },
          ["package-ecosystem", "schedule"],
        ),
        oneOf: [{ required: ["directory"] }, { required: ["directories"] }],
      },
    },
  },
  ["version", "updates"],
);
const isValid = new Ajv({ allErrors: true }).compile(SCHEMA);

interface Update {
  readonly "package-ecosystem": string;
  readonly directory?: string;
  readonly directories?: readonly string[];
}

function asGitHubReadsIt(tree: Tree): string[] {
  const file: unknown = parse(tree.get(FILE) ?? "");
  if (isValid(file)) return [];
  return (isValid.errors ?? []).map(({ instancePath, message }) => `${FILE}: ${instancePath} ${message}`);
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
  const projects = {
    npm: [...tree.keys()].filter((path) => /(^|\/)package\.json$/.test(path) && !path.startsWith("npm/")),
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
    name: "the configuration of updates is one that GitHub reads",
    check: asGitHubReadsIt,
    broken: [
      { [FILE]: null },
      update("    directory: /\n"),
      update("    directory: /\n    schedule: { interval: fortnightly }\n"),
      update("    directory: /\n    directories: [/tests]\n    schedule: { interval: daily }\n"),
      update("    directory: /\n    schedule: { interval: daily }\n    grups: {}\n"),
    ],
  },
  {
    name: "every lock file is watched, and every folder that is watched has one",
    check: everyLockIsWatched,
    broken: [
      update("    directory: /\n    schedule: { interval: daily }\n"),
      update("    directory: /attic\n    schedule: { interval: daily }\n"),
    ],
  },
];
