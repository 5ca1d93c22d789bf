// app/api/hello/[id]/route.ts
import { decisionOf, rateLimit } from "tidegate/next";
import { limits } from "./limits.ts";

type Context = { params: Promise<{ id: string }> };

export const GET = rateLimit(
  limits,
  { name: "api", client: { trust: 1 } }, // one proxy in front
  async (request: Request, { params }: Context) => {
    const { id } = await params;
    return Response.json({ message: `hello ${id}`, remaining: decisionOf(request)?.remaining });
  },
);
