/** The two plots on uPlot: the value with its projection, and the requested tokens. */
import uPlot from "uplot";
import type { Lab } from "../model/lab.ts";
import { AHEAD_MS, PAST_MS, SPAN_MS, type Span } from "../model/timeline.ts";

const SPANS = PAST_MS / SPAN_MS;
const NONE: Span = { granted: 0, reserved: 0, denied: 0 };
/** Points of the projection. */
const AHEAD_POINTS = 40;

const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Canvas has no light-dark(): the computed style of an element gives the colour. */
export function colors(): (name: string) => string {
  const probe = document.createElement("i");
  document.body.append(probe);
  const found = new Map<string, string>();
  for (const name of ["ink", "quiet", "line", "water", "granted", "reserved", "denied"]) {
    probe.style.color = color(name);
    found.set(name, getComputedStyle(probe).color);
  }
  probe.remove();
  return (name) => found.get(name) ?? "gray";
}

const ago = (_: uPlot, ticks: number[]): string[] =>
  ticks.map((tick) => (tick === 0 ? "now" : `${tick > 0 ? "+" : "−"}${Math.abs(tick)} s`));

function common(paint: (name: string) => string): Pick<uPlot.Options, "legend" | "cursor" | "scales"> & {
  axes: [uPlot.Axis, uPlot.Axis];
} {
  const axis = { stroke: paint("quiet"), font: "11px ui-monospace, monospace", ticks: { show: false } };
  const grid = { stroke: paint("line"), width: 1 };
  return {
    legend: { show: false },
    cursor: { show: false },
    scales: { x: { time: false, range: [-PAST_MS / 1000, AHEAD_MS / 1000] } },
    axes: [
      { ...axis, grid: { show: false }, values: ago, size: 24, space: 60, incrs: [5, 10, 15] },
      { ...axis, grid, size: 42, space: 24 },
    ],
  };
}

/** Vertical lines at these times, drawn under the series. */
function upright(plot: uPlot, times: readonly number[], stroke: string, dash: number[]): void {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
  for (const time of times) {
    const x = plot.valToPos(time, "x", true);
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

export interface Plots {
  draw(clock: number): void;
  resize(): void;
  destroy(): void;
}

export function makePlots(lab: Lab, above: HTMLElement, below: HTMLElement): Plots {
  const paint = colors();
  const { timeline } = lab;
  /** Seconds from now. */
  const seen = (time: number, now: number): number => (time - now) / 1000;
  let now = lab.now();
  const marks = (plot: uPlot): void => {
    upright(
      plot,
      timeline.windows.map((time) => seen(time, now)),
      paint("line"),
      [],
    );
    upright(plot, [0], paint("quiet"), []);
    const denied = lab.entries.find(({ here }) => !here.ok)?.here.retryAt;
    if (denied !== undefined) upright(plot, [seen(denied, now)], paint("denied"), [3, 3]);
  };
  const valuePlot = new uPlot(
    {
      ...common(paint),
      width: above.clientWidth,
      height: 190,
      hooks: { drawClear: [marks] },
      series: [
        {},
        {
          stroke: paint("water"),
          width: 2,
          fill: `color-mix(in srgb, ${paint("water")} 18%, transparent)`,
          points: { show: false },
        },
        { stroke: paint("water"), width: 2, dash: [4, 4], points: { show: false } },
      ],
    },
    [[0], [0], [0]],
    above,
  );
  const bars = uPlot.paths.bars?.({ size: [0.9, 40], align: 1 });
  const bar = (name: string): uPlot.Series => ({
    stroke: paint(name),
    fill: paint(name),
    width: 0,
    points: { show: false },
    ...(bars === undefined ? {} : { paths: bars }),
  });
  const demandPlot = new uPlot(
    {
      ...common(paint),
      scales: { ...common(paint).scales, y: { range: (_, __, most) => [0, Math.max(most ?? 0, 4)] } },
      width: below.clientWidth,
      height: 150,
      hooks: { drawClear: [marks] },
      // The tallest first: each later one is drawn over it.
      series: [{}, bar("denied"), bar("reserved"), bar("granted")],
    },
    [[0], [0], [0], [0]],
    below,
  );

  function draw(clock: number): void {
    now = lab.now(clock);
    const here = lab.here.at(now);
    timeline.sample(now, here.value, lab.config.kind === "fixed window" ? here.ts : undefined);
    const first = timeline.times.findIndex((time) => time >= now - PAST_MS);
    const times = timeline.times.slice(Math.max(first, 0));
    const ahead = Array.from({ length: AHEAD_POINTS }, (_, i) => now + ((i + 1) * AHEAD_MS) / AHEAD_POINTS);
    const nothing = ahead.map(() => null);
    const past = times.map(() => null);
    valuePlot.setData([
      [...times, ...ahead].map((time) => seen(time, now)),
      [...timeline.values.slice(Math.max(first, 0)), ...nothing],
      [...past.slice(1), ...(times.length > 0 ? [here.value] : []), ...ahead.map((time) => lab.here.at(time).value)],
    ]);
    // Empty spans too: uPlot computes the width of a bar from neighbouring times.
    const latest = now - (now % SPAN_MS);
    const starts = Array.from({ length: SPANS }, (_, i) => latest - (SPANS - 1 - i) * SPAN_MS);
    const spans = starts.map((start) => timeline.spans.get(start) ?? NONE);
    demandPlot.setData([
      starts.map((start) => seen(start, now)),
      spans.map(({ granted, reserved, denied }) => granted + reserved + denied),
      spans.map(({ granted, reserved }) => granted + reserved),
      spans.map(({ granted }) => granted),
    ]);
  }

  return {
    draw,
    resize(): void {
      valuePlot.setSize({ width: above.clientWidth, height: 190 });
      demandPlot.setSize({ width: below.clientWidth, height: 150 });
    },
    destroy(): void {
      valuePlot.destroy();
      demandPlot.destroy();
    },
  };
}
