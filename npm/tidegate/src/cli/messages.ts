/** The messages of an error and of its causes, outermost first. */
export function messagesOf(error: unknown): string {
  const messages: string[] = [];
  let at = error;
  // An error may be its own cause.
  for (let depth = 0; at !== undefined && at !== null && depth < 5; depth++) {
    // An AggregateError of Node.js, such as a connection refused on both IPv4 and IPv6, has no message of its own.
    const { message, code, errors } = Object(at) as { message?: string; code?: string; errors?: readonly unknown[] };
    const first = errors?.[0] === undefined ? undefined : messagesOf(errors[0]);
    const text = message || first || code || String(at);
    if (!messages.some((earlier) => earlier.includes(text))) messages.push(text);
    at = (at as { cause?: unknown }).cause;
  }
  return messages.join(": ");
}
