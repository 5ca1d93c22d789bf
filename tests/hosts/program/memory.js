// Every vector, to the bit, through the in-memory store, and the rest of its contract.
import { memory } from "tidegate";
import { report } from "./report.js";
import vectors from "./vectors.js";

export const inMemory = () => report({ create: () => memory(), vectors });
