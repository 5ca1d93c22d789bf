// Runs in a tab: many concurrent calls on a limit that all tabs share.
import { defineLimits, HOUR, SECOND } from "tidegate";
import { throttle } from "tidegate/client";
import { webStorage } from "tidegate/web-storage";

const configs = {
  shared: { kind: "token bucket", rate: 100, period: 1000 * HOUR },
  also: { kind: "fixed window", rate: 60, period: 1000 * HOUR, start: 0 },
  paced: { kind: "token bucket", rate: 20, period: SECOND, capacity: 1 },
};
const causes = [];
const limits = defineLimits(configs, {
  store: webStorage({ onFallback: (cause) => causes.push(cause.message) }),
  timeout: 60_000,
});

const granted = (answers) => {
  const failed = answers.find(({ degraded }) => degraded);
  if (failed !== undefined) throw failed.cause;
  return answers.filter(({ ok }) => ok).length;
};

export const take = async (calls, key) =>
  granted(await Promise.all(Array.from({ length: calls }, () => limits.limit("shared", { key }))));
export const takeAll = async (calls, key) => {
  const requests = [
    { name: "shared", key },
    { name: "also", key },
  ];
  return granted(await Promise.all(Array.from({ length: calls }, () => limits.limitAll(requests))));
};
/** Takes so many after the browser has closed the connection without an event, as Safari may. */
export const takeAfterLoss = async (calls, key) => {
  await left(key);
  const { transaction } = IDBDatabase.prototype;
  IDBDatabase.prototype.transaction = function (...of) {
    IDBDatabase.prototype.transaction = transaction;
    this.close();
    return transaction.apply(this, of);
  };
  return take(calls, key);
};
/** Takes one by a database that is open, one while it does not open again, as on a full disk, and one when it does. */
export const takeWhileUnopened = async (key) => {
  const before = await take(1, key);
  await emptied();
  const { open } = IDBFactory.prototype;
  IDBFactory.prototype.open = () => {
    throw new DOMException("no space", "UnknownError");
  };
  const { degraded, cause } = await limits.limit("shared", { key });
  IDBFactory.prototype.open = open;
  return [before, degraded, cause?.message, await take(1, key)];
};
/** A grant and a check where the storage is full, and a grant when it is not. */
export const takeWhileFull = async (key) => {
  const { put } = IDBObjectStore.prototype;
  IDBObjectStore.prototype.put = () => {
    throw new DOMException("no quota", "QuotaExceededError");
  };
  const { degraded, cause } = await limits.limit("shared", { key });
  const check = await limits.check("shared", { key });
  IDBObjectStore.prototype.put = put;
  return [degraded, cause?.message, check.degraded, await take(1, key)];
};
/** When the calls that this tab throttles by the shared limit ran: epoch ms. */
export const paced = (calls, key) => {
  const run = throttle(() => Date.now(), { limiter: limits, name: "paced", key });
  return Promise.all(Array.from({ length: calls }, () => run()));
};
export const left = async (key) => Math.floor((await limits.getValue("shared", { key })).value);
export const fallbacks = () => causes;
/** Deletes the database; a connection that stays open would hold that up. */
export const emptied = () =>
  new Promise((resolve, reject) => {
    const request = indexedDB.deleteDatabase("tidegate");
    request.onsuccess = () => resolve("deleted");
    request.onerror = () => reject(request.error);
  });
/** A first call, which opens the database that is deleted meanwhile. */
export const takeWhileEmptied = async (key) => {
  const answers = limits.limit("shared", { key });
  return [await emptied(), granted([await answers])];
};
/** How many states there are, of one that is taken from, after the database was opened again `ms` later. */
export const keptAfter = async (ms, name) => {
  const open = () => defineLimits(configs, { store: webStorage({ name }), timeout: 60_000 });
  granted([await open().limit("paced")]);
  const { now } = Date;
  Date.now = () => now() + ms;
  await open().getValue("also");
  Date.now = now;
  const result = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  return result((await result(indexedDB.open(name))).transaction("states").objectStore("states").count());
};
