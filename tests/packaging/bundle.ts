/** A user's program with the installed package as one minified script, as esbuild makes it. */
import { build } from "esbuild";
import type { Installed } from "./installed.ts";

export interface BundleOptions {
  conditions: string[];
  external?: string[];
  format?: "iife" | "esm";
}

export async function bundle(user: Installed, text: string, options: BundleOptions): Promise<string> {
  const { conditions, external = [], format = "iife" } = options;
  const result = await build({
    stdin: { contents: text, resolveDir: user.folder, loader: "js" },
    bundle: true,
    write: false,
    minify: true,
    format,
    platform: "neutral",
    mainFields: [],
    conditions,
    external,
    logLevel: "silent",
  });
  return result.outputFiles[0]?.text ?? "";
}
