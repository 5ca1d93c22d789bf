import { project } from "tidegate";

const at = (id) => document.getElementById(id);
const FIELDS = ["RateLimit", "RateLimit-Policy", "Retry-After", "Content-Type"];
const MOST_ENTRIES = 100;

/** The last two numbers that the server told, the config that projects them, and the server's clock less this one's. */
let state = null;
let config = null;
let ahead = 0;
let toldAt = 0;

function learn({ value, ts, now }) {
  if (now < toldAt) return; // answers may overtake each other
  toldAt = now;
  state = { value, ts };
  ahead = now - Date.now();
  at("stored").textContent = String(value);
  at("ts").textContent = String(ts);
}

function draw() {
  // What the server would say now, without asking it.
  const { value } = project(state, config, Math.max(0, Date.now() + ahead));
  at("value").textContent = value.toFixed(3);
  at("meter").value = value;
  requestAnimationFrame(draw);
}

/** One log entry: the decision in a line, and under it the fields exactly as they came. */
function show(sent, response, body) {
  const entry = document.createElement("li");
  const line = document.createElement("strong");
  line.className = response.ok ? "granted" : "denied";
  line.textContent = `${response.status} ${sent}`;
  const said = document.createElement("span");
  said.textContent = ` ${body.message ?? body.detail}`;
  const fields = document.createElement("pre");
  const present = FIELDS.filter((name) => response.headers.has(name));
  fields.textContent = present.map((name) => `${name}: ${response.headers.get(name)}`).join("\n");
  entry.append(line, said, fields);
  at("log").prepend(entry);
  while (at("log").children.length > MOST_ENTRIES) at("log").lastChild.remove();
  at("last").textContent = `${line.textContent}:${said.textContent}`;
}

async function send(sent) {
  const [method, path] = sent.split(" ");
  try {
    const response = await fetch(path, { method });
    const body = await response.json();
    // A request for more than ever fits is denied before anything is read: it tells no numbers.
    if (path.startsWith("/api/message") && response.status !== 400) learn(body);
    show(sent, response, body);
  } catch (error) {
    at("last").textContent = `The server does not answer: ${error.message}`;
  }
}

for (const button of document.querySelectorAll("button[data-send]")) {
  button.addEventListener("click", () => {
    for (let i = 0; i < Number(button.dataset.times ?? 1); i++) send(button.dataset.send);
  });
}

const told = await (await fetch("/api/value")).json();
config = told.config;
at("key").textContent = told.key;
at("meter").max = config.capacity;
learn(told);
draw();
