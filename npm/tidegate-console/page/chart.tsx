/** Grants and denials of ten minutes, by second. */
import { useEffect, useRef, useState } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { SPAN } from "../src/wire.ts";
import type { Series } from "./live.ts";
import { clock, number } from "./text.ts";

const HEIGHT = 96;
const dark = matchMedia("(prefers-color-scheme: dark)");
/** Seconds from now. */
const TIMES = Array.from({ length: SPAN }, (_, i) => i - SPAN + 1);

/** Canvas has no light-dark(): the computed style of an element gives the colour. */
function paint(name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

const ago = (_: uPlot, ticks: number[]): string[] => ticks.map((tick) => (tick === 0 ? "now" : `${-tick / 60} min`));

function makePlot(at: HTMLElement, onPoint: (index: number | null | undefined) => void): uPlot {
  const axis = { stroke: paint("quiet"), font: "11px system-ui, sans-serif", ticks: { show: false } };
  // A second is half a pixel wide when the chart is narrow, and must be visible.
  const bars = uPlot.paths.bars?.({ size: [1, Infinity, 1.5], align: 1 });
  const area = (name: string): uPlot.Series => ({
    stroke: paint(name),
    fill: paint(name),
    width: 0,
    points: { show: false },
    ...(bars === undefined ? {} : { paths: bars }),
  });
  return new uPlot(
    {
      width: at.clientWidth,
      height: HEIGHT,
      padding: [6, 14, 0, 0],
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { setScale: false, x: false } },
      scales: {
        x: { time: false, range: [1 - SPAN, 1] },
        y: { range: (_, __, most) => [0, Math.max(Math.ceil((most ?? 0) * 1.05), 4)] },
      },
      axes: [
        { ...axis, grid: { show: false }, values: ago, size: 20, space: 60, incrs: [120, 300] },
        {
          ...axis,
          grid: { stroke: paint("line"), width: 1 },
          size: 40,
          space: 28,
          incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6],
        },
      ],
      hooks: { setCursor: [(plot) => onPoint(plot.cursor.idx)] },
      // The taller first: the other is drawn over it.
      series: [{}, area("denied"), area("granted")],
    },
    [[], [], []],
    at,
  );
}

/** `now` is the epoch ms of the last number. */
export function Chart({ series, now, summary }: { series: Series; now: number; summary: string }) {
  const at = useRef<HTMLDivElement>(null);
  const [plot, setPlot] = useState<uPlot>();
  const [seen, setSeen] = useState(false);
  const [point, setPoint] = useState<number>();
  useEffect(() => {
    const element = at.current;
    if (element === null) return;
    let made: uPlot | undefined;
    const make = (): void => {
      made?.destroy();
      made = makePlot(element, (index) => setPoint(index ?? undefined));
      setPlot(made);
    };
    make();
    dark.addEventListener("change", make);
    const resized = new ResizeObserver(() => made?.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    // A chart outside the window is not drawn.
    const visible = new IntersectionObserver(([entry]) => setSeen(entry?.isIntersecting === true));
    visible.observe(element);
    return () => {
      dark.removeEventListener("change", make);
      resized.disconnect();
      visible.disconnect();
      made?.destroy();
    };
  }, []);
  useEffect(() => {
    if (!seen || plot === undefined) return;
    const both = series.denied.map((denied, i) => denied + (series.granted[i] ?? 0));
    plot.setData([TIMES, both, [...series.granted]]);
  }, [plot, seen, series]);
  const time = point === undefined ? undefined : clock(now + (TIMES[point] ?? 0) * 1000);
  return (
    <figure>
      <div ref={at} className="plot" role="img" aria-label={summary} />
      <figcaption aria-hidden="true">
        {point === undefined || time === undefined
          ? "requests per second, last 10 min"
          : `${time}: ${number(series.granted[point] ?? 0)} granted, ${number(series.denied[point] ?? 0)} denied`}
      </figcaption>
    </figure>
  );
}
