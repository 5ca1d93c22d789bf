import { defineLimits, MINUTE } from "tidegate";

export function loader() {
  const limits = defineLimits({ send: { kind: "token bucket", rate: 2, period: MINUTE } });
  return Response.json(["a", "a", "a", "b"].map((key) => limits.limit("send", { key }).ok));
}
