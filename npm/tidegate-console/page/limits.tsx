/** Each limit, with what it granted and denied. */
import { Chart } from "./chart.tsx";
import type { Series, View } from "./live.ts";
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

function Limit({ series, now }: { series: Series; now: number }) {
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
      <Chart series={series} now={now} summary={summary} />
      <Minutes series={series} now={now} />
    </li>
  );
}

export function Limits({ view }: { view: View }) {
  return (
    <section aria-labelledby="limits" className="limits">
      <header className="section">
        <h2 id="limits">Limits</h2>
        <p className="quiet">Requests of the last 10 minutes that this process decided.</p>
      </header>
      <ul className="cards">
        {view.series.map((series) => (
          <Limit key={series.name} series={series} now={view.figures?.now ?? 0} />
        ))}
      </ul>
    </section>
  );
}
