/** The state of the key that is shown, and what can be done to it. */
import { type FormEvent, type RefObject, useId, useState } from "react";
import { Key } from "./key.tsx";
import { nextText, type Shown, type ShownState } from "./key-state.ts";
import { clock, label, number, tokens, wait } from "./text.ts";

interface Props extends ShownState {
  shown: Shown;
  heading: RefObject<HTMLHeadingElement | null>;
}

export function KeyPanel({ shown, heading, state, error, act }: Props) {
  return (
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
          <Actions count={shown.count} act={act} />
        </>
      )}
    </div>
  );
}

function Actions({ count, act }: Pick<ShownState, "act"> & { count: number }) {
  const id = useId();
  const [length, setLength] = useState("15m");
  const block = (event: FormEvent): void => {
    event.preventDefault();
    void act("block", length);
  };
  return (
    <div className="actions">
      <button type="button" onClick={() => act("reset")}>
        Reset
      </button>
      <button type="button" onClick={() => act("give")}>
        Give {tokens(count)}
      </button>
      <button type="button" onClick={() => act("charge")}>
        Charge {tokens(count)}
      </button>
      <form className="block" onSubmit={block}>
        <label htmlFor={id}>Block for</label>
        <input
          id={id}
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
  );
}
