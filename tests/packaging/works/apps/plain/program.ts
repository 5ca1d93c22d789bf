import { defineLimits, MINUTE } from "tidegate";
import { clientIp } from "tidegate/http";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
const answers: boolean[] = ["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok);
if (typeof clientIp !== "function") throw new Error("tidegate/http is not loaded");
console.log(JSON.stringify(answers));
