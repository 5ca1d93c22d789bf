// For runtimes whose answer is what they print.
import { inMemory } from "./memory.js";

console.log(JSON.stringify(await inMemory()));
