// The store suite on IndexedDB, with a database per test, which the tests read directly.
import { webStorage } from "tidegate/web-storage";
import vectors from "./few.js";
import { report } from "./report.js";

const names = new WeakMap();
let stores = 0;

const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export const inBrowser = () =>
  report({
    vectors,
    create() {
      const name = `store ${stores++}`;
      const store = webStorage({
        name,
        onFallback(cause) {
          throw cause;
        },
      });
      names.set(store, name);
      return store;
    },
    stored: (store) => {
      let database;
      return async (id) => {
        database ??= await done(indexedDB.open(names.get(store)));
        const bytes = await done(database.transaction("states").objectStore("states").get(id));
        if (bytes === undefined) return null;
        const view = new DataView(bytes.buffer);
        return { value: view.getFloat64(0, true), ts: view.getFloat64(8, true) };
      };
    },
  });
