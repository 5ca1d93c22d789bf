/** The messages of an error and of its causes, outermost first. */
export function messagesOf(error: unknown): string {
  const messages: string[] = [];
  let at = error;
  // An error may be its own cause.
  for (let depth = 0; at !== undefined && at !== null && depth < 5; depth++) {
    const { message, code, errors, cause } = Object(at) as Partial<NodeJS.ErrnoException & AggregateError>;
    // An AggregateError of Node.js, such as a connection refused on both IPv4 and IPv6, has no message of its own.
    const first: unknown = message ? undefined : errors?.[0];
    const text = message || code || String(at);
    if (first === undefined && !messages.some((earlier) => earlier.includes(text))) messages.push(text);
    at = first ?? cause;
  }
  return messages.join(": ") || String(error);
}
