/** The module with the algebra of leases and shards. */
import { loadDistributed } from "#engine-host";
import { Algebra, chosen, oncePerThread } from "./algebra.ts";
import type { DistributedExports } from "./exports.ts";

let loaded: Algebra<DistributedExports> | undefined;

/**
 * The algebra of leases and of shards, loaded by the first call. Only stores that have them import this file: a page in
 * memory does not download it.
 */
export function distributed(): Algebra<DistributedExports> {
  loaded ??= oncePerThread(
    "distributed",
    chosen("distributed by", () => new Algebra<DistributedExports>(loadDistributed)),
  );
  return loaded;
}
