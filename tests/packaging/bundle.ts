/** Bundles a user's program with the installed package into one minified script, with esbuild. */
import { scriptOf } from "../bench/sizes/programs.mjs";
import type { Installed } from "./installed.ts";

export interface BundleOptions {
  conditions: string[];
  external?: string[];
  format?: "iife" | "esm";
  mangleProps?: RegExp;
  mangleQuoted?: boolean;
}

export async function bundle(user: Installed, text: string, options: BundleOptions): Promise<string> {
  const how = { external: [], format: "iife", ...options, platform: "neutral", mainFields: [] };
  return await scriptOf({ text, options: how }, user.folder);
}
