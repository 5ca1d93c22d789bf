/** The migration as a file, run by psql: a hostile schema name stays a name. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { migrate, migration, postgres } from "tidegate/postgres";
import { remove, temporaryFolder } from "../../support/folders.ts";
import { PATIENT, stock, take, withServer } from "./fixture.ts";

const fixture = withServer();
const run = promisify(execFile);
const folder = temporaryFolder("migration");
afterAll(() => remove(folder));

const victim = "DROP TABLE public.victim";
const hostile: [string, string][] = [
  ["ends the function's quote", `a$$;${victim};--`],
  ["ends the function's new quote", `a$body$;${victim};--`],
  ["ends the statement's quote", `a$tidegate$;${victim};--`],
  ["ends both", `$tidegate$;$body$;$$;${victim};`],
  ["ends the identifier", `a";${victim};--`],
  ["ends the literal", `a';${victim};--`],
  ["ends the literal by a backslash", `a\\';${victim};--`],
  ["ends the literal by a backslash and a quote", `\\' OR true;${victim};--`],
  ["ends a comment", `a\n${victim};--`],
  ["ends a comment by a carriage return", `a\r${victim};--`],
  ["ends a block comment", `*/${victim};/*`],
  ["is psql's command", "a\n\\! touch owned\n\\echo"],
  ["is psql's command after a quote", "a$tidegate$\n\\! touch owned\n"],
  ["is psql's variable", ":name :'name' :\"name\" :{?name}"],
  ["has dollars", "$a$ $1 $& $' $`"],
  ["has letters of two bytes", "é漢字"],
];

test.each([
  ["a table", "CREATE TABLE taken.states (id text PRIMARY KEY, body text)"],
  ["a function", "CREATE FUNCTION taken.version() RETURNS text LANGUAGE sql AS $$ SELECT 'v2' $$"],
])("migrate on a schema that has %s of another program names the schema and the option", async (_, made) => {
  await fixture.rows(`CREATE SCHEMA taken; ${made}`);
  await expect(migrate(fixture.pool(), { schema: "taken" })).rejects.toThrow(
    /^tidegate: the schema taken holds something of another program \(.+\): set the option schema to another name$/,
  );
  await fixture.rows("DROP SCHEMA taken CASCADE");
});

test.each([
  ["on", "on"],
  ["off", "off"],
])(
  "psql -f, standard_conforming_strings %s: a hostile name makes a schema of that name, and nothing else",
  async (scs) => {
    await fixture.rows("CREATE TABLE IF NOT EXISTS public.victim ()");
    const { host, port, user, database } = fixture.server.options;
    for (const [what, schema] of hostile) {
      const file = join(folder, "migration.sql");
      writeFileSync(file, migration({ schema }));
      const args = ["-X", "-q", "-h", host, "-p", String(port), "-U", user, "-d", database, "-v", "name=evil"];
      const env = {
        ...process.env,
        PGOPTIONS: `-c standard_conforming_strings=${scs} -c client_min_messages=error`,
        PGCLIENTENCODING: "UTF8",
      };
      const { stderr } = await run("psql", [...args, "-f", file], { env, cwd: folder });
      expect(stderr, what).toBe("");
      const made = await fixture.rows("SELECT nspname FROM pg_namespace WHERE nspname = $1", [schema]);
      expect(made, what).toHaveLength(1);
      expect(await fixture.rows("SELECT to_regclass('public.victim') IS NOT NULL AS kept"), what).toEqual([
        { kept: true },
      ]);
      // It works, and again by a client.
      await migrate(fixture.admin, { schema });
      const store = postgres(fixture.admin, { ...PATIENT, schema });
      expect((await store.decide(take(stock("x", 5), "k"))).value, what).toBeCloseTo(4, 6);
      expect((await store.decideAll([take(stock("x", 5), "k"), take(stock("y", 5), "k")])).ok, what).toBe(true);
      await fixture.rows(`DROP SCHEMA "${schema.replaceAll('"', '""')}" CASCADE`);
    }
    const [count] = await fixture.rows(
      "SELECT count(*)::int AS n FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema|public$|tidegate$)'",
    );
    expect(count).toEqual({ n: 0 });
    await expect(run("ls", [join(folder, "owned")])).rejects.toThrow();
  },
);
