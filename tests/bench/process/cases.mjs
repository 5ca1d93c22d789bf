// The cases.
import { CONTENDERS } from "./contenders.mjs";

const SPEED = [
  { id: "hot", title: "1 key", shape: "prepared", keys: 1 },
  { id: "prepared", title: "100,000 keys, strings prepared", shape: "prepared", keys: 100_000 },
  { id: "short", title: "100,000 keys, a new string each time, 12 chars", shape: "short", keys: 100_000 },
  { id: "long", title: "100,000 keys, a new string each time, 40 chars", shape: "long", keys: 100_000 },
  { id: "million", title: "1,000,000 keys, a new string each time, 12 chars", shape: "short", keys: 1_000_000 },
];

/** Has one table for the whole process, so that no limiter after the one that compiles the code begins without keys. */
const ONE_TABLE = "tidegate-shared";
const THREADED = ["tidegate", ONE_TABLE, "plain-slots"];

const crews = (keys, id, title, contenders) =>
  [1, 2].map((workers) => ({
    id: `${id}-${workers}`,
    title: `${title}, ${workers} thread${workers === 1 ? "" : "s"}`,
    measure: "threads",
    contenders,
    spec: { keys, workers },
  }));

/** Every case: its title, its measurement, and the arguments. `quick` is for a smoke test. */
export function cases(quick) {
  const times = quick ? { warmMs: 5, measureMs: 10 } : { warmMs: 150, measureMs: 400 };
  const size = (keys) => (quick ? Math.min(keys, 2_000) : keys);
  const speed = SPEED.flatMap(({ id, title, shape, keys }) =>
    ["allow", "deny"].map((outcome) => ({
      id: `${id}-${outcome}`,
      title: `${title}: ${outcome === "allow" ? "granted" : "denied"}`,
      measure: "speed",
      spec: { shape, keys: size(keys), outcome, ...times },
    })),
  );
  const million = quick ? 20_000 : 1_000_000;
  const all = [
    ...speed,
    {
      id: "memory",
      title: "1,000,000 new keys of 12 chars come in",
      measure: "memory",
      contenders: CONTENDERS.map(({ id }) => id).filter((id) => id !== ONE_TABLE),
      spec: { keys: million },
    },
    {
      id: "memory-4",
      title: "4,000,000 new keys of 12 chars come in",
      measure: "memory",
      contenders: ["tidegate", "plain-slots"],
      spec: { keys: 4 * million },
    },
    { id: "ages", title: "a table's ages", measure: "ages", contenders: ["tidegate"], spec: { keys: million } },
    ...crews(size(100_000), "threads", "100,000 keys of each thread's own", THREADED),
    ...crews(1, "threads-hot", "one hot key", THREADED),
  ];
  return all.map((one) => ({
    ...one,
    title: quick ? `${one.title} [--quick: ${one.spec.keys.toLocaleString("en")}]` : one.title,
    spec: one.measure === "threads" ? { ...one.spec, measureMs: times.measureMs } : one.spec,
  }));
}
