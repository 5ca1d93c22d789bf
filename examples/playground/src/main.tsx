import { createRoot } from "react-dom/client";
import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/controls.css";
import "./style/instrument.css";
import "./style/log.css";
import { Lab } from "./model/lab.ts";
import { App } from "./view/app.tsx";

createRoot(document.getElementById("page") as HTMLElement).render(<App lab={new Lab()} />);
