// The page's script; the tests choose what it shows.
import { createRoot, hydrateRoot } from "react-dom/client";
import { Send } from "readme-block";
import { answers, App, Inside, renders, Shown, type ShownProps } from "./app.tsx";

const place = (): HTMLElement => document.querySelector("main") as HTMLElement;
const errors: string[] = [];
const onRecoverableError = (error: unknown): void => void errors.push(String(error));

Object.assign(window, {
  renders,
  errors,
  answers,
  /** Without StrictMode, which renders twice, so that renders can be counted. */
  show(all: readonly ShownProps[]): void {
    createRoot(place()).render(all.map((props) => <Shown key={props.fields.join()} {...props} />));
  },
  send(): void {
    const send = async (): Promise<void> => {
      await fetch("/messages", { method: "POST" });
    };
    createRoot(place()).render(<Send send={send} />);
  },
  inside(): void {
    createRoot(place()).render(<Inside />);
  },
  hydrate(all: readonly ShownProps[]): void {
    hydrateRoot(place(), <App all={all} />, { onRecoverableError });
  },
});
