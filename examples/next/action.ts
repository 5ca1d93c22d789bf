// app/actions.ts; the file begins with "use server", and `headers` comes from "next/headers"
import { rateLimitAction } from "tidegate/next";
import { limits } from "./limits.ts";

declare const headers: () => Promise<Headers>;

export const subscribe = rateLimitAction(
  limits,
  { name: "api", key: ({ args: [email] }) => email.toLowerCase(), requestHeaders: () => headers() },
  async (email: string) => ({ subscribed: email }),
);
