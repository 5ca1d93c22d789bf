import type { GROUPS, NODES } from "./groups.ts";

/** A tool or framework, with which `works.test.ts` builds and runs the packed tarball. */
export interface Tool {
  readonly name: string;
  /** What is built and run, for the table of the site. */
  readonly does: string;
  /** Whose packages it uses. */
  readonly group: keyof typeof GROUPS;
  /** The folder of `apps` that is copied. */
  readonly app: string;
  /** The Node.js that runs the commands, from the group's packages; by default the one that runs the tests. */
  readonly node?: keyof typeof NODES;
  /** Further files. */
  readonly files?: Readonly<Record<string, string>>;
  /** Commands; the last one prints {@link ANSWERS} where neither `page` nor `serve` is given. */
  readonly run: readonly string[];
  /** A script for a page in Chromium, which sets `globalThis.answers`. */
  readonly page?: string;
  /** A server on the port `PORT`, and what the response of each path contains; `page` is opened in Chromium. */
  readonly serve?: {
    readonly command: string;
    readonly answers: Readonly<Record<string, string>>;
    /** Paths with a limit of two tokens: two requests are allowed, the third is denied. */
    readonly limited?: readonly string[];
    readonly page?: string;
  };
}

/** Three calls on two tokens, then one on another key. */
export const ANSWERS = "[true,true,false,true]";

/** The manifest of apps that are ES modules. */
export const MANIFEST = { "package.json": '{ "name": "app", "private": true, "type": "module" }' };
