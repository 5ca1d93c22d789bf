// Runs the store suite on one client, each test on a table of its own, and prints the results:
// node suite.mjs <client> <file> <file of vectors>
import { readFileSync } from "node:fs";
import { sqlite } from "tidegate/sqlite";
import { report } from "../../hosts/program/report.js";
import { clients } from "./clients.mjs";

const [name, path, vectors] = process.argv.slice(2);
const { client, close } = await clients[name](path);
let stores = 0;
const execute = async (on, sql) => ("execute" in on ? on.execute(sql) : (await on.prepare(sql)).run());
const results = await report({
  vectors: JSON.parse(readFileSync(vectors, "utf8")),
  create: () => sqlite(client, { table: `t${++stores}` }),
  corrupt: () => (id) => execute(client, `UPDATE t${stores} SET state = 'garbage' WHERE id = '${id}'`),
});
console.log(JSON.stringify(results));
await close();
