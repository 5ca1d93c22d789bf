import type { Command } from "../command.ts";
import { packageCommand } from "../package-command.ts";

/** `tidegate serve`. */
export const serve: Command = packageCommand({
  name: "serve",
  summary: "decide by policies over HTTP, for other languages and proxies",
  package: "tidegate-serve",
  takes: "<policies.json> [options]",
  does: "Decides by the policies of a file, over HTTP.",
});
