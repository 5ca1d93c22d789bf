/** What the store needs in the database. */
import { type Check, checkTable, FLAG } from "../../limit/checks.ts";
import { databaseOf, literal, type PostgresClient } from "./client.ts";
import algebra from "./schema/algebra.sql";
import decide from "./schema/decide.sql";
import rows from "./schema/rows.sql";
import table from "./schema/table.sql";

/**
 * The version of the schema, which `SELECT tidegate.version()` returns. Raise it with every change of the `.sql` files.
 *
 * Processes of the version before keep working on a new schema, so that users migrate first and then deploy. A function
 * whose arguments or reply change gets a new name; the old one is dropped a version later. An upgrade does not alter the
 * table: that waits for its readers, such as pg_dump, and every call waits behind it.
 */
export const VERSION = 1;

/** Settings of {@link migration} and {@link migrate}. */
export interface MigrationOptions {
  /** The schema that holds the table and the functions: 1 to 63 bytes; default `"tidegate"`. */
  schema?: string | undefined;
  /**
   * Whether the table is `UNLOGGED`: faster, and empty after a crash of the server or a failover, so that every limit is
   * full again then. It is not replicated either. Only read if the table does not exist yet; default `false`.
   */
  unlogged?: boolean | undefined;
}

export const SCHEMA: Check = {
  expects: "a name of 1 to 63 bytes of UTF-8 without U+0000",
  // A lone surrogate has no UTF-8 of its own: as the replacement character, two names would be one.
  accepts(name) {
    const length = typeof name === "string" ? new TextEncoder().encode(name).length : 0;
    return length >= 1 && length <= 63 && !/\0|\p{Surrogate}/u.test(name as string);
  },
};
const OPTIONS = { schema: SCHEMA, unlogged: FLAG };

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * The migration as text: one statement, which makes the schema, in it the table `states` and the functions. It brings an
 * older version of the schema to this version, and does nothing if that is there. Run it
 * by hand (`psql -f`), by your own migrations, or by {@link migrate}. The package has the file too, for the default
 * settings: `tidegate/postgres.sql`. Throws an `InputError` if a setting is wrong.
 *
 * ```ts
 * writeFileSync("migrations/007_tidegate.sql", migration());
 * ```
 */
export function migration(options: MigrationOptions = {}): string {
  checkTable("migration", options, OPTIONS);
  const { unlogged = false, schema = "tidegate" } = options;
  const name = quoted(schema);
  const made = unlogged ? table.replace("CREATE TABLE", "CREATE UNLOGGED TABLE") : table;
  const version = `CREATE OR REPLACE FUNCTION tidegate.version() RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT ${VERSION} $$;`;
  const body = [made, algebra, rows, decide, version]
    .join("\n")
    .split("\n")
    // A name may contain a line feed, which ends a comment: so comments keep the default name.
    .map((line) =>
      /^\s*--/.test(line)
        ? line
        : line.replaceAll("$$", () => delimiter("body", schema)).replaceAll("tidegate.", () => `${name}.`),
    )
    .join("\n");
  const outer = delimiter("tidegate", schema);
  const text = literal(schema);
  // One statement: it is carried out as a whole or not at all, by any client. The lock is for two that start together;
  // some servers that speak PostgreSQL's protocol have none.
  // The first line may be appended to a comment that a tool began the file with, without a line feed (drizzle-kit).
  return `-- Version ${VERSION} of the schema of tidegate.
DO ${outer}
DECLARE
  present int;
BEGIN
BEGIN
  PERFORM pg_advisory_xact_lock(7522537965574647666);
EXCEPTION WHEN feature_not_supported THEN NULL;
END;
IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = ${text}) THEN
  CREATE SCHEMA ${name};
END IF;
IF EXISTS (
  SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = ${text} AND p.proname = 'version'
) THEN
  present := ${name}.version();
END IF;
IF present = ${VERSION} THEN
  RETURN;
ELSIF present > ${VERSION} THEN
  RAISE EXCEPTION 'tidegate: the schema has version %, and this package has ${VERSION}: update the package', present;
END IF;
${body}
EXCEPTION WHEN undefined_function OR undefined_column OR datatype_mismatch OR invalid_function_definition OR invalid_text_representation THEN
  RAISE EXCEPTION 'tidegate: the schema % holds something of another program (%): set the option schema to another name', ${text}, SQLERRM;
END ${outer};
`;
}

/** A dollar quote that this name does not contain, so that the name cannot end what it quotes. */
function delimiter(tag: string, name: string): string {
  for (let n = 0; ; n++) {
    const quote = `$${tag}${n === 0 ? "" : n}$`;
    if (!name.includes(quote)) return quote;
  }
}

/**
 * Makes what the store needs, or brings it up to this version. Call it when you deploy, or at the start, also from several
 * processes at the same time. The role needs `CREATE` on the database, or owns the schema and what is in it. If there is
 * nothing to do, it is quick, and any role may call it.
 *
 * ```ts
 * await migrate(new Pool());
 * ```
 *
 * Throws an `InputError` if it is not a client or a setting is wrong, and else what the client throws.
 */
export async function migrate(client: PostgresClient, options: MigrationOptions = {}): Promise<void> {
  const text = migration(options);
  await databaseOf(client, false).run(text);
}
