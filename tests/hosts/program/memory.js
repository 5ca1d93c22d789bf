// Every vector, to the bit, through the in-memory store, the rest of the store suite, and every refusal.
import { memory } from "tidegate";
import { invalid } from "./invalid.js";
import { report } from "./report.js";
import vectors from "./vectors.js";

export const inMemory = async () => [...(await report({ create: () => memory(), vectors })), ...invalid()];
