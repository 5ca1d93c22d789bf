// Two copies of the package in one thread use shared() and file() alternately. argv: their folders, and one for the state.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [first, second, folder] = process.argv.slice(2);
const load = (root, entry) => import(pathToFileURL(join(root, "dist", `${entry}.js`)).href);

const NOW = 1_800_000_000_000;
const config = (capacity) => ({ kind: "token bucket", rate: capacity, period: 3_600_000 });

async function open(root) {
  const { defineLimits } = await load(root, "index");
  const { shared } = await load(root, "stores/shared");
  const { file } = await load(root, "stores/file");
  const limits = { five: config(5), seven: config(7) };
  const stores = [shared(), file(folder)];
  return stores.map((store) => defineLimits(limits, { store, now: () => NOW }));
}

const copies = [await open(first), await open(second)];
const granted = { shared: { five: 0, seven: 0 }, file: { five: 0, seven: 0 } };
const wrong = [];
for (let turn = 0; turn < 40; turn++) {
  for (const [copy, stores] of copies.entries()) {
    for (const [at, name] of ["shared", "file"].entries()) {
      for (const limit of ["five", "seven"]) {
        const { ok, remaining, limit: capacity } = stores[at].limit(limit, { key: "ann" });
        if (ok) granted[name][limit]++;
        const left = capacity - granted[name][limit];
        if (remaining !== left)
          wrong.push(`${name} ${limit}, copy ${copy}, turn ${turn}: ${remaining} of ${left} left`);
        const { value } = stores[at].getValue(limit, { key: "ann" });
        if (value !== left) wrong.push(`${name} ${limit}, copy ${copy}, turn ${turn}: value ${value}, not ${left}`);
      }
    }
    // An error names the copy's own call.
    for (const [at, count] of [-1, Number.NaN].entries()) {
      try {
        stores[at].limit("five", { key: "ann", count });
        wrong.push(`a count of ${count} was accepted`);
      } catch (error) {
        if (error.field !== "count" || !Object.is(error.value, count)) wrong.push(`${error.message}, for ${count}`);
      }
    }
  }
}
process.stdout.write(JSON.stringify({ granted, wrong: wrong.slice(0, 5) }));
