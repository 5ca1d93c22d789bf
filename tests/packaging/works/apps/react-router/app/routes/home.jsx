import { remoteLimits, useRateLimit } from "tidegate/react";

const from = remoteLimits(() => new Promise(() => {}));
const now = 1_800_000_000_000;
const config = { kind: "token bucket", rate: 10, period: 60_000, capacity: 10 };

export default function Home() {
  const { remaining } = useRateLimit("send", { from, initial: { value: 7, ts: now, config, now } });
  return <p>{`remaining ${remaining}`}</p>;
}
