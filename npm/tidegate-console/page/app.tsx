import { useCallback, useRef, useState, useSyncExternalStore } from "react";
import type { Target } from "./key.tsx";
import type { Shown } from "./key-state.ts";
import { Limits } from "./limits.tsx";
import type { Live, View } from "./live.ts";
import { OneKey } from "./one-key.tsx";
import { DenialLog, TopKeys } from "./tables.tsx";
import { clock } from "./text.ts";

const STATUS: Record<View["status"], string> = {
  connecting: "connecting",
  live: "live",
  lost: "no connection; trying again",
  refused: "refused by the server; trying again",
};

const ANNOUNCED: Partial<Record<View["status"], string>> = {
  lost: "The connection is lost; trying again.",
  refused: "The server refuses the connection; trying again. If your session has ended, load the page again.",
};

function Head({ view }: { view: View }) {
  const { status, figures, several } = view;
  return (
    <header className="head">
      <h1>Tidegate console</h1>
      <p className="quiet where">
        {location.host}
        {figures === undefined ? "" : `, counts since ${clock(figures.since, { today: figures.now })}`}
      </p>
      <p className="status" data-status={status}>
        {STATUS[status]}
      </p>
      {several ? (
        <p className="note">Several processes answer at this address. The counts are those of one at a time.</p>
      ) : null}
    </header>
  );
}

export function App({ live }: { live: Live }) {
  const view = useSyncExternalStore(live.subscribe, live.view);
  const [shown, setShown] = useState<Shown>();
  const [message, setMessage] = useState("");
  const heading = useRef<HTMLHeadingElement>(null);
  const defined = view.figures?.defined ?? [];
  // A message that is the same again would not be read again.
  const announce = useCallback((next: string) => setMessage((last) => (last === next ? `${next}\u00a0` : next)), []);
  const pick = (target: Target): void => {
    setShown({ ...target, count: 1 });
    // After it is rendered.
    setTimeout(() => heading.current?.focus());
  };
  return (
    <>
      <Head view={view} />
      <main>
        <Limits view={view} announce={announce} />
        <TopKeys view={view} onPick={pick} />
        <OneKey names={defined} shown={shown} heading={heading} onShow={setShown} announce={announce} />
        <DenialLog view={view} onPick={pick} onPause={live.pause} />
      </main>
      {/* Only what a person did, and the connection: counts would be read out each second. */}
      <p role="status" className="visually-hidden">
        {ANNOUNCED[view.status] ?? message}
      </p>
    </>
  );
}
