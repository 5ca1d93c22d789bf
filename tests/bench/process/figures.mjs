// The tables about limits in process, from a run of this suite.
import { markdown } from "../tables.mjs";

const SPEED = {
  "hot-allow": "1 key, granted",
  "hot-deny": "1 key, denied",
  "prepared-allow": "10^5 keys, strings prepared",
  "short-allow": "10^5 keys, new strings of 12",
  "short-deny": "same, denied",
  "long-allow": "10^5 keys, new strings of 40",
  "million-allow": "10^6 keys, new strings of 12",
};
const THREADS = {
  "threads-1": "keys of its own, 1 thread",
  "threads-2": "2 threads",
  "threads-hot-1": "one hot key, 1 thread",
  "threads-hot-2": "2 threads",
};

/** The tables as text. */
export function inProcess({ contenders, cases }) {
  const by = new Map(cases.map((one) => [one.id, new Map(one.rows.map((of) => [of.id, of.figures]))]));
  const median = (id, contender, figure = 0) => by.get(id)?.get(contender)?.[figure]?.median;
  const show = (value, digits = 0) =>
    value === undefined ? "–" : value.toFixed(digits).replace(/^-(0(\.0+)?)$/, "$1");
  const named = ({ title, version }) => (version === undefined ? title : `${title} ${version}`);
  const timed = Object.keys(SPEED).filter((id) => by.has(id));
  const speed = contenders.map((of) => [named(of), ...timed.map((id) => show(median(id, of.id)))]);
  const remembered = contenders.filter(({ id }) => median("memory", id) !== undefined);
  const memory = remembered.map((of) => [
    named(of),
    show(median("memory", of.id, 0)),
    show(median("memory", of.id, 1)),
    show(median("memory", of.id, 2), 1),
    show(median("memory", of.id, 3), 0),
  ]);
  const crews = Object.keys(THREADS).filter((id) => by.has(id));
  const threads = contenders
    .filter(({ id }) => crews.some((crew) => median(crew, id) !== undefined))
    .map((of) => [named(of), ...crews.map((id) => show(median(id, of.id), 2))]);
  const tables = [
    {
      title:
        "Nanoseconds of CPU a decision, the clock and the making of the key included (the last row is these alone)",
      head: ["", ...timed.map((id) => SPEED[id])],
      rows: speed,
    },
    {
      title: "1,000,000 new keys of 12 characters come in",
      head: ["", "bytes a key", "of it in the JS heap", "longest call, ms", "next full GC, ms"],
      rows: memory,
    },
    {
      title: "Million decisions a second of all threads together",
      head: ["", ...crews.map((id) => THREADS[id])],
      rows: threads,
    },
  ];
  return tables.map(markdown).join("\n\n");
}
