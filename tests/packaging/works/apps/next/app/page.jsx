import { Send } from "./send.jsx";

const now = 1_800_000_000_000;
const config = { kind: "token bucket", rate: 10, period: 60_000, capacity: 10 };

export default function Page() {
  return <Send initial={{ value: 7, ts: now, config, now }} />;
}
