/** The state of one key, and what can be done to it. */
import { type FormEvent, type RefObject, useEffect, useId, useState } from "react";
import type { KeyState, Operation, OperationRequest } from "../src/wire.ts";
import { Key, type Target } from "./key.tsx";
import { send } from "./live.ts";
import { clock, keyOf, label, number, printable, tokens, wait } from "./text.ts";

/** ms between two reads of the key that is shown. */
const EVERY = 1000;

/** The key that is shown, with its request. */
export interface Shown extends Target {
  readonly count: number;
}

const requestOf = (operation: Operation, { name, key, count }: Shown, length: string): OperationRequest => ({
  operation,
  name,
  count,
  ...(key === null ? {} : { key }),
  ...(operation === "block" ? { for: length } : {}),
});

function nextText({ next, now }: KeyState): string {
  if (next.ok) return "now";
  if (next.retryAt === null) return "never: it is more than the capacity";
  return `in ${wait(next.retryAt - now)}, at ${clock(next.retryAt, { millis: true, today: now })}`;
}

const valueText = ({ value, capacity }: KeyState): string => `${number(value)} of ${tokens(capacity)}`;

const DONE: Record<Exclude<Operation, "read">, (count: number, length: string) => string> = {
  reset: () => "Reset",
  give: (count) => `Gave ${tokens(count)}`,
  charge: (count) => `Charged ${tokens(count)}`,
  block: (_, length) => `Blocked for ${length}`,
};

interface Props {
  names: readonly string[];
  shown: Shown | undefined;
  /** Where the focus goes when a key is selected elsewhere on the page. */
  heading: RefObject<HTMLHeadingElement | null>;
  onShow: (shown: Shown) => void;
  announce: (message: string) => void;
}

export function OneKey({ names, shown, heading, onShow, announce }: Props) {
  const ids = useId();
  const [name, setName] = useState<string>();
  const [text, setText] = useState("");
  const [count, setCount] = useState("1");
  const [length, setLength] = useState("15m");
  const [state, setState] = useState<KeyState>();
  const [error, setError] = useState<string>();

  useEffect(() => {
    if (shown === undefined) return;
    setName(shown.name);
    setText(shown.key === null ? "" : printable(shown.key));
    setCount(String(shown.count));
    setState(undefined);
    setError(undefined);
    let isCurrent = true;
    let isFirst = true;
    const read = async (): Promise<void> => {
      if (document.hidden && !isFirst) return;
      try {
        const state = await send(requestOf("read", shown, ""));
        if (!isCurrent) return;
        setState(state);
        setError(undefined);
        if (isFirst) announce(`${valueText(state)}. ${tokens(shown.count)} granted: ${nextText(state)}.`);
      } catch (error) {
        if (!isCurrent) return;
        setError((error as Error).message);
        clearInterval(timer);
      }
      isFirst = false;
    };
    const timer = setInterval(read, EVERY);
    void read();
    return () => {
      isCurrent = false;
      clearInterval(timer);
    };
  }, [shown, announce]);

  const look = (event: FormEvent): void => {
    event.preventDefault();
    onShow({ name: name ?? names[0] ?? "", key: text === "" ? null : keyOf(text), count: Number(count) });
  };
  const act = async (operation: Exclude<Operation, "read">): Promise<void> => {
    if (shown === undefined) return;
    try {
      const after = await send(requestOf(operation, shown, length));
      setState(after);
      setError(undefined);
      announce(`${DONE[operation](shown.count, length)}: ${valueText(after)}.`);
    } catch (error) {
      setError((error as Error).message);
    }
  };
  const block = (event: FormEvent): void => {
    event.preventDefault();
    void act("block");
  };
  return (
    <section aria-labelledby="one" className="panel one">
      <header className="section">
        <h2 id="one">One key</h2>
        <p className="quiet">Its state in the store, for all processes.</p>
      </header>
      <form onSubmit={look}>
        <div className="field">
          <label htmlFor={`${ids}name`}>Limit</label>
          <select id={`${ids}name`} value={name ?? names[0] ?? ""} onChange={(event) => setName(event.target.value)}>
            {names.map((one) => (
              <option key={one} value={one}>
                {label(one)}
              </option>
            ))}
          </select>
        </div>
        <div className="field count">
          <label htmlFor={`${ids}count`}>Tokens</label>
          <input
            id={`${ids}count`}
            type="number"
            min="0"
            step="any"
            required
            value={count}
            onChange={(event) => setCount(event.target.value)}
          />
        </div>
        <div className="field key-field">
          <label htmlFor={`${ids}key`}>Key</label>
          <input
            id={`${ids}key`}
            type="text"
            value={text}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck="false"
            aria-describedby={`${ids}hint`}
            onChange={(event) => setText(event.target.value)}
          />
        </div>
        <button type="submit" className="primary">
          Look up
        </button>
        <p id={`${ids}hint`} className="quiet hint">
          Empty for a limit that all share. Invisible characters are written as <code>\u&#123;202e&#125;</code>.
        </p>
      </form>
      {shown === undefined ? null : (
        <div className="state">
          <h3 ref={heading} tabIndex={-1}>
            <bdi>{label(shown.name)}</bdi> <Key of={shown.key} />
          </h3>
          {error === undefined ? null : (
            <p className="error" role="alert">
              {error}
            </p>
          )}
          {state === undefined ? null : (
            <>
              <p className="quiet">{state.policy}</p>
              <dl>
                <div>
                  <dt>value now</dt>
                  <dd>
                    <b>{number(Math.round(state.value * 1000) / 1000)}</b> of {tokens(state.capacity)}
                  </dd>
                </div>
                <div>
                  <dt>next grant of {tokens(state.next.count)}</dt>
                  <dd className={state.next.ok ? "ok" : "not"}>{nextText(state)}</dd>
                </div>
                <div>
                  <dt>full</dt>
                  <dd>
                    {state.resetAt <= state.now
                      ? "now"
                      : `in ${wait(state.resetAt - state.now)}, at ${clock(state.resetAt, { today: state.now })}`}
                  </dd>
                </div>
              </dl>
              {state.degraded ? <p className="error">The store failed: these numbers are not its own.</p> : null}
              <div className="actions">
                <button type="button" onClick={() => act("reset")}>
                  Reset
                </button>
                <button type="button" onClick={() => act("give")}>
                  Give {tokens(shown.count)}
                </button>
                <button type="button" onClick={() => act("charge")}>
                  Charge {tokens(shown.count)}
                </button>
                <form className="block" onSubmit={block}>
                  <label htmlFor={`${ids}for`}>Block for</label>
                  <input
                    id={`${ids}for`}
                    type="text"
                    required
                    size={5}
                    value={length}
                    autoComplete="off"
                    onChange={(event) => setLength(event.target.value)}
                  />
                  <button type="submit">Block</button>
                </form>
              </div>
            </>
          )}
        </div>
      )}
    </section>
  );
}
