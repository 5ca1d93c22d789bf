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
