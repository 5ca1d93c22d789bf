/** A mistake in the command line, or in a file that it names: printed as one line, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
