/** The keys that are denied most, and the latest denials. */
import type { View } from "./live.ts";
import { PickKey, type Target } from "./key.tsx";
import { clock, label, number, wait } from "./text.ts";

interface Props {
  view: View;
  onPick: (target: Target) => void;
}

/** For limits that are not defined, only the app has the config of a key. */
const pickable = (view: View, name: string | null, onPick: Props["onPick"]): Props["onPick"] | undefined =>
  name !== null && view.figures?.defined.includes(name) ? onPick : undefined;

const count = (atLeast: number, atMost: number): string =>
  atLeast === atMost ? number(atLeast) : `${number(atLeast)} to ${number(atMost)}`;

export function TopKeys({ view, onPick }: Props) {
  const top = view.figures?.top ?? [];
  return (
    <section aria-labelledby="top" className="panel">
      <header className="section">
        <h2 id="top">Most denied keys</h2>
        <p className="quiet">Denials of the last 10 minutes. Select a key to see its state.</p>
      </header>
      {top.length === 0 ? (
        <p className="empty">No denials.</p>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">key</th>
              <th scope="col">limit</th>
              <th scope="col" className="number">
                denials
              </th>
            </tr>
          </thead>
          <tbody>
            {top.map(({ name, key, atLeast, atMost }) => (
              <tr key={JSON.stringify([name, key])}>
                <th scope="row">
                  <PickKey name={name} of={key} onPick={pickable(view, name, onPick)} />
                </th>
                <td className="name">{label(name)}</td>
                <td className="number">{count(atLeast, atMost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

export function DenialLog({ view, onPick, onPause }: Props & { onPause: (paused: boolean) => void }) {
  const { denials, paused, skipped } = view;
  return (
    <section aria-labelledby="log" className="panel log">
      <header className="section">
        <h2 id="log">Denials</h2>
        <p className="quiet">Newest first.{skipped > 0 ? ` ${number(skipped)} more are not in this list.` : ""}</p>
        <button type="button" aria-pressed={paused} onClick={() => onPause(!paused)}>
          Pause
        </button>
      </header>
      {denials.length === 0 ? (
        <p className="empty">No denials.</p>
      ) : (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it must have focus to scroll by keys
        <section className="scroll" tabIndex={0} aria-label="Denials, newest first">
          <table>
            <thead>
              <tr>
                <th scope="col">time</th>
                <th scope="col">key</th>
                <th scope="col">limit</th>
                <th scope="col" className="number tokens">
                  tokens
                </th>
                <th scope="col" className="number">
                  retry after
                </th>
              </tr>
            </thead>
            <tbody>
              {denials.map(({ id, at, name, key, count, retryAfter, degraded }) => (
                <tr key={id}>
                  <td className="time">
                    {clock(at)}
                    <span className="millis">.{String(at % 1000).padStart(3, "0")}</span>
                  </td>
                  <th scope="row">
                    <PickKey name={name} of={key} onPick={pickable(view, name, onPick)} />
                  </th>
                  <td className="name">{label(name)}</td>
                  <td className="number tokens">{number(count)}</td>
                  <td className="number">
                    {degraded ? "store failed" : retryAfter === null ? "never" : wait(retryAfter)}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </section>
  );
}
