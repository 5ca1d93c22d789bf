import type { PostgresClient } from "../../stores/postgres/client.ts";
import { migrate as migrateDatabase, migration, VERSION } from "../../stores/postgres/migration.ts";
import { clients } from "../clients.ts";
import { type Command, EXIT, flag, optionsOf, type Terminal, text } from "../command.ts";
import { UsageError } from "../usage.ts";
import { messagesOf } from "../output.ts";
import { type Connection, storeKind } from "../store.ts";

const HELP = `Usage: tidegate migrate --store <url> [options]
       tidegate migrate --print [options]

Creates the schema that the PostgreSQL store needs, or upgrades it to this version. If there is
nothing to do, it changes nothing: run it in every deployment, before the new version starts.

It connects with the package pg or postgres of the project in this folder.

  --store <url>     postgres://user:password@host:5432/database
  --print           prints the SQL instead, for your own migration (one statement)
  --schema <name>   the schema; default tidegate
  --unlogged        makes the table UNLOGGED: faster, and empty after a crash of the server

Example:
  tidegate migrate --store postgres://localhost/app`;

/** Whether the server rejected the statement, and so rolled it back. After 08 and 57P, a lost connection, it may be done. */
function isRefusal(error: unknown): boolean {
  const { code, severity } = Object(error) as { code?: unknown; severity?: unknown };
  return typeof severity === "string" && !/^(08|57P)/.test(String(code));
}

async function run(url: string, options: { schema: string | undefined; unlogged: boolean }, terminal: Terminal) {
  let connection: Connection<PostgresClient> | undefined;
  try {
    connection = await clients.postgres(url);
    await migrateDatabase(connection.client, options);
  } catch (error) {
    // No client is installed.
    if (error instanceof UsageError) throw new UsageError(`${error.message}, or print the SQL with --print`);
    const known =
      connection === undefined || isRefusal(error)
        ? "nothing was changed"
        : "it is unknown whether it was done; run it again";
    terminal.err(`tidegate: the migration failed, and ${known}: ${messagesOf(error)}`);
    return EXIT.found;
  } finally {
    // What was decided stays so if the connection is lost already.
    await connection?.close().catch(() => undefined);
  }
  terminal.out(`the schema ${options.schema ?? "tidegate"} has version ${VERSION}`);
  return EXIT.fine;
}

/** `tidegate migrate`: the schema of the PostgreSQL store. */
export const migrate: Command = {
  name: "migrate",
  summary: "make or update the schema of the PostgreSQL store",
  help: HELP,
  options: optionsOf(["store", "schema"], "print", "unlogged"),
  run(args, terminal) {
    const [url, schema, print] = [text(args, "store"), text(args, "schema"), flag(args, "print")];
    if (args.positionals.length > 0) throw new UsageError(`migrate takes no ${JSON.stringify(args.positionals[0])}`);
    const options = { schema, unlogged: flag(args, "unlogged") };
    const sql = migration(options);
    if (print) {
      terminal.out(sql.trimEnd());
      return EXIT.fine;
    }
    if (url === undefined) throw new UsageError("migrate needs --store or --print; see tidegate help migrate");
    if (storeKind(url, ["postgres"]) !== "postgres") {
      throw new UsageError("--store must be a URL that begins with postgres:// or postgresql://");
    }
    return run(url, options, terminal);
  },
};
