/** What the store needs in the database. */
import { InputError } from "../../errors.ts";
import { type PostgresClient, runOn } from "./client.ts";
import algebra from "./schema/algebra.sql";
import calls from "./schema/calls.sql";
import policy from "./schema/policy.sql";
import program from "./schema/program.sql";
import run from "./schema/run.sql";
import table from "./schema/table.sql";

/** Settings of {@link migration} and {@link migrate}. */
export interface MigrationOptions {
  /** The schema that holds the table and the functions: 1 to 63 bytes; default `"tidegate"`. */
  schema?: string | undefined;
  /**
   * Whether the table is `UNLOGGED`: faster, and empty after a crash of the server or a failover, so that every limit is
   * full again then. It is not replicated either. Only read where the table does not exist yet; default `false`.
   */
  unlogged?: boolean | undefined;
}

/** Passes a schema's name on, or says how it breaks the rule. */
export function checkSchema(schema: unknown = "tidegate"): string {
  const length = typeof schema === "string" ? new TextEncoder().encode(schema).length : 0;
  if (typeof schema === "string" && length >= 1 && length <= 63 && !schema.includes("\0")) return schema;
  throw new InputError("schema", "a name of 1 to 63 bytes", schema);
}

/** A name as SQL quotes it. */
export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * The migration as text: one statement that does nothing where everything is there. It makes a schema, in it the table
 * `states` (`id`, `value`, `ts`) and the functions. Run it by hand (`psql -f`), by your own migrations, or by
 * {@link migrate}. Throws an `InputError` where a setting is wrong.
 *
 * ```ts
 * writeFileSync("migrations/007_tidegate.sql", migration());
 * ```
 */
export function migration(options: MigrationOptions = {}): string {
  const { unlogged = false } = options;
  if (typeof unlogged !== "boolean") throw new InputError("unlogged", "true or false", unlogged);
  const schema = checkSchema(options.schema);
  const name = quoted(schema);
  const made = unlogged ? table.replace("CREATE TABLE", "CREATE UNLOGGED TABLE") : table;
  const body = [made, algebra, calls, program, run, policy].join("\n").replaceAll("tidegate.", () => `${name}.`);
  // One statement: it is carried out as a whole or not at all, by any client. The lock is for two that start at once;
  // some that speak like PostgreSQL have none.
  return `DO $tidegate$
BEGIN
BEGIN
  PERFORM pg_advisory_xact_lock(7522537965574647666);
EXCEPTION WHEN feature_not_supported THEN NULL;
END;
IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = '${schema.replaceAll("'", "''")}') THEN
  CREATE SCHEMA ${name};
END IF;
${body}
END $tidegate$;
`;
}

/**
 * Makes what the store needs, or brings it up to this version: call it when you deploy, or at the start; it is quick
 * where there is nothing to do, and safe from several processes at once. The role needs `CREATE` on the database (or
 * on the schema, where that exists).
 *
 * ```ts
 * await migrate(new Pool());
 * ```
 *
 * Throws an `InputError` where it is not a client or a setting is wrong, and else what the client throws.
 */
export async function migrate(client: PostgresClient, options: MigrationOptions = {}): Promise<void> {
  await runOn(client, migration(options));
}
