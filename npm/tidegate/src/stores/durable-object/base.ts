// Any other host: there are no Durable Objects, but what is exported from here can still be imported and looked at.
import type { ObjectBase, ObjectBaseConstructor, ObjectContext } from "./shapes.ts";

export const Base: ObjectBaseConstructor = class implements ObjectBase {
  readonly ctx: ObjectContext;
  readonly env: unknown;

  constructor(ctx: ObjectContext, env: unknown) {
    this.ctx = ctx;
    this.env = env;
  }
};

/** Nothing ends before the work does. */
export function during(_work: Promise<unknown>): void {}
