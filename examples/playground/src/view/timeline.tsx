/** The requests of the last half minute, and the projection. */
import { useEffect, useRef } from "react";
import type { Lab } from "../model/lab.ts";
import { useFrames, useLab } from "./frames.ts";
import { Panel } from "./parts.tsx";
import { makePlots, type Plots } from "./plot.ts";

const DRAW_MS = 60;
const dark = matchMedia("(prefers-color-scheme: dark)");

export function TimelinePanel({ lab }: { lab: Lab }) {
  useLab(lab);
  const above = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const plots = useRef<Plots>(undefined);
  const drawn = useRef(0);
  useEffect(() => {
    if (above.current === null || below.current === null) return;
    const [top, bottom] = [above.current, below.current];
    const make = (): void => {
      plots.current?.destroy();
      plots.current = makePlots(lab, top, bottom);
      plots.current.draw(Date.now());
    };
    make();
    dark.addEventListener("change", make);
    const observer = new ResizeObserver(() => {
      plots.current?.resize();
      plots.current?.draw(Date.now());
    });
    observer.observe(top);
    return () => {
      dark.removeEventListener("change", make);
      observer.disconnect();
      plots.current?.destroy();
      plots.current = undefined;
    };
  }, [lab]);
  useFrames((clock) => {
    if (Math.abs(clock - drawn.current) < DRAW_MS) return;
    drawn.current = clock;
    plots.current?.draw(clock);
  });
  const { granted, reserved, denied, never } = lab.counts;
  const summary = `So far ${granted} granted, ${reserved} reserved, ${denied + never} denied. The table of decisions has each.`;
  return (
    <Panel title="Timeline" hint="The last half minute, and the projection without further requests.">
      <figure>
        <figcaption>value, tokens</figcaption>
        <div ref={above} role="img" aria-label={`The value over time. ${summary}`} className="plot" />
      </figure>
      <figure>
        <figcaption>
          tokens requested, per 250 ms
          <ul className="legend">
            <li className="granted">granted {granted}</li>
            <li className="reserved">reserved {reserved}</li>
            <li className="denied">denied {denied + never}</li>
            <li className="retry">retryAt of the last denial</li>
          </ul>
        </figcaption>
        <div ref={below} role="img" aria-label={`Tokens requested over time. ${summary}`} className="plot" />
      </figure>
    </Panel>
  );
}
