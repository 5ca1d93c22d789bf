/** Prisma's client on `@prisma/adapter-pg`, as `prisma generate` makes it for a schema without models. */
import { PrismaPg } from "@prisma/adapter-pg";
import { getPrismaClient } from "@prisma/client/runtime/client";
import type { PoolConfig } from "pg";

/** What the tests use of a `PrismaClient`. */
interface Raw {
  $queryRawUnsafe<T>(text: string, ...values: unknown[]): PromiseLike<T>;
  $executeRawUnsafe(text: string, ...values: unknown[]): PromiseLike<number>;
}
export interface Prisma extends Raw {
  $transaction<T>(body: (tx: Raw) => Promise<T>, options?: { maxWait?: number; timeout?: number }): Promise<T>;
  $disconnect(): Promise<void>;
}

const Client = getPrismaClient({
  previewFeatures: [],
  clientVersion: "7.10.0",
  engineVersion: "0edf323efd1d98336f3f0a68684b56f689b900d3",
  activeProvider: "postgresql",
  inlineSchema:
    'generator client {\n  provider = "prisma-client"\n}\n\ndatasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: "AAAA" },
  compilerWasm: {
    // @ts-expect-error: the package declares no types of it.
    getRuntime: () => import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.mjs"),
    getQueryCompilerWasmModule: async () => {
      // @ts-expect-error: nor of this.
      const { wasm } = await import("@prisma/client/runtime/query_compiler_fast_bg.postgresql.wasm-base64.mjs");
      return new WebAssembly.Module(Buffer.from(wasm, "base64"));
    },
    importName: "./query_compiler_fast_bg.js",
  },
});

export const prismaOn = (config: PoolConfig): Prisma =>
  new (Client as unknown as new (options: object) => Prisma)({ adapter: new PrismaPg(config) });
