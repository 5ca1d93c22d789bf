import { printable } from "./text.ts";

/** A key as text that can be seen; `null` is a limit that all share. */
export function Key({ of }: { of: string | null }) {
  if (of === null) return <span className="quiet">shared by all</span>;
  const text = printable(of);
  return (
    <bdi className="key" title={text.length > 40 ? text : undefined}>
      {text}
    </bdi>
  );
}

export interface Target {
  readonly name: string;
  readonly key: string | null;
}

/** The key, as a button if its state can be shown. */
export function PickKey({
  name,
  of,
  onPick,
}: {
  name: string | null;
  of: string | null;
  onPick?: ((target: Target) => void) | undefined;
}) {
  if (name === null || onPick === undefined) return <Key of={of} />;
  return (
    <button type="button" className="pick" onClick={() => onPick({ name, key: of })}>
      <Key of={of} />
      <span className="visually-hidden">, show its state</span>
    </button>
  );
}
