/** What is used of Cloudflare's own types, by shape: the package depends on none of their versions. */
import type { Reply, Request } from "./wire.ts";

/** What is used of an object's storage, SQLite-backed or not. */
export interface ObjectStorage {
  get(key: string): Promise<unknown>;
  put(entries: Record<string, Uint8Array>): Promise<void>;
  delete(keys: string[]): Promise<unknown>;
  list(options: { limit: number; startAfter?: string }): Promise<Map<string, unknown>>;
  deleteAll(): Promise<void>;
  getAlarm(): Promise<number | null>;
  setAlarm(scheduledTime: number): Promise<void>;
  /** Only if it is SQLite-backed: on the older storage it throws, when it is read or used. */
  readonly sql?: { exec(query: string): Iterable<unknown> } | undefined;
}

/** What an object is made with. */
export interface ObjectContext {
  readonly id: unknown;
  readonly storage: ObjectStorage;
}

/** What an object's class extends. */
export interface ObjectBase {
  readonly ctx: ObjectContext;
  readonly env: unknown;
}
export type ObjectBaseConstructor = new (ctx: ObjectContext, env: unknown) => ObjectBase;

/** A binding to a namespace of objects, such as `env.LIMITS`. */
export interface ObjectNamespace<Id = unknown> {
  idFromName(name: string): Id;
  get(id: Id): unknown;
}

/** An object, as stores and other objects call it. */
export interface ObjectStub {
  handle(request: Request): Promise<Reply>;
}
