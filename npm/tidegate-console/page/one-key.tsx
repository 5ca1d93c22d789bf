/** Looks up one key. */
import { type FormEvent, type RefObject, useEffect, useId, useState } from "react";
import { KeyPanel } from "./key-panel.tsx";
import { type Shown, useKeyState } from "./key-state.ts";
import { keyOf, label, printable } from "./text.ts";

interface Props {
  names: readonly string[];
  shown: Shown | undefined;
  /** Where the focus goes when a key is selected elsewhere on the page. */
  heading: RefObject<HTMLHeadingElement | null>;
  onShow: (shown: Shown) => void;
  announce: (message: string) => void;
}

export function OneKey({ names, shown, heading, onShow, announce }: Props) {
  const state = useKeyState(shown, announce);
  return (
    <section aria-labelledby="one" className="panel one">
      <header className="section">
        <h2 id="one">One key</h2>
        <p className="quiet">Its state in the store, for all processes.</p>
      </header>
      <LookUp names={names} shown={shown} onShow={onShow} />
      {shown === undefined ? null : <KeyPanel shown={shown} heading={heading} {...state} />}
    </section>
  );
}

function LookUp({ names, shown, onShow }: Pick<Props, "names" | "shown" | "onShow">) {
  const ids = useId();
  const [name = names[0] ?? "", setName] = useState<string>();
  const [text, setText] = useState("");
  const [count, setCount] = useState("1");
  useEffect(() => {
    if (shown === undefined) return;
    setName(shown.name);
    setText(shown.key === null ? "" : printable(shown.key));
    setCount(String(shown.count));
  }, [shown]);
  const look = (event: FormEvent): void => {
    event.preventDefault();
    onShow({ name, key: text === "" ? null : keyOf(text), count: Number(count) });
  };
  return (
    <form onSubmit={look}>
      <div className="field">
        <label htmlFor={`${ids}name`}>Limit</label>
        <select id={`${ids}name`} value={name} onChange={(event) => setName(event.target.value)}>
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
  );
}
