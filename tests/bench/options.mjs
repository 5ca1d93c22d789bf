// The suites, and the options of `npm run bench`, which are refused before anything is built.
import { parseArgs } from "node:util";

export const SUITES = {
  process: {},
  file: { needs: "redis-server" },
  redis: { needs: "redis-server" },
  lease: { needs: "redis-server" },
  postgres: { needs: "postgres" },
  http: {},
  serve: {},
  sizes: { anywhere: true },
};

export const { values } = parseArgs({
  options: {
    suite: { type: "string" },
    quick: { type: "boolean" },
    rounds: { type: "string" },
    json: { type: "string" },
    keep: { type: "boolean" },
  },
});
export const chosen = values.suite?.split(",") ?? Object.keys(SUITES);
const unknown = chosen.find((name) => !(name in SUITES));
if (unknown !== undefined) throw new Error(`--suite: no "${unknown}"; there are ${Object.keys(SUITES).join(", ")}`);
