// The program of a rendering server.
import { renderToString } from "react-dom/server";
import { App, type ShownProps } from "./app.tsx";

export const render = (all: readonly ShownProps[]): string => renderToString(<App all={all} />);
