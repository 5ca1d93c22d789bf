import { decisionOf, rateLimit } from "tidegate/next";
import { limits } from "../../../../answers.js";

const key = (request) => new URL(request.url).pathname;

export const GET = rateLimit(limits, { name: "send", key }, async (request, { params }) => {
  const { key } = await params;
  return Response.json({ key, remaining: decisionOf(request).remaining });
});
