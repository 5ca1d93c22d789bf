import type { Command } from "./command.ts";
import { check } from "./commands/check.ts";
import { headers } from "./commands/headers.ts";
import { migrate } from "./commands/migrate.ts";
import { operations } from "./commands/operate.ts";
import { replay, serve } from "./commands/packages.ts";
import { top } from "./commands/top.ts";

/** Every command, in the order of the help. */
export const COMMANDS: readonly Command[] = [check, headers, migrate, ...operations, top, replay, serve];
