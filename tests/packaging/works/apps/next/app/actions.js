"use server";
import { headers } from "next/headers";
import { rateLimitAction } from "tidegate/next";
import { limits } from "../answers.js";

/** Two tokens for each client and address: returns the address, or `{ rateLimited }`. */
export const subscribe = rateLimitAction(
  limits,
  { name: "send", key: ({ args: [address], headers }) => `${headers.get("host")} ${address}`, requestHeaders: headers },
  async (address) => address,
);
