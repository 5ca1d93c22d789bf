// What servers import: a store in the addon (not installed here), stores behind clients, policies with their own module.
import { defineLimits, InputError, MINUTE } from "tidegate";
import { rateLimit } from "tidegate/express";
import { file } from "tidegate/file";
import { checkPolicies } from "tidegate/policies";
import { postgres } from "tidegate/postgres";
import { redis } from "tidegate/redis";
import { shared } from "tidegate/shared";

process.removeAllListeners("warning");
let missing;
try {
  file("./limits");
} catch (error) {
  missing = error;
}
if (missing?.code !== "TIDEGATE_STORE") throw new Error(`file() without its addon: ${missing}`);
if (![rateLimit, postgres, redis, InputError].every((each) => typeof each === "function")) throw new Error("an entry");
if (checkPolicies({}).length === 0) throw new Error("the check of policies found nothing wrong in {}");
const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } }, { store: shared() });
console.log(JSON.stringify(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok)));
