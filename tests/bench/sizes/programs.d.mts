/** A program, how it is bundled, and the wasm files beside its script. */
export interface Program {
  text: string;
  options: object;
  wasm?: string;
}
export const OURS: Readonly<Record<string, Program>>;
export const PEERS: Readonly<Record<string, Program>>;
/** The program as one minified script. */
export function scriptOf(program: Program, resolveDir: string): Promise<string>;
