// The first request of a `createFetch` without a limit of its own: how often it was sent, and its status or error.
import { createFetch } from "tidegate/client";

export async function first() {
  let sent = 0;
  const fetch = createFetch({
    async fetch() {
      sent++;
      return new Response();
    },
  });
  const result = await fetch("/").then(({ status }) => status, String);
  return JSON.stringify({ sent, result });
}
