// Medians, spreads, ratios, and the tables that show them: several figures per row, and ratios of the first.
import { median, text } from "../tables.mjs";

/** How each measurement's figures are shown; ratios are of the first one. */
const FIGURES = {
  speed: [
    { name: "CPU ns a decision", of: (run) => run.cpuNs, digits: 0 },
    { name: "wall ns", of: (run) => run.ns, digits: 0 },
  ],
  memory: [
    { name: "bytes a key (RSS)", of: (run) => run.bytesPerKey, digits: 0 },
    { name: "JS heap of it", of: (run) => run.heapPerKey, digits: 0 },
    { name: "longest call, ms", of: (run) => run.longestMs, digits: 1 },
    { name: "next full GC, ms", of: (run) => run.collectionMs, digits: 1 },
  ],
  ages: [
    { name: "bytes a key, least (half full on)", of: (run) => Math.min(...run.sizes.slice(7)), digits: 0 },
    { name: "most", of: (run) => Math.max(...run.sizes.slice(7)), digits: 0 },
    { name: "bytes a new key after churn", of: (run) => run.growthPerNewKey, digits: 1 },
    { name: "longest call, ms: filling", of: (run) => run.longestFillMs, digits: 1 },
    { name: "in the churn", of: (run) => run.longestChurnMs, digits: 1 },
  ],
  threads: [{ name: "million decisions/s", of: (run) => run.perSecond / 1e6, digits: 2 }],
};

/** Each figure over the rounds: its median, its spread, and the rounds, from which ratios are computed. */
export function summary(measurement, runs) {
  const figures = FIGURES[measurement].map(({ name, of, digits }) => {
    const rounds = runs.map(of);
    return { name, digits, median: median(rounds), min: Math.min(...rounds), max: Math.max(...rounds), rounds };
  });
  return { figures };
}

export function head(where, rounds, contenders, about) {
  const versions = contenders
    .map(
      ({ id, title }) => `  ${title}${about.get(id).version ? ` ${about.get(id).version}` : ""}: ${about.get(id).kind}`,
    )
    .join("\n");
  return `tidegate ${where.tidegate}, ${where.at}, Node ${where.node} (V8 ${where.v8}), ${where.system}
${where.cores} x ${where.cpu}, ${where.memoryGiB} GiB; medians of ${rounds} interleaved round${rounds === 1 ? "" : "s"} (least to most), a process each
${versions}
`;
}

/** One case as text. The ratio is the median over the rounds of its ratio to the first row, which is ours if it runs. */
export function table(one, rows) {
  if (rows.length === 0) return `\n${one.title}: nothing to show\n`;
  const [base] = rows;
  const head = ["", ...base.figures.map(({ name }) => name), `x ${base.id}`];
  const cells = rows.map((row) => {
    const figures = row.figures.map(
      ({ median: middle, min, max, digits }) =>
        `${middle.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`,
    );
    const ratios = row.figures[0].rounds.map((round, i) => round / base.figures[0].rounds[i]);
    return [row.title, ...figures, median(ratios).toFixed(2)];
  });
  return text({ title: one.title, head, rows: cells });
}
