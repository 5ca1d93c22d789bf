// For runtimes whose answer is what they print.
import { inMemory } from "./memory.js";
import { policies } from "./policies.js";

console.log(JSON.stringify([...(await inMemory()), ...policies()]));
