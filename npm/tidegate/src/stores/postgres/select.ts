/** Which of the waiting calls leave together in the next statement. */
import type { Pending } from "./pending.ts";

/** What one statement does: takes on a row each, reads, resets, or runs a program of any calls. */
export type Kind = "take" | "read" | "reset" | "run";

/** The calls of one statement, and those that go on waiting, both in their order. */
export interface Selection {
  readonly kind: Kind;
  readonly some: Pending[];
  readonly left: Pending[];
}

function kindOf(pending: Pending): Kind {
  if (pending.again) return "run";
  if (pending.plain) return "take";
  if (pending.reads) return "read";
  return pending.asked.kind === "reset" ? "reset" : "run";
}

/**
 * Selects up to `most` calls of one kind and one clock. It skips the calls on keys that a statement is out about
 * (`busy`) or that an earlier call waits for. `undefined`: none can leave.
 */
export function select(waiting: readonly Pending[], most: number, busy: ReadonlySet<string>): Selection | undefined {
  const held = new Set<string>();
  const left: Pending[] = [];
  const taken = new Map<string, Pending[]>();
  let some: Pending[] = [];
  let kind: Kind | undefined;
  for (const [i, pending] of waiting.entries()) {
    if (some.length === most) {
      left.push(...waiting.slice(i));
      break;
    }
    const own = kindOf(pending);
    const fits = kind === undefined || (own === kind && pending.now === some[0]?.now);
    if (!fits || pending.about.some((id) => held.has(id) || busy.has(id))) {
      for (const id of pending.about) held.add(id);
      left.push(pending);
      continue;
    }
    kind = own;
    some.push(pending);
    for (const id of pending.about) {
      const same = taken.get(id);
      if (same === undefined) taken.set(id, [pending]);
      else same.push(pending);
    }
  }
  if (kind === undefined) return undefined;
  if (kind === "take" && taken.size < some.length) {
    // Where few share a row, those wait for the next statement. Where many do, this one carries them out in turn.
    if (taken.size * 2 > some.length) {
      const first = (pending: Pending): boolean => taken.get(pending.about[0] as string)?.[0] === pending;
      left.unshift(...some.filter((pending) => !first(pending)));
      some = some.filter(first);
    } else {
      kind = "run";
    }
  }
  return { kind, some, left };
}
