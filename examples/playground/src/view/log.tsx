/** The decisions, newest first, and the complete HTTP response of the selected one. */
import { memo, useState } from "react";
import type { Entry, Lab } from "../model/lab.ts";
import { useLab } from "./frames.ts";
import { Panel, Scroll, Switch } from "./parts.tsx";

const SHOWN = 25;
const NAMES = { granted: "granted", reserved: "reserved", denied: "denied", never: "never fits", other: "answered" };

/** Minutes, seconds and ms. */
const clock = (ms: number): string => new Date(ms).toISOString().slice(14, 23);

function callText({ op, count, reserve }: Entry["call"]): string {
  return `${op === "limit" ? "" : `${op} `}${count}${reserve ? ", reserve" : ""}`;
}

function comparison({ wire, differs }: Entry): string {
  if (wire === undefined || differs === undefined) return "no answer yet";
  return differs.length === 0 ? "identical" : `differ in ${differs.join("; ")}`;
}

interface LineProps {
  entry: Entry;
  alone: boolean;
  picked: boolean;
  onPick: (entry: Entry) => void;
}

const Line = memo(({ entry, alone, picked, onPick }: LineProps) => (
  <tr className={entry.outcome} data-picked={picked}>
    <th scope="row">
      <button type="button" aria-pressed={picked} onClick={() => onPick(entry)}>
        <span className="visually-hidden">Show the HTTP answer of number </span>
        {entry.number}
      </button>
    </th>
    <td className="time">{clock(entry.call.now)}</td>
    <td>{callText(entry.call)}</td>
    <td>
      <span className={`badge ${entry.outcome}`}>
        {entry.wire?.status ?? "…"} {NAMES[entry.outcome]}
      </span>
    </td>
    <td className="number">{entry.here.value.toFixed(3)}</td>
    <td className="number">{entry.here.retryAfter === undefined ? "–" : `${entry.here.retryAfter} ms`}</td>
    {alone ? null : (
      <td className="same" title={comparison(entry)}>
        <span aria-hidden="true">{entry.differs === undefined ? "…" : entry.differs.length === 0 ? "=" : "≠"}</span>
        <span className="visually-hidden">{comparison(entry)}</span>
      </td>
    )}
  </tr>
));

function Response({ entry }: { entry: Entry | undefined }) {
  if (entry?.wire === undefined) {
    return <p className="quiet empty">Pick a decision: its HTTP answer is shown here, field by field.</p>;
  }
  const { status, statusText, fields, body } = entry.wire;
  const written = new Set(Object.keys(entry.fields));
  return (
    <Scroll className="response" label={`HTTP answer of number ${entry.number}`}>
      <pre>
        <b>
          HTTP/1.1 {status} {statusText}
        </b>
        {fields.map(([name, value]) => (
          <span key={name} className={written.has(name) ? "field ours" : "field"}>
            {`\n${name}: ${value}`}
          </span>
        ))}
        {`\n\n${JSON.stringify(body, null, 2)}`}
      </pre>
    </Scroll>
  );
}

export function Log({ lab }: { lab: Lab }) {
  useLab(lab);
  const [picked, setPicked] = useState<number>();
  const [held, setHeld] = useState<readonly Entry[]>();
  // Responses still arrive for entries that are held.
  const now = new Map(lab.entries.map((entry) => [entry.number, entry]));
  const shown = (held?.map((entry) => now.get(entry.number) ?? entry) ?? lab.entries).slice(0, SHOWN);
  const answered = lab.entries.find(({ wire }) => wire !== undefined);
  const chosen = picked === undefined ? answered : (shown.find(({ number }) => number === picked) ?? answered);
  const pick = (entry: Entry): void => {
    setPicked(entry.number);
    // The selected entry would scroll away immediately.
    setHeld((before) => before ?? lab.entries);
  };
  const hold = (on: boolean): void => {
    setHeld(on ? lab.entries : undefined);
    if (!on) setPicked(undefined);
  };
  return (
    <Panel
      title="Decisions"
      hint={`Newest first. In colour: the fields that rateLimitHeaders() wrote${lab.alone ? "" : ", the same on both sides"}.`}
    >
      <Switch label="Hold the list" checked={held !== undefined} onChange={hold} />
      <div className="log">
        <Scroll className="table" label="Decisions, newest first">
          <table>
            <thead>
              <tr>
                {["no.", "time", "tokens", "answer", "value", "wait", ...(lab.alone ? [] : ["both"])].map((name) => (
                  <th key={name} scope="col">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((entry) => (
                <Line
                  key={entry.number}
                  {...{ entry }}
                  alone={lab.alone}
                  picked={entry.number === chosen?.number}
                  onPick={pick}
                />
              ))}
            </tbody>
          </table>
          {shown.length === 0 ? <p className="quiet empty">Nothing sent yet.</p> : null}
        </Scroll>
        <Response entry={chosen} />
      </div>
    </Panel>
  );
}
