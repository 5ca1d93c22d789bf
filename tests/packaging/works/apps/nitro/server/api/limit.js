import { defineHandler } from "nitro";
import { defineLimits, MINUTE } from "tidegate";
import { checkPolicies } from "tidegate/policies";

export default defineHandler(() => {
  if (checkPolicies({}).length === 0) throw new Error("the check of policies found nothing wrong in {}");
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  return ["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok);
});
