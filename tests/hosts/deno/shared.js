// `shared()` where Deno may not read the system or load a library: prints the store's name, its decisions and the warnings.
import { defineLimits, HOUR } from "tidegate";
import { shared } from "tidegate/shared";
import process from "node:process";

const warnings = [];
process.on("warning", ({ code, message, detail }) => warnings.push(`${code} ${message} ${detail}`));
const limits = defineLimits({ two: { kind: "token bucket", rate: 2, period: HOUR } }, { store: shared() });
const granted = [1, 2, 3].map(() => limits.limit("two").ok);
shared();
// Warnings arrive in order, at a time of Deno's choosing.
const last = new Promise((done) => process.on("warning", ({ message }) => message === "last" && done()));
process.emitWarning("last");
await last;
console.log(JSON.stringify({ name: shared().name, granted, warnings: warnings.slice(0, -1) }));
