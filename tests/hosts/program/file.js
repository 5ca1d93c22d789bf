// The file store: a part of the vectors and the store suite, each on a folder of its own below the one in the first argument.
import { rmSync } from "node:fs";
import { join } from "node:path";
import { file } from "tidegate/file";
import vectors from "./few.js";
import { report } from "./report.js";

const [, , place] = process.argv;
// Each history begins at an earlier clock than the one before it ends, and where a folder dropped a state, its fresh keys are
// full as of that instant: each has a folder of its own.
const each = Object.entries(vectors).flatMap(([name, all]) =>
  all.vectors.filter(({ steps }) => steps).map((vector, i) => [`${name} ${i}`, { ...all, vectors: [vector] }]),
);
let made = 0;
const folders = new WeakMap();

const results = await report({
  vectors: Object.fromEntries(each),
  create() {
    const folder = join(place, `folder-${made++}`);
    const store = file(folder, { maxKeys: 1000 });
    folders.set(store, folder);
    return store;
  },
  destroy(store) {
    store.close();
    // 17 MB each, and there are hundreds.
    rmSync(folders.get(store), { recursive: true });
  },
});
const histories = results.filter(({ name }) => name.startsWith("vectors > "));
const wrong = histories.filter(({ error }) => error).map(({ name, error }) => `${name}: ${error}`);
console.log(
  JSON.stringify([
    ...results.filter((one) => !histories.includes(one)),
    { name: `${histories.length} histories, to the bit`, ...(wrong.length > 0 && { error: wrong.join("\n") }) },
  ]),
);
