/** The heap of this process, without what nothing refers to. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
export const collect = runInNewContext("gc") as () => void;

/** Bytes on the heap that something refers to. */
export function heap(): number {
  collect();
  return process.memoryUsage().heapUsed;
}
