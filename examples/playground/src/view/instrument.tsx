/** The two numbers of both sides, live: each side's stored rows, projected to now by the package. */
import { useRef } from "react";
import type { Lab } from "../model/lab.ts";
import { bits, type Reading, type Row } from "../model/reading.ts";
import { useFrames, useLab } from "./frames.ts";
import { Panel } from "./parts.tsx";

/** The lower end of the scale: the debt, or the debt that may come. */
function floorOf(lab: Lab, value: number, reserve: boolean): number {
  if (value >= 0 && !reserve) return 0;
  const { maxReserved, capacity, rate } = lab.config;
  return -(maxReserved ?? Math.max(capacity ?? rate, 10, 2 ** Math.ceil(Math.log2(Math.max(1, -value)))));
}

/** Rows of shards are `sandbox/0`, `sandbox/1` and so on. */
const shardOf = (row: Row | undefined): string => row?.id.split("/")[1] ?? "";

interface SideProps {
  lab: Lab;
  title: string;
  how: string;
  reserve: boolean;
  reading: () => Reading;
}

function Side({ lab, title, how, reserve, reading }: SideProps) {
  const value = useRef<HTMLElement>(null);
  const water = useRef<HTMLDivElement>(null);
  const debt = useRef<HTMLDivElement>(null);
  const zero = useRef<HTMLDivElement>(null);
  useFrames((clock) => {
    const now = reading().at(lab.now(clock)).value;
    const { capacity, rate } = lab.config;
    const top = Math.max(capacity ?? rate, 1);
    const floor = floorOf(lab, now, reserve);
    // Fractions of the scale's height: below zero, and each of the two fills.
    const below = -floor / (top - floor);
    const part = Math.min(Math.abs(now) / (top - floor), 1);
    zero.current?.style.setProperty("inset-block-end", `${below * 100}%`);
    water.current?.style.setProperty("inset-block-end", `${below * 100}%`);
    water.current?.style.setProperty("block-size", `${now > 0 ? part * 100 : 0}%`);
    debt.current?.style.setProperty("inset-block-start", `${(1 - below) * 100}%`);
    debt.current?.style.setProperty("block-size", `${now < 0 ? part * 100 : 0}%`);
    if (value.current !== null) value.current.textContent = now.toFixed(3);
  });
  const { rows } = reading();
  const [first] = rows;
  return (
    <article className="side" aria-label={title}>
      <div className="vessel" aria-hidden="true">
        <div className="water" ref={water} />
        <div className="debt" ref={debt} />
        <div className="zero" ref={zero}>
          <span>0</span>
        </div>
        <div className="top">
          <span>{lab.config.capacity}</span>
        </div>
      </div>
      <div className="readout">
        <h3>{title}</h3>
        <p className="quiet">{how}</p>
        <p className="now">
          <b ref={value} /> <small>tokens now</small>
        </p>
        <table className="rows">
          <caption>
            stored{rows.length > 1 ? `, in ${rows.length} rows; that of shard ${shardOf(rows[0])}` : ""}
          </caption>
          <tbody>
            <tr>
              <th scope="row">value</th>
              <td>{first === undefined ? "nothing: a fresh key is full" : first.value}</td>
            </tr>
            <tr>
              <th scope="row">ts</th>
              <td>{first?.ts ?? "–"}</td>
            </tr>
            <tr>
              <th scope="row">bits</th>
              <td className="bits">
                {first === undefined
                  ? "–"
                  : [first.value, first.ts].map((number) => <span key={number}>{bits(number)}</span>)}
              </td>
            </tr>
          </tbody>
        </table>
        {rows.length > 1 ? (
          <p className="shards">{rows.map((row) => `${shardOf(row)}: ${row.value.toFixed(2)}`).join("  ")}</p>
        ) : null}
      </div>
    </article>
  );
}

function Agreement({ lab }: { lab: Lab }) {
  const { compared, differing, away, remote } = lab;
  const state = away !== undefined ? "away" : differing > 0 ? "differ" : "agree";
  const text = {
    away: `${away} This side goes on alone; both begin anew when it is back.`,
    differ: `${differing} of ${compared} decisions differ.`,
    agree: compared === 0 ? "No decisions yet." : `${compared.toLocaleString("en")} decisions, identical to the bit.`,
  }[state];
  const [entry] = lab.entries;
  const clock = `${remote.offset >= 0 ? "+" : "−"}${Math.abs(remote.offset).toFixed(1)} ms`;
  return (
    <div className={`agreement ${state}`}>
      <p className="verdict" data-state={state}>
        <span aria-hidden="true">{{ away: "…", differ: "≠", agree: "=" }[state]}</span> {text}
      </p>
      <p className="quiet">
        {remote.pending > 0 ? `Answers under way: ${remote.pending}. ` : ""}The server's clock is {clock} of this one's,
        measured over {remote.roundTrip.toFixed(0)} ms. Each call carries its own time.
      </p>
      <button type="button" onClick={() => void lab.call("check", 0, false)}>
        Compare now
      </button>
      {entry?.call.op === "check" && entry.wire !== undefined ? (
        <p className="pair" data-same={entry.differs?.length === 0}>
          at {entry.call.now}: <code>{bits(entry.here.value)}</code> here,{" "}
          <code>{bits((entry.wire.body as { decision: { value: number } }).decision.value)}</code> there
        </p>
      ) : null}
    </div>
  );
}

export function Instrument({ lab, reserve }: { lab: Lab; reserve: boolean }) {
  useLab(lab);
  const here = (
    <Side
      lab={lab}
      title="This browser"
      how="WebAssembly, in the page"
      {...{ reserve }}
      reading={() => lab.sides.here}
    />
  );
  if (lab.alone) {
    return (
      <Panel title="The two numbers" hint="Decided in this page; nothing is sent anywhere.">
        <div className="sides">{here}</div>
      </Panel>
    );
  }
  return (
    <Panel title="The two numbers" hint="One policy, the same calls, decided twice: by this page and by the server.">
      <div className="sides">
        {here}
        <Side lab={lab} title="The server" how="Node.js, over HTTP" {...{ reserve }} reading={() => lab.sides.there} />
      </div>
      <Agreement lab={lab} />
    </Panel>
  );
}
