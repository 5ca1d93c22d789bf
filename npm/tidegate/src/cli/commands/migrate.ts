import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { PostgresClient } from "../../stores/postgres/client.ts";
import { migrate as migrateDatabase, migration, VERSION } from "../../stores/postgres/migration.ts";
import { type Command, EXIT, flag, type Terminal, text, UsageError } from "../command.ts";

const HELP = `Usage: tidegate migrate --store <url> [options]
       tidegate migrate --print [options]

Creates the schema that the PostgreSQL store needs, or upgrades it to this version. Where there is
nothing to do it changes nothing, so run it with every deployment, before the new version starts.

It connects with the package pg or postgres of the project in this folder.

  --store <url>     postgres://user:password@host:5432/database
  --print           prints the SQL instead, for a migration of your own (one statement)
  --schema <name>   the schema; default tidegate
  --unlogged        makes the table UNLOGGED: faster, and empty after a crash of the server

Example:
  tidegate migrate --store postgres://localhost/app`;

interface Connection {
  readonly client: PostgresClient;
  end(): Promise<unknown>;
}
/** What is used of the packages. */
interface Pg {
  Client: new (options: {
    connectionString: string;
  }) => PostgresClient & {
    connect(): Promise<unknown>;
    end(): Promise<unknown>;
  };
}
type Postgres = (
  url: string,
  options: object,
) => PostgresClient & { end(options: { timeout: number }): Promise<unknown> };

/** The project's package of this name; `undefined` where it is not installed. */
async function installed<T>(name: string): Promise<T | undefined> {
  let path: string;
  try {
    path = createRequire(join(process.cwd(), "package.json")).resolve(name);
  } catch {
    return undefined;
  }
  const loaded = (await import(pathToFileURL(path).href)) as { default?: T };
  return loaded.default ?? (loaded as T);
}

async function connect(url: string): Promise<Connection> {
  const pg = await installed<Pg>("pg");
  if (pg !== undefined) {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return { client, end: () => client.end() };
  }
  const postgres = await installed<Postgres>("postgres");
  if (postgres === undefined) {
    throw new UsageError(
      `neither pg nor postgres is installed in ${process.cwd()}: run npm install pg, or print the SQL with --print`,
    );
  }
  const client = postgres(url, { max: 1, onnotice: () => {} });
  return { client, end: () => client.end({ timeout: 5 }) };
}

async function run(url: string, options: { schema: string | undefined; unlogged: boolean }, terminal: Terminal) {
  let connection: Connection | undefined;
  try {
    connection = await connect(url);
    await migrateDatabase(connection.client, options);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const { message, code } = error as { message?: string; code?: string };
    terminal.err(`tidegate: the migration failed, and nothing was changed: ${message || code || String(error)}`);
    return EXIT.found;
  } finally {
    await connection?.end();
  }
  terminal.out(`the schema ${options.schema ?? "tidegate"} has version ${VERSION}`);
  return EXIT.fine;
}

/** `tidegate migrate`: the schema of the PostgreSQL store. */
export const migrate: Command = {
  name: "migrate",
  summary: "make or update the schema of the PostgreSQL store",
  help: HELP,
  options: {
    store: { type: "string" },
    print: { type: "boolean" },
    schema: { type: "string" },
    unlogged: { type: "boolean" },
  },
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
    if (!/^postgres(ql)?:\/\//.test(url)) {
      throw new UsageError("--store must be a URL that begins with postgres:// or postgresql://");
    }
    return run(url, options, terminal);
  },
};
