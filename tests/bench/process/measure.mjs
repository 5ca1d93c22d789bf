// The child: one measurement, printed as one line of JSON.
import { ages, memory } from "./memory.mjs";
import { probe } from "./probe.mjs";
import { speed } from "./speed.mjs";
import { threads } from "./threads.mjs";

const MEASUREMENTS = { probe, speed, memory, ages, threads };
const { measure, ...spec } = JSON.parse(process.argv[2]);
let result;
try {
  result = await MEASUREMENTS[measure](spec);
} catch (error) {
  result = { failed: error.message.split("\n")[0] };
}
process.stdout.write(`${JSON.stringify(result)}\n`, () => process.exit(0));
