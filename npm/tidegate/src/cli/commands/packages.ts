/** The commands that are packages of their own. */
import type { Command } from "../command.ts";
import { packageCommand } from "../package-command.ts";

/** `tidegate replay`. */
export const replay: Command = packageCommand({
  name: "replay",
  summary: "replay the traffic of a log against limits",
  package: "tidegate-replay",
  takes: "<log...> [options]",
  does: "Replays the traffic of a log against limits.",
});

/** `tidegate serve`. */
export const serve: Command = packageCommand({
  name: "serve",
  summary: "decide by policies over HTTP, for other languages and proxies",
  package: "tidegate-serve",
  takes: "<policies.json> [options]",
  does: "Decides by the policies of a file, over HTTP.",
});
