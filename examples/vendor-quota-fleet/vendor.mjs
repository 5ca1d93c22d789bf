// The vendor: a server that counts requests, and denies those above its quota.
import { createServer } from "node:http";
import { defineLimits } from "tidegate";
import { rateLimit } from "tidegate/node";
import { PERIOD, QUOTA } from "./quota.mjs";

const limits = defineLimits({ api: { kind: "fixed window", rate: QUOTA, period: PERIOD } });

/** Listens on a free port of the loopback interface. */
export async function vendor() {
  const seen = { arrivals: [], denied: 0 };
  const onDecision = ({ ok }) => {
    seen.arrivals.push(Date.now());
    if (!ok) seen.denied++;
  };
  const options = { name: "api", headers: { fields: "draft-11" }, onDecision };
  const server = createServer(rateLimit(limits, options, (_, response) => response.end("done\n")));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, seen, close: () => server.close() };
}
