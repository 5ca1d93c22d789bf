/** A mistake in the command line, or a file that cannot be read: printed as one line, without a stack. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
