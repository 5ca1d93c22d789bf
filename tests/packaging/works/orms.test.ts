/** What the PostgreSQL page gives for ORMs that are no dependency of the tests, with the ORMs themselves: types, and decisions. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Server, startServer } from "../../stores/postgres/server.ts";
import { install, type Installed, output, root } from "../installed.ts";
import { add, addTidegate } from "./folder.ts";

const PACKAGES = {
  "@mikro-orm/core": "7.2.5",
  "@mikro-orm/postgresql": "7.2.5",
  "@mikro-orm/sql": "7.2.5",
  "@types/node": "20.19.43",
  "@types/pg": "8.23.1",
  knex: "3.3.0",
  kysely: "0.29.6",
  pg: "8.23.1",
  "reflect-metadata": "0.2.2",
  sequelize: "6.37.8",
  typeorm: "1.1.1",
};
/** Today's compiler: the one before it, in JavaScript, takes several times as long. */
const TSC = join(root, "node_modules/typescript-7/bin/tsc");

const page = readFileSync(join(root, "npm/site/stores/postgres.md"), "utf8");
/** The function `on` of the page's block that has this text. */
function onOf(text: string): string {
  const block = page.split("```").find((part) => part.startsWith("ts\n") && part.includes(text));
  return /const on = [\s\S]*?\n(\}\);|\};)\n/.exec(block as string)?.[0] as string;
}

/** What makes `outside`, `transaction` and `close`, from the server's `url`. */
const ORMS: Readonly<Record<string, string>> = {
  Knex: `
    import createKnex, { type Knex } from "knex";
    const knex = createKnex({ client: "pg", connection: url });
    type Raw = Knex;
    ${onOf("declare const knex")}
    const outside = on(knex);
    const transaction = (body: Body) => knex.transaction((tx) => body(on(tx)));
    const close = () => knex.destroy();`,
  TypeORM: `
    import "reflect-metadata";
    import { DataSource } from "typeorm";
    const outside = await new DataSource({ type: "postgres", url }).initialize();
    const transaction = (body: Body) => outside.transaction((manager) => body(manager));
    const close = () => outside.destroy();`,
  Sequelize: `
    import { Sequelize, type Transaction } from "sequelize";
    const { hostname: host, port, username, pathname } = new URL(url);
    const write = { host, port, username, database: pathname.slice(1) };
    // No replica answers, as none can decide.
    const replication = { write, read: [{ ...write, port: "1" }] };
    const sequelize = new Sequelize(url, { logging: false, replication });
    ${onOf("declare const sequelize")}
    const outside = on();
    const transaction = (body: Body) => sequelize.transaction((tx) => body(on(tx)));
    const close = () => sequelize.close();`,
  MikroORM: `
    import { defineEntity, MikroORM, p } from "@mikro-orm/postgresql";
    import { CompiledQuery, type Kysely } from "kysely";
    const Order = defineEntity({ name: "Order", properties: { id: p.integer().primary() } });
    const orm = await MikroORM.init({ entities: [Order], clientUrl: url });
    declare const db: Kysely<object>;
    ${onOf("declare const db: Kysely")}
    for (const em of [orm.em, orm.em.fork()]) {
      let refused = false;
      try {
        postgres(em);
      } catch {
        refused = true;
      }
      if (!refused) throw new Error("an EntityManager was taken");
    }
    const outside = on(orm.em.fork().getKysely());
    const transaction = (body: Body) => orm.em.fork().transactional((em) => body(on(em.getKysely())));
    const close = () => orm.close();`,
};

/** Prints how many of parallel calls are allowed, and the tokens that are left after a transaction and after a rollback. */
const DECISIONS = `
  const store = postgres(outside, { schema });
  await store.migrate();
  const configs = { order: { kind: "token bucket", rate: 5, period: 2 ** 40 } } as const;
  const limits = defineLimits(configs, { store, timeout: "30s", now: () => 5000 });
  const keys = ["a", "'", "?", "$1", ":b", "\\\\", "\\0"];
  const all = await Promise.all(keys.flatMap((key) => Array.from({ length: 7 }, () => limits.limit("order", { key }))));
  const left: number[] = [];
  for (const undo of [false, true]) {
    const body: Body = async (tx) => {
      const inside = defineLimits(configs, { store: store.within(tx), now: () => 5000 });
      const taken = await Promise.all([1, 2].map((count) => inside.limit("order", { key: "tx" + undo, count })));
      if (undo || taken.some(({ ok }) => !ok)) throw new Error("undo");
    };
    await transaction(body).catch((error: Error) => {
      if (error.message !== "undo") throw error;
    });
    left.push((await limits.getValue("order", { key: "tx" + undo })).value);
  }
  console.log(JSON.stringify([all.filter(({ ok }) => ok).length, ...left]));
  await close();`;

let folder: string;
let user: Installed;
let server: Server;
beforeAll(async () => {
  user = install({ addons: false });
  server = await startServer({ fsync: "off" });
  folder = await add("orms", PACKAGES);
  addTidegate(folder, user);
});
afterAll(async () => {
  await server?.close();
  user?.remove();
});

test.each(Object.entries(ORMS))("%s", (name, program) => {
  const { host, port, user: role, database } = server.options;
  const imports = `
    import { defineLimits } from "tidegate";
    import { type PostgresClient, postgres } from "tidegate/postgres";
    const url = "postgres://${role}@${host}:${port}/${database}";
    const schema = "${name.toLowerCase()}";
    type Body = (tx: PostgresClient) => Promise<void>;`;
  writeFileSync(join(folder, `${name}.mts`), `${imports}\n${program}\n${DECISIONS}`);
  const strict = ["--strict", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess", "--skipLibCheck"];
  const flags = ["--target", "es2023", "--module", "nodenext", "--types", "node", "--pretty", "false", ...strict];
  output("node", [TSC, ...flags, `${name}.mts`], { cwd: folder });
  expect(
    output("node", [`${name}.mjs`], { cwd: folder })
      .trim()
      .split("\n")
      .at(-1),
  ).toBe("[35,2,5]");
});
