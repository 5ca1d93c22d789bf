/** The controls that the page is made of: native inputs, with names and visible focus. */
import { type ReactNode, useId } from "react";

export function Panel({ title, hint, children }: { title: string; hint?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="panel" aria-labelledby={id}>
      <header className="panel-head">
        <h2 id={id}>{title}</h2>
        {hint === undefined ? null : <p>{hint}</p>}
      </header>
      {children}
    </section>
  );
}

/** A part that scrolls by itself, by keys too. */
export function Scroll({ className, label, children }: { className: string; label: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it must have focus to scroll by keys
    <section className={className} tabIndex={0} aria-label={label}>
      {children}
    </section>
  );
}

interface SliderProps {
  label: string;
  unit: string;
  value: number;
  min: number;
  max: number;
  step?: number;
  disabled?: boolean;
  /** The text that is shown and announced; default: the value with its unit. */
  shown?: string;
  onChange: (value: number) => void;
}

export function Slider({ label, unit, value, min, max, step = 1, disabled = false, shown, onChange }: SliderProps) {
  const id = useId();
  const text = shown ?? `${value.toLocaleString("en")} ${unit}`;
  return (
    <div className="slider">
      <label htmlFor={id}>{label}</label>
      {/* Not an output: it would be read out at each step, after the slider itself was. */}
      <span aria-hidden="true">{text}</span>
      <input
        id={id}
        type="range"
        {...{ min, max, step, value, disabled }}
        aria-valuetext={text}
        onChange={(event) => onChange(Number(event.target.value))}
      />
    </div>
  );
}

interface ChoiceProps<T extends string> {
  label: string;
  options: readonly T[];
  value: T;
  titles?: Partial<Record<T, string>> | ((option: T) => string);
  onChange: (value: T) => void;
}

/** Radio buttons, which arrow keys move through. */
export function Choice<T extends string>({ label, options, value, titles, onChange }: ChoiceProps<T>) {
  const name = useId();
  const title = (option: T): string => (typeof titles === "function" ? titles(option) : (titles?.[option] ?? option));
  return (
    <fieldset className="choice">
      <legend>{label}</legend>
      <div>
        {options.map((option) => (
          <label key={option}>
            <input type="radio" name={name} checked={option === value} onChange={() => onChange(option)} />
            <span>{title(option)}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

export function Switch(props: { label: string; checked: boolean; onChange: (checked: boolean) => void }) {
  return (
    <label className="switch">
      <input type="checkbox" checked={props.checked} onChange={(event) => props.onChange(event.target.checked)} />
      <span>{props.label}</span>
    </label>
  );
}
