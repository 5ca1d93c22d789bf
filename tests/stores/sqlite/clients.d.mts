/** Opens a client on a file. */
type Open = (path: string) => Promise<{ client: unknown; close(): unknown }>;
export declare const clients: Readonly<
  Record<"node:sqlite" | "bun:sqlite" | "better-sqlite3" | "@libsql/client", Open>
>;
