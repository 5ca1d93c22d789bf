// Runs a script in QuickJS, whose only addition is `print`, and writes what it printed. Arguments: quickjs-emscripten's path, the script.
import { readFileSync } from "node:fs";

const [, , library, script] = process.argv;
const { getQuickJS } = await import(library);
const context = (await getQuickJS()).newContext();
const unwrap = (result) => {
  if (result.error === undefined) return result;
  throw new Error(JSON.stringify(context.dump(result.error)));
};
const print = context.newFunction("print", (text) => void process.stdout.write(`${context.getString(text)}\n`));
context.setProp(context.global, "print", print);
unwrap(context.evalCode(readFileSync(script, "utf8")));
while (unwrap(context.runtime.executePendingJobs()).value > 0);
