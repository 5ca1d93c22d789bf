// For runtimes whose result is their output.
import { inMemory } from "./memory.js";
import { policies } from "./policies.js";

console.log(JSON.stringify([...(await inMemory()), ...policies()]));
