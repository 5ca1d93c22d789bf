import { createRoot } from "react-dom/client";
import "./style.css";
import { Live } from "./live.ts";
import { App } from "./app.tsx";

createRoot(document.getElementById("page") as HTMLElement).render(<App live={new Live()} />);
