// The components of the tests, for a page and for a rendering server.
import { memo, type ReactElement, StrictMode } from "react";
import { type RateLimit, remoteLimits, type ServerState, useRateLimit } from "tidegate/react";

export type Field = Exclude<keyof RateLimit, "check" | "learn" | "refresh">;

export interface ShownProps {
  readonly fields: readonly Field[];
  readonly initial?: ServerState | undefined;
  readonly count?: number;
  readonly tick?: number;
}

/** How often each was rendered, by the fields it shows. */
export const renders: Record<string, number> = {};

/** Responses of the server. */
export const answers: ServerState[] = [];

async function load(name: string): Promise<ServerState> {
  const response = await fetch(`/limits/${name}`);
  const answer = (await response.json()) as ServerState;
  answers.push(answer);
  return answer;
}

const from = remoteLimits(load);

/** A mistake: limits that are made in the component are new at each render. */
export function Inside(): ReactElement {
  const { ok } = useRateLimit("message", { from: remoteLimits(load) });
  return <output>{String(ok)}</output>;
}

/** Shows some fields of one limit. */
export const Shown = memo(function Shown({ fields, ...options }: ShownProps): ReactElement {
  const limit = useRateLimit("message", { from, ...options });
  const id = fields.join();
  renders[id] = (renders[id] ?? 0) + 1;
  return <output id={id}>{fields.map((field) => String(limit[field])).join(" ")}</output>;
});

/** In StrictMode, which renders twice to find impure components. */
export function App({ all }: { all: readonly ShownProps[] }): ReactElement {
  return (
    <StrictMode>
      {all.map((props) => (
        <Shown key={props.fields.join()} {...props} />
      ))}
    </StrictMode>
  );
}
