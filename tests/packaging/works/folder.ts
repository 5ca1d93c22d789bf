/** Where the tools of a group are installed. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestOf } from "../../../npm/scripts/files.mjs";
import { root } from "../installed.ts";

/**
 * What a group installs stays here: the tarball alone is renewed. Outside the repository, whose packages would be found, and
 * of every `node_modules`, in which tools compile nothing. Each copy of the repository has its own, also where another user's
 * is beside it.
 */
export const folderOf = (group: string): string =>
  join(tmpdir(), `tidegate-works-${digestOf(root, [], root).slice(0, 8)}`, group.replaceAll(" ", "-"));
