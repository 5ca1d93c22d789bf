/** Each limit, with what it granted and denied, and its switch for shadow mode. */
import { useState } from "react";
import type { Switch } from "../src/wire.ts";
import { Chart } from "./chart.tsx";
import { type Series, send, type View } from "./live.ts";
import { clock, label, number, share } from "./text.ts";

const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
const MINUTE = 60;

/** The same numbers as the chart, for those who read. */
function Minutes({ series, now }: { series: Series; now: number }) {
  const last = Math.floor(now / 1000);
  const minutes = Array.from({ length: series.granted.length / MINUTE }, (_, i) => {
    const of = (counts: readonly number[]): number => sum(counts.slice(i * MINUTE, (i + 1) * MINUTE));
    const ago = series.granted.length - (i + 1) * MINUTE;
    return { ago, end: last - ago, granted: of(series.granted), denied: of(series.denied) };
  });
  return (
    <details>
      <summary>By minute</summary>
      <table>
        <thead>
          <tr>
            <th scope="col">minute until</th>
            <th scope="col" className="number">
              granted
            </th>
            <th scope="col" className="number">
              denied
            </th>
          </tr>
        </thead>
        <tbody>
          {minutes.toReversed().map(({ ago, end, granted, denied }) => (
            <tr key={ago}>
              <th scope="row">{clock(end * 1000)}</th>
              <td className="number">{number(granted)}</td>
              <td className="number">{number(denied)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

type Announce = (message: string) => void;

/** Whether the limit denies requests, of this process. What it shows comes with the next figures. */
function Shadow({ name, on, announce }: Switch & { announce: Announce }) {
  const [error, setError] = useState<string>();
  const toggle = async (): Promise<void> => {
    try {
      await send({ operation: "shadow", name, on: !on });
      setError(undefined);
      announce(`${label(name)} ${on ? "denies requests again" : "is in shadow mode: it denies nothing"}.`);
    } catch (error) {
      setError((error as Error).message);
    }
  };
  return (
    <div className="shadow">
      <button type="button" aria-pressed={on} aria-label={`Shadow mode of ${label(name)}`} onClick={toggle}>
        Shadow mode
      </button>
      {on ? <p className="warning">Denies nothing, in this process.</p> : null}
      {error === undefined ? null : (
        <p className="error" role="alert">
          {error}
        </p>
      )}
    </div>
  );
}

interface LimitProps {
  series: Series;
  now: number;
  shadow: Switch | undefined;
  announce: Announce;
}

function Limit({ series, now, shadow, announce }: LimitProps) {
  const [granted, denied] = [sum(series.granted), sum(series.denied)];
  const name = label(series.name);
  const summary = `${name}: ${number(granted)} granted and ${number(denied)} denied in the last 10 minutes`;
  return (
    <li className="card">
      <header>
        <h3>
          <bdi>{name}</bdi>
        </h3>
        <p className="quiet">{series.policy ?? "no requests yet"}</p>
      </header>
      <dl className="counts">
        <div>
          <dt className="granted">granted</dt>
          <dd>{number(granted)}</dd>
        </div>
        <div>
          <dt className="denied">denied</dt>
          <dd>{number(denied)}</dd>
        </div>
        <div>
          <dt>denied share</dt>
          <dd>{share(denied, granted + denied)}</dd>
        </div>
        {series.degraded > 0 ? (
          <div className="warning">
            <dt>without the store</dt>
            <dd>{number(series.degraded)}</dd>
          </div>
        ) : null}
      </dl>
      {shadow === undefined ? null : <Shadow {...shadow} announce={announce} />}
      <Chart series={series} now={now} summary={summary} />
      <Minutes series={series} now={now} />
    </li>
  );
}

export function Limits({ view, announce }: { view: View; announce: Announce }) {
  const switches = new Map(view.figures?.switches.map((one) => [one.name, one]));
  return (
    <section aria-labelledby="limits" className="limits">
      <header className="section">
        <h2 id="limits">Limits</h2>
        <p className="quiet">Requests of the last 10 minutes that this process decided.</p>
      </header>
      <ul className="cards">
        {view.series.map((series) => (
          <Limit
            key={series.name}
            series={series}
            now={view.figures?.now ?? 0}
            shadow={series.name === null ? undefined : switches.get(series.name)}
            announce={announce}
          />
        ))}
      </ul>
    </section>
  );
}
