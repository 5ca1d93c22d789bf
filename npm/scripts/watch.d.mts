export interface WatchOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** How long the program may run, in ms. Default 45 minutes. */
  readonly limitMs?: number;
  /** How long what it started may keep its output open after its end, in ms. Default 10 s. */
  readonly leftOpenMs?: number;
}

/** `output` is what the program wrote to stdout and stderr. */
export declare function watch(
  command: string,
  args: readonly string[],
  options?: WatchOptions,
): Promise<{ status: number; output: string }>;
