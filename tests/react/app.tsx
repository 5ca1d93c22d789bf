// What the tests show, in a page and rendered on a server.
import { memo, type ReactElement, StrictMode } from "react";
import { type RateLimit, remoteLimits, type Told, useRateLimit } from "tidegate/react";

export type Field = Exclude<keyof RateLimit, "check" | "learn" | "refresh">;

export interface ShownProps {
  readonly fields: readonly Field[];
  readonly initial?: Told | undefined;
  readonly count?: number;
  readonly tick?: number;
}

/** How often each was rendered, by the fields it shows. */
export const renders: Record<string, number> = {};

/** Answers of the server's that have come. */
export const answers: Told[] = [];

const from = remoteLimits(async (name) => {
  const response = await fetch(`/limits/${name}`);
  const answer = (await response.json()) as Told;
  answers.push(answer);
  return answer;
});

/** Some fields of one limit. */
export const Shown = memo(function Shown({ fields, ...options }: ShownProps): ReactElement {
  const limit = useRateLimit("message", { from, ...options });
  const id = fields.join();
  renders[id] = (renders[id] ?? 0) + 1;
  return <output id={id}>{fields.map((field) => String(limit[field])).join(" ")}</output>;
});

/** As a page has it: everything twice, to find what is not pure. */
export function App({ all }: { all: readonly ShownProps[] }): ReactElement {
  return (
    <StrictMode>
      {all.map((props) => (
        <Shown key={props.fields.join()} {...props} />
      ))}
    </StrictMode>
  );
}
