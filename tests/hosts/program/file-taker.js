// Takes single tokens from the folder in the first argument, which other processes take from too; prints how many it got.
import { defineLimits } from "tidegate";
import { file } from "tidegate/file";

const [, , place, calls] = process.argv;
const limits = defineLimits(
  { hot: { kind: "token bucket", rate: 1, period: 2 ** 40, capacity: 1000 } },
  { store: file(place), now: () => 1_800_000_000_000 },
);
let granted = 0;
for (let i = 0; i < Number(calls); i++) if (limits.limit("hot", { key: "all" }).ok) granted++;
console.log(JSON.stringify(granted));
