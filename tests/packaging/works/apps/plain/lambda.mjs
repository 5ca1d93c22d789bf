import { defineLimits, MINUTE } from "tidegate";

const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
export const handler = async () => JSON.stringify(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok));
