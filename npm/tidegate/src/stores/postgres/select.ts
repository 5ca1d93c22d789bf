/** Which of the waiting requests leave together in the next statement. */
import type { Pending } from "./request.ts";

/** What one statement does: reads, resets, or carries out any calls. */
export type Kind = "read" | "reset" | "call";

/** The requests of one statement, and those that remain in the queue, both in their order. */
export interface Selection {
  readonly kind: Kind;
  readonly batch: Pending[];
  readonly left: Pending[];
}

const kindOf = ({ reads, request }: Pending): Kind => (reads ? "read" : request.kind === "reset" ? "reset" : "call");

/**
 * Selects up to `most` requests of one kind and one clock. It skips requests on rows of a statement that is out (`busy`)
 * or of an earlier request that waits. `undefined`: none can leave.
 */
export function select(waiting: readonly Pending[], most: number, busy: ReadonlySet<string>): Selection | undefined {
  const skipped = new Set<string>();
  const left: Pending[] = [];
  const batch: Pending[] = [];
  let kind: Kind | undefined;
  for (const [i, pending] of waiting.entries()) {
    if (batch.length === most) {
      left.push(...waiting.slice(i));
      break;
    }
    const own = kindOf(pending);
    const fits = kind === undefined || (own === kind && pending.now === batch[0]?.now);
    if (fits && !pending.ids.some((id) => skipped.has(id) || busy.has(id))) {
      kind = own;
      batch.push(pending);
    } else {
      for (const id of pending.ids) skipped.add(id);
      left.push(pending);
    }
  }
  return kind === undefined ? undefined : { kind, batch, left };
}
