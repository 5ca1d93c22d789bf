/** Tests of the messages for common mistakes. */
import { expect, test } from "vitest";
import { InputError } from "../src/index.ts";

/** In place of a value that the compiler would refuse. */
export const any = (value?: unknown): never => value as never;

/** The mistake, and its message, word for word. */
type Mistake = readonly [written: string, run: () => unknown, sentence: string];
export const throwEach = (mistakes: readonly Mistake[]): void => {
  test.each(mistakes)("%s", (_, run, sentence) => {
    let thrown: unknown;
    try {
      run();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(InputError);
    expect((thrown as Error).message).toBe(sentence);
  });
};
